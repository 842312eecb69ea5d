#!/usr/bin/env bash
# unidle optimize -- CMD: a PyTorch program that waits for its samples gets workers, its files stay unchanged.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
needs_torch
mkdir program && cd program || exit 1

# Samples that take time without using a CPU: two workers are twice as fast on any machine.
cat >train.py <<'PY'
import sys
import time

import torch
from torch.utils.data import DataLoader, Dataset


class Slow(Dataset):
    def __len__(self):
        return 400

    def __getitem__(self, i):
        time.sleep(0.02)
        return torch.full((4,), i / 400), torch.tensor([i / 200])


torch.manual_seed(0)
if "--broken" in sys.argv:
    raise RuntimeError("the data is gone")
loader = DataLoader(Slow(), batch_size=4, shuffle=True)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(1000):
    for x, y in loader:
        loss = torch.nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        open("written.txt", "w").write("by a trial")
PY
echo "by the user" >written.txt

"$unidle" optimize --budget 1h --trials 3 --format json -- "$python" train.py >out.json 2>err.txt </dev/null
check "returns 0" test $? -eq 0
check "finds the workers" "$python" - <<'PY'
import json

d = json.load(open("out.json"))
assert d["schema"] == "unidle.optimize/1" and d["measured"] is True and d["config"] == "", d
changes = {c["knob"]: c["to"] for c in d["changes"]}
assert int(changes["loader.workers"]) >= 1, d
assert d["verification"]["shown"] and d["verification"]["ratio"] > 1.2, d["verification"]
assert d["verification"]["interval"][0] > 1 and d["verification"]["loss_parity"] is True, d["verification"]
program = d["program"]
assert "--apply loader.workers=" in program["run"] and program["run"].endswith("train.py"), program
line = next(c for c in program["code"] if c["knob"] == "loader.workers")
source = open("train.py").read().splitlines()
file, number = line["where"].rsplit(":", 1)
assert file == "train.py" and "DataLoader(" in source[int(number) - 1], line
assert "num_workers=" in line["code"], line
assert program["working_folder"] == "copy" and program["steps"] >= 30, program
winner = [t for t in d["trials"] if t["stage"] == "verify-winner"]
assert winner and all(t["effective"]["loader.workers"] == changes["loader.workers"] for t in winner), winner
assert not any(k in t["knobs"] for t in d["trials"] for k in ("loader.pin_memory", "precision.tf32", "cudnn.benchmark")), d
PY
check "leaves the program's files alone" grep -qx "by the user" written.txt
check "a search that came to its end keeps no trials" test -z "$(ls "$folder/.unidle/searches" 2>/dev/null)"
check "keeps a record" bash -c "ls '$folder'/.unidle/runs/*-optimize/record.db"

# Ctrl-C: no process is left over, the exit code is the signal's.
: >err.txt
(for _ in $(seq 1200); do
  grep -q "trial 1:" err.txt && break
  sleep 0.1
done
kill -INT "$(cat pid)") &
waiter=$!
UNIDLE_MARK=$folder bash -c 'echo $$ >pid; exec "$0" optimize --budget 1h -- "$1" train.py' "$unidle" "$python" >out.txt 2>err.txt </dev/null
check "returns 130 after Ctrl-C" test $? -eq 130
wait $waiter
# Killed programs may take a moment to disappear.
strays() {
  for each in /proc/[0-9]*; do
    tr '\0' '\n' 2>/dev/null <"$each/environ" | grep -qx "UNIDLE_MARK=$folder" && echo "$each"
  done
}
for _ in $(seq 50); do
  [ -z "$(strays)" ] && break
  sleep 0.2
done
check "leaves no process behind" test -z "$(strays)"
check "keeps its trials for going on" bash -c "ls '$folder'/.unidle/searches/*/plan.json"

"$unidle" optimize -- "$python" train.py --broken >out.txt 2>err.txt </dev/null
check "a program that fails returns 1" test $? -eq 1
check "with its own last words" grep -q "the data is gone" err.txt
"$unidle" optimize --benchmark >out.txt 2>err.txt </dev/null
check "neither configuration nor command" test $? -eq 2
"$unidle" optimize -o x.yaml -- "$python" train.py >out.txt 2>err.txt </dev/null
check "nothing to write" test $? -eq 2

finish
