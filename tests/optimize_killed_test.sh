#!/usr/bin/env bash
# unidle optimize -- CMD, killed and stopped: nothing is left running, the best so far is reported, the next
# search resumes.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
needs_torch
mkdir program && cd program || exit 1

# Samples that take time without using a CPU: with workers it is faster on any machine.
cat >train.py <<'PY'
import time

import torch
from torch.utils.data import DataLoader, Dataset


class Slow(Dataset):
    def __len__(self):
        return 200

    def __getitem__(self, i):
        time.sleep(0.01)
        return torch.full((4,), i / 200), torch.tensor([i / 100])


torch.manual_seed(0)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(1000):
    for x, y in DataLoader(Slow(), batch_size=4, shuffle=True):
        loss = torch.nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
PY

# Processes of ours that still exist; killed ones may take a moment to disappear.
strays() {
  for each in /proc/[0-9]*; do
    tr '\0' '\n' 2>/dev/null <"$each/environ" | grep -qx "UNIDLE_MARK=$folder" && echo "$each"
  done
}
no_strays() {
  for _ in $(seq 100); do
    [ -z "$(strays)" ] && return 0
    sleep 0.2
  done
  return 1
}
# begin SIGNAL TEXT: a search that gets the signal once it has printed the text
begin() {
  : >err.txt
  UNIDLE_MARK=$folder bash -c 'echo $$ >pid; exec "$0" optimize --budget 1h --trials 4 -- "$1" train.py' "$unidle" "$python" \
    >out.txt 2>err.txt </dev/null &
  local search=$!
  for _ in $(seq 2400); do
    grep -Eq "$2" err.txt && break
    sleep 0.1
  done
  kill "-$1" "$(cat pid)"
  wait $search
}
begin KILL "^trial 1:"
check "killed" test $? -eq 137
check "a killed search leaves nothing running" no_strays
begin INT "^trial [0-9]+: .*kept"
check "Ctrl-C returns 130" test $? -eq 130
check "it went on where the killed one was" grep -Eq "[1-9][0-9]* trials were measured by an earlier search" out.txt
check "the best so far" grep -q "stopped; the best so far (.*loader.workers=" out.txt
check "and the command for it" grep -q "unverified: unidle run --apply .*train.py" out.txt
check "leaves nothing running" no_strays

finish
