#!/usr/bin/env bash
# compile.mode: graph with the real libtorch_cuda, on a CUDA runtime that computes nothing and keeps time:
# what torch captures, and what becomes of a step that cannot be captured. What the replays learn only a
# real device can show.
subcommand=
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
needs_torch
needs_pretend_gpu "$UNIDLE_LIB/libunidle_cuda.so"
make_houses 500
cat >models.py <<'EOF'
import torch
from torch import nn


class Waits(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(2, 1)
        self.drop = nn.Dropout(0.5)  # its random numbers go on when the capture is broken

    def forward(self, x):
        y = self.linear(self.drop(x))
        if float(y.sum()) > 1e30:  # the host waits for the device
            y = y * 2
        return y


torch.manual_seed(1)
torch.jit.script(nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Linear(16, 1))).save("plain.pt")
torch.jit.script(Waits()).save("waits.pt")
EOF
"$python" models.py || fail "Python could not make the models"
cat >houses.yaml <<'EOF'
workload: torchscript
script: {model: plain.pt, table: houses.csv, targets: price}
batch.size: 50
optimizer: {lr: 0.01, fused: true}
data.on_device: true
metrics.interval: 20
validation.interval: 0
train: {samples: 2000, on_nan: skip}
compile.mode: graph
device: cuda
EOF

# The compiler of TorchScript asks the driver for more than the fake has, so it is off.
# train NAME SETTING...: leaves what was said in err and what the fake device noted in NAME.said
train() {
  local name=$1
  shift
  LD_PRELOAD="$UNIDLE_LIB/libunidle_fake_cuda.so" UNIDLE_FORCE_CUDA=1 PYTORCH_TENSOREXPR=0 UNIDLE_FAKE_CUDA_LOG="$PWD/$name.said" \
    "$UNIDLE_BIN/unidle-train" -q houses.yaml "$@" >out 2>err || fail "$name: exit code $?: $(cat err)"
  has out "torchscript on cuda"
}

train plain
lacks err "cannot be captured"
lacks plain.said "captured:"

train waits script.model=waits.pt
has err "compile.mode: graph is off from here on: it cannot be captured"
has out "2000 samples in 40 steps"

train several batch.size=25 batch.accumulation=2 grad.clip_norm=1 ema.decay=0.9 optimizer.schedule=cosine
lacks err "cannot be captured"
lacks several.said "captured:"

# A process that finds no GPU of its own says so, before it waits for the others.
RANK=1 WORLD_SIZE=2 LOCAL_RANK=1 LOCAL_WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=1 UNIDLE_FORCE_CUDA=1 \
  LD_PRELOAD="$UNIDLE_LIB/libunidle_fake_cuda.so" "$UNIDLE_BIN/unidle-train" -q houses.yaml >out 2>err
[ $? = 3 ] || fail "exit code of a process without a GPU"
has err "process 1 of this machine wants GPU 1, and torch sees 1"

train unfused optimizer.fused=false
has err "compile.mode: graph is off: it needs optimizer.fused: true"
finish
