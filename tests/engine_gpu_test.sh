#!/usr/bin/env bash
# compile.mode: graph on a real NVIDIA device: the step is captured, and learns the same as without.
subcommand=
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
needs_gpu
needs_engine
make_houses 2000
cat >model.py <<'EOF'
import torch
from torch import nn

torch.manual_seed(1)
layers = [nn.Linear(2, 64), nn.ReLU()]
for _ in range(8):
    layers += [nn.Linear(64, 64), nn.ReLU()]
torch.jit.script(nn.Sequential(*layers, nn.Linear(64, 1))).save("deep.pt")
EOF
"$python" model.py || fail "Python could not make the model"
cat >houses.yaml <<'EOF'
workload: torchscript
script: {model: deep.pt, table: houses.csv, targets: price}
batch.size: 50
optimizer: {lr: 0.001, fused: true}
data.on_device: true
metrics.interval: 100
validation.interval: 0
train.samples: 100000
device: cuda
EOF

# train NAME SETTING...: its answer in NAME.json, its messages in NAME.err
train() {
  local name=$1
  shift
  "$UNIDLE_BIN/unidle-train" -q houses.yaml --format json "$@" >"$name.json" 2>"$name.err" ||
    fail "$name: exit code $?: $(cat "$name.err")"
}

# compare ONE OTHER: they learn the same
compare() {
  "$python" - "$1" "$2" <<'END' || fail "$2 learns another thing than $1"
import json, sys

names = sys.argv[1:]
answers, said = [json.load(open(name + ".json")) for name in names], [open(name + ".err").read() for name in names]
for name, answer in zip(names, answers):
    print("%-16s %8.0f samples/s, loss %s, rmse %s, %s" % (
        name, answer["samples_per_s"], answer["loss_last"], answer["metric"]["rmse"], answer["effective"]["compile.mode"]))
wants_graph = names[1].endswith("-graph")
assert answers[1]["effective"]["compile.mode"] == ("graph" if wants_graph else "off"), "no graph: " + said[1]
rmse = [answer["metric"]["rmse"] for answer in answers]
assert None not in rmse, ("not finite", rmse, said)
assert abs(rmse[0] - rmse[1]) < 0.05 + 0.1 * rmse[0], (rmse, said)
END
}

# alike NAME SETTING...: with and without a graph
alike() {
  local name=$1
  shift
  train "$name-eager" "$@"
  train "$name-graph" compile.mode=graph "$@"
  compare "$name-eager" "$name-graph"
}

alike fp32
alike bf16 precision.amp=bf16
alike fp16 precision.amp=fp16
alike parts batch.size=25 batch.accumulation=2 grad.clip_norm=1 ema.decay=0.99 optimizer.schedule=cosine
alike sgd optimizer.name=sgd optimizer.lr=0.0001 train.on_nan=skip

# Copies beside the computation: no batch is read while it is written. Rows and order are those of fp32.
alike beside data.on_device=false loader.workers=2 loader.pin_memory=true transfer.non_blocking=true
compare fp32-eager beside-eager

# Values chosen by the device. Names of results end like those with a graph.
train auto-graph compile.mode=auto precision.amp=auto
compare bf16-graph auto-graph

# Several GPUs: their gradients are exchanged through NCCL.
gpus=$(nvidia-smi -L | wc -l)
if [ "$gpus" -ge 2 ]; then
  train alone "batch.size=$((50 * 2))"
  for rank in 0 1; do
    RANK=$rank LOCAL_RANK=$rank WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=29471 \
      "$UNIDLE_BIN/unidle-train" -q houses.yaml --format json >together.$rank 2>err.$rank &
  done
  wait
  "$python" - <<'EOF' || fail "two processes learn another thing: $(cat err.0 err.1)"
import json

alone, together = (json.load(open(name))["metric"]["rmse"] for name in ("alone.json", "together.0"))
assert abs(alone - together) < 0.05 + 0.1 * alone, (alone, together)
EOF
else
  echo "one GPU: NCCL is not tried"
fi
finish
