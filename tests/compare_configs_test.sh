#!/usr/bin/env bash
# unidle compare A.json B.json -- CMD {config}: two configurations of one program in alternating runs, as a
# check for continuous integration.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
needs_torch
mkdir program && cd program || exit 1

# Samples that take time without using a CPU: four workers are four times as fast on any machine, more than
# other processes may explain.
cat >train.py <<'PY'
import json
import sys
import time

import torch
from torch.utils.data import DataLoader, Dataset


class Slow(Dataset):
    def __len__(self):
        return 400

    def __getitem__(self, i):
        time.sleep(0.01)
        return torch.full((4,), i / 400), torch.tensor([i / 200])


config = json.load(open(sys.argv[1]))
torch.manual_seed(0)
loader = DataLoader(Slow(), batch_size=4, shuffle=True, num_workers=config["num_workers"])
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=config["lr"])
for x, y in loader:
    loss = torch.nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    loss.item()
open("written.txt", "w").write("by a run")
PY
echo "by the user" >written.txt
echo '{"num_workers": 0, "lr": 0.01}' >none.json
echo '{"num_workers": 4, "lr": 0.01}' >four.json
echo '{"num_workers": 4, "lr": 4.0}' >wild.json

compare() {  # compare CODE ARGUMENT...
  local wanted=$1
  shift
  "$unidle" compare "$@" --seconds 60 -- "$python" train.py '{config}' >out.txt 2>err.txt </dev/null
  local code=$?
  check "compare $* returns $wanted, not $code" test $code -eq "$wanted"
}

compare 0 none.json four.json --runs 3 --format json
check "the document" "$python" - <<'PY'
import json

d = json.load(open("out.txt"))
assert d["schema"] == "unidle.comparison/1" and d["regression"] is False, d
assert len(d["pairs"]) == 3 and all(pair["ratio"] > 1.2 for pair in d["pairs"]), d["pairs"]
ratio = d["training_ratio"]
assert ratio["change"] == "faster" and 1 < ratio["low"] <= ratio["value"] <= ratio["high"], ratio
workers = next(s for s in d["settings"] if s["knob"] == "loader.workers")
assert str(workers["configured"]["a"]) == "0" and str(workers["configured"]["b"]) == "4", workers
assert str(workers["effective"]["a"]) == "0" and str(workers["effective"]["b"]) == "4", workers
assert d["loss"]["verdict"] == "equal", d["loss"]
PY
check "files stay as they are" grep -qx "by the user" written.txt

compare 1 four.json none.json --runs 1
check "the regression is named" grep -q "^Regressions" out.txt
check "and the setting" grep -q "loader.workers" out.txt
compare 0 four.json none.json --runs 1 --tolerance 95
compare 1 four.json wild.json --runs 1 --tolerance 95
check "a loss that is worse" grep -qi "loss" out.txt

finish
