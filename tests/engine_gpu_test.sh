#!/usr/bin/env bash
# compile.mode: graph on a real NVIDIA device: the step is captured, and learns what it learns without.
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

# train NAME SETTING...: its answer in NAME.json
train() {
  local name=$1
  shift
  "$UNIDLE_BIN/unidle-train" -q houses.yaml --format json "$@" >"$name.json" 2>err || fail "$name: exit code $?: $(cat err)"
}

# alike NAME SETTING...: with and without a graph
alike() {
  local name=$1
  shift
  train "$name-eager" "$@"
  train "$name-graph" compile.mode=graph "$@"
  "$python" - "$name" <<'EOF' || fail "$name: with a graph it learns another thing"
import json, sys

eager, graph = (json.load(open("%s-%s.json" % (sys.argv[1], kind))) for kind in ("eager", "graph"))
assert graph["effective"]["compile.mode"] == "graph", graph["effective"]
print("%s: %.0f samples/s as it is, %.0f as a graph" % (sys.argv[1], eager["samples_per_s"], graph["samples_per_s"]))
rmse = [answer["metric"]["rmse"] for answer in (eager, graph)]
assert abs(rmse[0] - rmse[1]) < 0.05 + 0.1 * rmse[0], rmse
EOF
}

alike fp32
alike bf16 precision.amp=bf16
alike fp16 precision.amp=fp16
alike parts batch.size=25 batch.accumulation=2 grad.clip_norm=1 ema.decay=0.99 optimizer.schedule=cosine
alike sgd optimizer.name=sgd optimizer.lr=0.0001 train.on_nan=skip

# Several GPUs: their gradients go over NCCL.
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
