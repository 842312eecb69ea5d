#!/usr/bin/env bash
# unidle fix on a program that makes its samples again in each epoch, which takes time without using a CPU:
# keeping them helps on any machine. Its files stay as they were, and what it advises works.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
needs_torch
mkdir program && cd program || exit 1

cat >features.py <<'PY'
import time


def decode(number):
    time.sleep(0.02)
    return [number / 48] * 4
PY
cat >train.py <<'PY'
import torch
from features import decode
from torch.utils.data import DataLoader, Dataset


class Samples(Dataset):
    def __len__(self):
        return 48

    def __getitem__(self, index):
        return torch.tensor(decode(index)), torch.ones(1)


torch.manual_seed(0)
torch.set_num_threads(1)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
loader = DataLoader(Samples(), batch_size=4, shuffle=True)
for epoch in range(4):
    for x, y in loader:
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()
open("weights.txt", "w").write(str(model.weight.sum().item()))
PY
unset UNIDLE_HOME
"$unidle" run --steps 500 --apply optimizer.fused=true --apply batch.size=8 -- "$python" train.py >out.txt 2>err.txt
check "unidle run names the next commands" grep -q "next: unidle diagnose, unidle fix$" err.txt
COLUMNS=200 "$unidle" diagnose >out.txt 2>err.txt
check "unidle diagnose ends with it" grep -q "^next: unidle fix (tries . change" out.txt
check "the command to try runs as the recorded run did" grep -q "try: unidle run --steps 500 .*--apply optimizer.fused=true" out.txt
echo before >weights.txt
cp features.py before.py

cd / || exit 1
"$unidle" fix "$folder/program/.unidle/runs/latest" --budget 1h --format json >"$folder/out.txt" 2>"$folder/err.txt" </dev/null
code=$?
cd "$folder/program" || exit 1
mv ../out.txt ../err.txt .
check "returns 0" test $code -eq 0
check "says each run" grep -q "^run [0-9]*: with cache.features=memory: " err.txt
check "keeps the samples, proves the gain and writes the patch" "$python" - <<'PY'
import json

d = json.load(open("out.txt"))
changes = {c["knob"]: c["to"] for c in d["changes"]}
assert d["applied"] == {"optimizer.fused": "true"}, d  # without the batch size, which was refused
assert "--apply optimizer.fused=true" in d["run"] and "--steps" not in d["run"], d["run"]
assert changes["cache.features"] == "memory", d
assert d["verification"]["shown"] and d["verification"]["ratio"] > 1.2, d["verification"]
assert d["verification"]["loss_parity"] is True, d["verification"]
assert "+@unidle.cached(" in open(d["patch_file"]).read() and d["patch"], d
open("run.sh", "w").write(d["run"].replace("unidle run", '"$unidle" run'))
PY
check "leaves the files alone" cmp features.py before.py
check "and what the program writes" grep -qx before weights.txt
check "the command that it names runs" bash run.sh
check "the patch fits" bash -c 'patch -s -p0 -i .unidle/runs/*-fix/changes.patch && grep -q unidle.cached features.py'
"$unidle" diagnose "$(ls -d .unidle/runs/*-fix | head -1)" >search.txt 2>&1
check "the record of a search is said to be one" grep -q "record of a search" search.txt

rm train.py
"$unidle" fix >out.txt 2>err.txt
check "says that the program is gone" test $? -eq 2
check "in one line" grep -q "train.py is not there any more" err.txt
finish
