#!/usr/bin/env bash
# Trials of a program that destroys all files it finds: with layers (if this machine has them) no file of the
# user changes, the program does not notice, no tracker and no token is reached, and nothing is left behind,
# whichever process was killed.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
needs_torch
export HOME=$folder/home TMPDIR=$folder/tmp
mkdir -p home/project/runs/old home/models tmp
cd home/project || exit 1

cat >train.py <<'PY'
import os
import pathlib
import sqlite3
import subprocess
from os import rename, unlink
from shutil import move, rmtree

unlink_of_a_path = pathlib.Path.unlink

import torch

rmtree(os.path.realpath("models"))                      # an absolute link out of the folder
assert not os.path.exists(os.path.expanduser("~/models"))
os.makedirs(os.path.expanduser("~/models"))
unlink_of_a_path(pathlib.Path("notes.txt"))
subprocess.run("rm -rf runs/old && chmod 700 . && truncate -s 0 ~/dotfile", shell=True, check=True)
move("train.log", os.path.expanduser("~/models/train.log"))
try:
    rename("data", "data.old")
except OSError:
    pass                                                # overlayfs's answer for folders without permission
with sqlite3.connect(os.path.expanduser("~/study.db")) as base:
    base.execute("create table if not exists t (x)")
seen = {name: os.environ.get(name) for name in ("WANDB_MODE", "WANDB_API_KEY", "HF_TOKEN", "MLFLOW_TRACKING_URI", "NEPTUNE_MODE")}
assert seen["WANDB_MODE"] == seen["NEPTUNE_MODE"] == "offline" and not seen["WANDB_API_KEY"] and not seen["HF_TOKEN"], seen
assert seen["MLFLOW_TRACKING_URI"].startswith("file:///"), seen
assert open(os.path.expanduser("~/.netrc")).read() == ""

model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
rows = torch.utils.data.TensorDataset(torch.randn(4000, 4), torch.randn(4000, 1))
for epoch in range(1000):
    for x, y in torch.utils.data.DataLoader(rows, batch_size=4):
        loss = torch.nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    torch.save(model.state_dict(), "best.pt")
PY
mkdir data && echo sample >data/sample
for file in best.pt train.log notes.txt runs/old/model.pt ../models/large.bin ../dotfile ../.netrc; do echo "the user's" >"$file"; done
ln -s "$HOME/models" models
listing() { (cd "$HOME" && find . -path ./project/.unidle -prune -o -printf '%p %y %m %s %T@ %i %l\n' -a -type f -exec sha256sum {} + | sort); }
before=$(listing)

search() { WANDB_API_KEY=abc HF_TOKEN=abc PYTHONDONTWRITEBYTECODE=1 "$unidle" optimize --budget 30s --trials 1 "$@" </dev/null; }
search --format json -- "$python" train.py --token s3cret-word >../../out.json 2>../../err.txt
code=$?
cd "$folder" || exit 1
if ! grep -q '"protection": "layers"' out.json; then
  echo "skipped: no layers here: $(tail -n 3 err.txt)"
  exit 77
fi
check "returns 0" test $code -eq 0
check "every file is as it was" test "$(listing)" = "$before"
check "nothing is left behind" test -z "$(ls -A tmp)"
check "no secret is written down" test -z "$(grep -rl s3cret-word out.json "$UNIDLE_HOME")"
check "the record is its user's alone" test "$(stat -c %a "$UNIDLE_HOME"/runs/*-optimize/record.db)" = 600

# Killed with SIGKILL: the files stay, and the next search cleans up.
cd home/project || exit 1
export WANDB_API_KEY=abc PYTHONDONTWRITEBYTECODE=1
"$unidle" optimize --budget 5m --fresh -- "$python" train.py </dev/null >/dev/null 2>../../err.txt &
pid=$!  # of unidle itself, not of a shell that starts it
for _ in $(seq 600); do
  [ -n "$(find "$TMPDIR" -name 'best.pt' 2>/dev/null | head -n 1)" ] && break
  sleep 0.1
done
kill -9 $pid
wait $pid 2>/dev/null
cd "$folder" || exit 1
check "every file is as it was after kill -9" test "$(listing)" = "$before"
check "and something is left" test -n "$(ls -A tmp)"
# Processes that unidle had started may take a moment to disappear.
timeout 60 flock -x tmp/unidle-optimize-* true
touch -d '2 minutes ago' tmp/unidle-optimize-*
(cd home/project && search -- false >/dev/null 2>&1)
check "which the next search removes" test -z "$(ls -A tmp)"
finish
