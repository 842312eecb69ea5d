#!/usr/bin/env bash
# unidle optimize -- CMD: a program that starts slowly. The budget is said at the start and kept, and the
# calibration is the baseline, so that a budget of seven runs finds a large gain.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
needs_torch
mkdir program && cd program || exit 1

# Samples and steps take the same time without using a CPU: one worker makes it twice as fast on any machine.
cat >train.py <<'PY'
import argparse
import time

import torch

time.sleep(4)
parser = argparse.ArgumentParser()
parser.add_argument("--workers", type=int, default=0)
args = parser.parse_args()
torch.manual_seed(0)


class Slow(torch.utils.data.Dataset):
    def __len__(self):
        return 4000

    def __getitem__(self, index):
        time.sleep(0.015)
        return torch.full((4,), index / 4000), torch.ones(1)


loader = torch.utils.data.DataLoader(Slow(), batch_size=8, num_workers=args.workers)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for x, y in loader:
    loss = torch.nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    time.sleep(0.12)
    optimizer.step()
PY

begin=$(date +%s%N)
"$unidle" run --steps 30 -- "$python" train.py >/dev/null 2>&1 </dev/null
run_ms=$((($(date +%s%N) - begin) / 1000000))

"$unidle" optimize --fresh --budget "$((7 * run_ms / 1000))s" --only loader.workers --format json -- "$python" train.py >out.json 2>err.txt </dev/null
check "returns 0" test $? -eq 0
check "says at first what the budget buys" bash -c 'head -1 err.txt | grep -q "^the budget of .* s buys up to .* trials of about .* s are kept to verify$"'
check "tries a change and never says that there is nothing to gain" "$python" - <<'PY'
import json

d = json.load(open("out.json"))
assert any(t["stage"] in ("diagnosis", "step") for t in d["trials"]), d["trials"]
assert "nothing to gain" not in d["conclusion"], d["conclusion"]
if d["changes"]:  # others may have used the CPUs
    assert " --workers " in d["program"]["run"] and "--apply" not in d["program"]["run"], d["program"]
else:
    assert "inconclusive" in d["conclusion"], d["conclusion"]
PY

"$unidle" optimize --fresh --budget "$((2 * run_ms / 1000))s" --only loader.workers --format json -- "$python" train.py >out.json 2>err.txt </dev/null
check "names the budget that would do where it buys no trial" grep -q "^the budget of .* s buys no trial: .*--budget [0-9]*s buys 4$" err.txt
check "and tries nothing" "$python" -c 'import json; d = json.load(open("out.json")); assert "nothing was tried" in d["conclusion"], d'

finish
