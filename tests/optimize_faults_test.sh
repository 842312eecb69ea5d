#!/usr/bin/env bash
# unidle optimize -- CMD with faulty programs: the search survives them, the user's files stay, nothing is
# left running.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
needs_torch
mkdir program data && cd program || exit 1

# Samples that take time without using a CPU. With workers it fails in the way that its argument says.
cat >train.py <<'PY'
import os
import random
import sys
import time

import torch
from torch.utils.data import DataLoader, Dataset, get_worker_info

how = sys.argv[1] if len(sys.argv) > 1 else ""


class Slow(Dataset):
    def __len__(self):
        return 200

    def __getitem__(self, i):
        if get_worker_info() is not None:
            if how == "hangs":
                time.sleep(1000)
            if how == "eats":
                self.hog = bytearray(8 << 30)
            if how == "fills":
                with open("full.bin", "ab") as out:
                    out.write(b"x" * (8 << 20))
        time.sleep(0.01)
        return torch.full((4,), i / 200), torch.tensor([i / 100])


if how == "ends":
    sys.exit(0)
if how == "asks":
    input("go on? ")
assert os.path.exists("../data/pictures"), "no data"
torch.manual_seed(0)
loader = DataLoader(Slow(), batch_size=4, shuffle=True)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
left = random.randrange(20, 60) if how == "varies" else 10**9
for epoch in range(1000):
    for x, y in loader:
        loss = torch.nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        left -= 1
        if left == 0:
            sys.exit(0)
        if how == "saves":
            torch.save(model.state_dict(), "model.pt")
            torch.save(model.state_dict(), os.environ["FIXED"])
            with open("../data/log.txt", "w") as log:
                log.write("step\n")
            assert open("../data/log.txt").read() == "step\n"
            if os.path.exists("../data/kept.txt"):
                os.remove("../data/kept.txt")
            torch.save(model.state_dict(), "../data/best.pt.new")
            os.replace("../data/best.pt.new", "../data/best.pt")
            assert torch.load(os.environ["FIXED"]) and torch.load("../data/best.pt")
PY
echo pictures >../data/pictures

# optimize CODE TRIALS HOW: with little time, no input, and the memory limit $limit
optimize() {
  (
    ${limit:-true}
    exec "$unidle" optimize --budget 1h --trials "$2" -- "$python" train.py "$3" >out.txt 2>err.txt </dev/null
  )
  local code=$?
  check "'$3' returns $1, not $code" test $code -eq "$1"
}

optimize 2 2 ends
check "no step was seen" grep -q "only 0 training steps" err.txt
optimize 1 2 asks
check "there is no terminal" grep -q "without a terminal" err.txt

export FIXED=$folder/fixed.pt
files=(model.pt "$FIXED" ../data/best.pt ../data/log.txt ../data/kept.txt)
for file in "${files[@]}"; do echo "the user's" >"$file"; done
optimize 0 1 saves
for file in "${files[@]}"; do
  check "$file is the user's" grep -qx "the user's" "$file"
done

# A program that fails may have destroyed files before: it is never retried with less protection than this
# machine offers.
cat >destroys.py <<'PY'
import shutil
import sys
import time

shutil.rmtree("checkpoints", ignore_errors=True)
open("results.txt", "w").write("begun")
if sys.argv[1] == "slow":
    time.sleep(1000)
sys.exit("no licence today")
PY
mkdir checkpoints
echo "the user's" | tee checkpoints/best.pt >results.txt
echo "batch_size: 4" >conf.yaml
for words in "-- $python destroys.py fails" "conf.yaml --benchmark -- $python destroys.py fails {config}" \
  "conf.yaml --benchmark -- $python destroys.py slow {config}"; do
  # shellcheck disable=SC2086  # they are words
  "$unidle" optimize --budget 20s $words >out.txt 2>err.txt </dev/null
  check "'$words' fails" test $? -ne 0
  if ! grep -qE "no (layers|write lock)" err.txt; then
    check "after '$words' checkpoints are the user's" grep -qx "the user's" checkpoints/best.pt
    check "after '$words' results are the user's" grep -qx "the user's" results.txt
    check "protection is not blamed" test "$(grep -c "with protection" err.txt)" = 0
  fi
done

optimize 0 2 varies
check "a run of any length has a rate" grep -Eq "^ +1  baseline +[0-9]" out.txt

# A failure only with workers is one failed trial; if it was the only trial, nothing is known.
optimize 1 2 hangs
check "a trial that hangs is ended" grep -q "took longer than" out.txt
limit='ulimit -d 5000000' optimize 1 2 eats
check "a trial that eats the memory" grep -Eq "failed .*(MemoryError|memory|worker)" out.txt
limit='ulimit -f 30000' optimize 1 2 fills
check "a trial that fills the disk" grep -Eq "failed .*(OSError|too large|worker)" out.txt
check "and leaves nothing" test ! -e full.bin

finish
