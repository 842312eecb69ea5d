#!/usr/bin/env bash
# unidle train --tensorboard: TensorBoard itself reads the same values as in the run's answer and record, also
# after a resumed run.
subcommand=
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
needs_torch
needs_engine
if ! "$python" -c 'from tensorboard.backend.event_processing import event_accumulator' 2>/dev/null; then
  echo "skipped: $python has no tensorboard (./dev setup installs it)"
  exit 77
fi
make_houses 500
"$python" - <<'PY' || fail "Python could not make the model"
import torch
torch.manual_seed(1)
torch.jit.script(torch.nn.Linear(2, 1)).save("line.pt")
PY
cat >houses.yaml <<'YAML'
workload: torchscript
script: {model: line.pt, table: houses.csv, targets: price}
batch.size: 40
optimizer: {lr: 0.05, fused: true}
metrics.interval: 3
validation.interval: 2
train: {samples: 4000, warmup_samples: 0}
checkpoint: {folder: saved, interval: 1600}
device: cpu
cpu.threads: 1
YAML
cat >curves.py <<'PY'
"""curves.py FOLDER: tag -> [(step, value)], as TensorBoard shows them."""
import sys
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator


def curves(folder):
    events = EventAccumulator(folder, size_guidance={"scalars": 0})
    events.Reload()
    return {tag: [(e.step, e.value) for e in events.Scalars(tag)] for tag in events.Tags()["scalars"]}
PY

expect 0 run -o record -- "$UNIDLE_BIN/unidle-train" houses.yaml --tensorboard runs/whole --format json
"$python" - >python.txt 2>&1 <<'PY' || fail "a whole run: $(cat python.txt)"
import json, sqlite3, struct
from curves import curves

def f32(value):
    return struct.unpack("f", struct.pack("f", value))[0]

answer = json.loads(open("out").read())
told = curves("runs/whole")
record = sqlite3.connect("record/record.db")
recorded = sorted(  # a loss that is read later than its step is a metric
    [*record.execute("SELECT idx, loss FROM steps WHERE loss IS NOT NULL")]
    + [*record.execute("SELECT step, value FROM metrics WHERE name = 'loss'")]
)
assert len(recorded) == 100, len(recorded)
assert told["train/loss"] == [(step + 1, f32(loss)) for step, loss in recorded], told["train/loss"][:3]
assert told["train/loss"][-1][1] == f32(answer["loss_last"])
rmse = told["validation/rmse"]
assert len(rmse) == 6 and rmse[0][0] == 20 and rmse[-1][0] == 100, rmse
assert rmse[-1][1] == f32(answer["metric"]["rmse"]), (rmse, answer)
PY

# Resumed from the checkpoint after 80 steps, into the same folder: every step once, with its loss.
# TensorBoard reads files in the order of their names, which begin with the second.
mkdir runs/again
cp runs/whole/* runs/again/events.out.tfevents.0000000001.earlier
expect 0 train houses.yaml --resume saved/checkpoint-000000003200.pt --tensorboard runs/again --format json
"$python" - >python.txt 2>&1 <<'PY' || fail "a run that was taken up: $(cat python.txt)"
from curves import curves
assert curves("runs/again")["train/loss"] == curves("runs/whole")["train/loss"]
assert curves("runs/again")["validation/rmse"] == curves("runs/whole")["validation/rmse"]
PY
[ "$(ls runs/again | wc -l)" = 2 ] || fail "files: $(ls runs/again)"

# Each run of a grid has a folder; of several processes the first one writes.
expect 0 train houses.yaml --grid optimizer.lr=0.01,0.02 --grid seed=1 --tensorboard grid checkpoint.interval=0
[ "$(ls grid)" = $'optimizer.lr=0.01,seed=1\noptimizer.lr=0.02,seed=1' ] || fail "grid: $(ls grid)"
touch file
refused train houses.yaml --tensorboard file/runs
has err "file/runs"
finish
