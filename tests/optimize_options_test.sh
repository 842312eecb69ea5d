#!/usr/bin/env bash
# unidle optimize -- CMD: a batch size for which the program has an option, with the accumulation that keeps
# the effective batch; for constants, a patch to review.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
needs_torch
mkdir program && cd program || exit 1

# Each pass takes time without using a CPU: half as many are twice as fast on any machine.
cat >train.py <<'PY'
import argparse
import time

import torch
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("-b", "--batch-size", type=int, default=4)
parser.add_argument("--accumulation-steps", type=int, default=4)
parser.add_argument("--epochs", type=int, default=1000)
args = parser.parse_args()
torch.manual_seed(0)
data = TensorDataset(torch.randn(960, 4), torch.randn(960, 1))
loader = DataLoader(data, batch_size=args.batch_size, shuffle=True)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for epoch in range(args.epochs):
    for i, (x, y) in enumerate(loader):
        loss = torch.nn.functional.mse_loss(model(x), y) / args.accumulation_steps
        loss.backward()
        time.sleep(0.01)
        if (i + 1) % args.accumulation_steps == 0:
            optimizer.step()
            optimizer.zero_grad()
PY

"$unidle" optimize --budget 1h --trials 4 --only batch.size --format json -- "$python" train.py >out.json 2>err.txt </dev/null
check "returns 0" test $? -eq 0
check "finds the larger passes at the same effective batch" "$python" - <<'PY'
import json

d = json.load(open("out.json"))
changes = {c["knob"]: c["to"] for c in d["changes"]}
assert changes == {"batch.size": "16", "batch.accumulation": "1"}, d
assert d["verification"]["ratio"] > 2 and d["verification"]["loss_parity"] is True, d["verification"]
assert d["program"]["run"].endswith("train.py --accumulation-steps 1 --batch-size 16"), d["program"]
assert all(t["verdict"] != "parity broken" for t in d["trials"]), d["trials"]
PY
check "the command that it names runs" bash -c "timeout 60 \$(\"$python\" -c \"import json; print(json.load(open('out.json'))['program']['run'])\") --epochs 1"

# With constants in place of the options nothing outside the program changes them: a patch to review, no
# trial.
sed -e '/argparse/d; /parser/d; s/args.batch_size/SIZE/; s/args.accumulation_steps/ACCUMULATION_STEPS/; s/args.epochs/1000/' \
  -e 's/^torch.manual_seed/SIZE = 4\nACCUMULATION_STEPS = 4\n&/' train.py >constants.py
"$unidle" optimize --budget 1h --trials 2 --only batch.size --format json -- "$python" constants.py >out.json 2>err.txt </dev/null
check "returns 0 for constants" test $? -eq 0
check "says what to write" "$python" - <<'PY'
import json

d = json.load(open("out.json"))
assert d["changes"] == [], d
note = "\n".join(d["notes"])
assert "-ACCUMULATION_STEPS = 4\n+ACCUMULATION_STEPS = 1\n" in note and "batch_size=16" in note, d["notes"]
PY
"$unidle" run --steps 8 --apply batch.size=8 -- "$python" constants.py >out.txt 2>err.txt
check "a running program keeps its batches" grep -q "^unidle: batch.size=8 refused: a running program makes its own batches" err.txt

finish
