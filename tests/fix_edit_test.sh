#!/usr/bin/env bash
# unidle fix on a program that validates too often, by a constant or an option of its own: trials find the
# line or the command edited, the file itself stays as it was. Validation takes time without using a CPU, so
# that it helps on any machine.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
needs_torch
mkdir program && cd program || exit 1

cat >train.py <<'PY'
import time

import torch
from torch.utils.data import DataLoader, TensorDataset

EVAL_INTERVAL = 1  # epochs
torch.manual_seed(0)
torch.set_num_threads(1)
model = torch.nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
x = torch.randn(320, 8)
train = DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), batch_size=32, shuffle=True)
valid = DataLoader(TensorDataset(x[:64], x[:64].sum(1, keepdim=True)), batch_size=64)
for epoch in range(16):
    model.train()
    for a, b in train:
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(a), b)
        loss.backward()
        optimizer.step()
        time.sleep(0.002)
    if epoch % EVAL_INTERVAL == 0:
        model.eval()
        with torch.no_grad():
            for a, b in valid:
                model(a)
                time.sleep(0.3)
        print(epoch, loss.item())
PY
cp train.py before.py
unset UNIDLE_HOME
"$unidle" run -- "$python" train.py >out.txt 2>err.txt
check "the first sentence names the line" grep -q "set EVAL_INTERVAL = [0-9]* (train.py:6)" err.txt
"$unidle" fix --budget 1h --format json >out.json 2>err.txt </dev/null
check "returns 0" test $? -eq 0
check "proves the gain of the edit, which no command makes" "$python" - <<'PY'
import json

d = json.load(open("out.json"))
assert {c["knob"] for c in d["changes"]} == {"validation.every"}, d
assert d["verification"]["shown"] and d["verification"]["ratio"] > 1.5, d["verification"]
assert d["run"] is None, d["run"]
assert d["code"][0]["where"] == "train.py:6" and d["code"][0]["code"].startswith("EVAL_INTERVAL = "), d["code"]
PY
check "leaves the file alone" cmp train.py before.py
record=$(ls -d .unidle/runs/*-train)
check "the patch fits" bash -c 'patch -s -p0 -i .unidle/runs/*-fix/changes.patch && grep -q "^EVAL_INTERVAL = [2-9]\|^EVAL_INTERVAL = 1[0-9]" train.py'
"$unidle" fix "$record" --dry-run >out.txt 2>err.txt
check "the old record does not multiply the interval again" bash -c '! grep -q "EVAL_INTERVAL = " out.txt && grep -q "validate less often" out.txt'
"$unidle" run -- "$python" train.py >out.txt 2>err.txt
"$unidle" compare >out.txt 2>err.txt
check "a comparison after it judges the whole run" test $? -eq 0
check "and says so" grep -q "x as fast as" out.txt

sed -e 's/^EVAL_INTERVAL = .*/import sys; EVAL_INTERVAL = int(sys.argv[2])/' before.py >option.py
"$unidle" run -- "$python" option.py --eval-interval 1 >out.txt 2>err.txt
"$unidle" fix --budget 1h --format json >out.json 2>err.txt </dev/null
check "proves the gain of an option" "$python" - <<'PY'
import json
import re

d = json.load(open("out.json"))
assert d["verification"]["shown"] and d["verification"]["ratio"] > 1.5, d["verification"]
assert re.search(r" option.py --eval-interval ([2-9]|1[0-9])$", d["run"]), d["run"]
assert not d["code"], d["code"]
PY
finish
