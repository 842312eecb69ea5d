#!/usr/bin/env bash
# compile.mode: graph with the real libtorch_cuda, on a CUDA runtime that computes nothing and keeps time:
# what torch captures, and what happens to a step that cannot be captured. Only a real device can show what
# the replays learn.
subcommand=
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
needs_torch
needs_pretend_gpu "$UNIDLE_LIB/libunidle_cuda.so"
make_houses 2000
cat >models.py <<'EOF'
import torch
from torch import nn


class Waits(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(2, 1)
        self.drop = nn.Dropout(0.5)  # its random numbers continue when the capture fails

    def forward(self, x):
        y = self.linear(self.drop(x))
        if float(y.sum()) > 1e30:  # the host waits for the device
            y = y * 2
        return y


torch.manual_seed(1)
torch.jit.script(nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Linear(16, 1))).save("plain.pt")
torch.jit.script(Waits()).save("waits.pt")


class Wide(nn.Module):
    """Its step takes a few hundred MB, nearly all of them for what lies between layers."""

    def __init__(self, waits: bool):
        super().__init__()
        self.waits = waits
        self.first, self.last = nn.Linear(2, 4096), nn.Linear(4096, 1)

    def forward(self, x):
        y = self.first(x)
        for _ in range(8):
            y = torch.relu(y + 0.5)
        if self.waits and float(y.sum()) > 1e30:
            y = y * 2
        return self.last(y)


for waits in (False, True):
    torch.jit.script(Wide(waits)).save("wide%d.pt" % waits)
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

# The compiler of TorchScript calls driver functions that the fake lacks, so it is off.
# train NAME SETTING...: leaves the messages in err and the fake device's log in NAME.said
train() {
  local name=$1
  shift
  LD_PRELOAD="$UNIDLE_LIB/libunidle_fake_cuda.so" UNIDLE_FORCE_CUDA=1 PYTORCH_TENSOREXPR=0 UNIDLE_FAKE_CUDA_LOG="$PWD/$name.said" \
    "$UNIDLE_BIN/unidle-train" -q houses.yaml "$@" >out 2>err || fail "$name: exit code $?: $(cat err)"
  [ "${!#}" = json ] || has out "torchscript on cuda"
}

train plain
lacks err "cannot be captured"
lacks plain.said "captured:"

# Nothing is computed here, so comparisons are meaningless and the step is captured again and again.
train again train.samples=2000 --format json
has out '"compile.mode":"graph"'
lacks err "graph is off"

train waits script.model=waits.pt
has err "compile.mode: graph is off from here on: it cannot be captured"
has out "2000 samples in 40 steps"

# Values chosen by the device: a graph, bf16, and a longer run, unless the command line gives its length.
train auto compile.mode=auto precision.amp=auto --format json
has out '"compile.mode":"graph"'
has out '"precision.amp":"bf16"'
sed 's/samples: 2000,/samples: 2000, samples_on_gpu: 3000,/' houses.yaml >longer.yaml
mv longer.yaml houses.yaml
train longer
has out "3000 samples in 60 steps"
train shorter train.samples=1000
has out "1000 samples in 20 steps"
sed -i 's/ samples_on_gpu: 3000,//' houses.yaml

train several batch.size=25 batch.accumulation=2 grad.clip_norm=1 ema.decay=0.9 optimizer.schedule=cosine
lacks err "cannot be captured"
lacks several.said "captured:"

# A step that takes more than half of the memory is captured: neither torch's cached memory nor the comparison
# prevents it. A failed capture leaves nothing behind that would make the memory too small.
for wide in wide0 wide1; do
  UNIDLE_FAKE_CUDA="total_gb=0.33" train $wide script.model=$wide.pt batch.size=1000 train.samples=20000
  lacks err "out of memory"
  lacks $wide.said "captured: cudaMalloc"
done
has err "it cannot be captured"
UNIDLE_FAKE_CUDA="total_gb=0.33" train wide0 script.model=wide0.pt batch.size=1000 train.samples=20000 --format json
has out '"compile.mode":"graph"'

# What an observer sees of a device that is the limit: its time for each step, and that the host waits for it,
# not for copies.
cat >look.py <<'END'
import json, sqlite3, sys

db = sqlite3.connect("record/record.db")
steps, whole, transfer, sync = db.execute(
    "select count(*), sum(duration_ns), sum(transfer_ns), sum(sync_ns) from steps").fetchone()
timed, device_s = db.execute(
    "select count(*), sum(value) from points where series = (select id from series where name = 'step.device')").fetchone()
notes = [json.loads(body) for body, in db.execute("select body from notes")]
device = [note for note in notes if note["type"] == "device"][-1]
assert timed >= steps - int(sys.argv[1]) > 0, (timed, steps)
assert 0.7 < device_s * 1e9 / whole < 1.3, (device_s, whole)
assert transfer < 0.2 * sync, (transfer, sync)
assert device["kept_up"] < 0.2 * device["looked_at"], device
assert device["uuid"].startswith("GPU-00000001-"), device
END
for mode in off graph; do
  rm -rf record
  LD_PRELOAD="$UNIDLE_LIB/libunidle_fake_cuda.so" UNIDLE_FORCE_CUDA=1 PYTORCH_TENSOREXPR=0 UNIDLE_FAKE_CUDA="kernel_us=100" \
    "$unidle" run -o record -- "$UNIDLE_BIN/unidle-train" -q houses.yaml compile.mode=$mode data.on_device=false loader.workers=1 \
    loader.pin_memory=true transfer.non_blocking=true metrics.interval=1000 train.samples=10000 >out 2>err ||
    fail "observed, $mode: exit code $?: $(cat err)"
  # Captured steps are not timed: as nothing is computed, there are several.
  "$python" look.py 8 || fail "observed, $mode"
done

# Copies from page-locked memory run beside the device's computation: here both take equally long.
for mode in off graph; do
  for pinned in true false; do
    UNIDLE_FAKE_CUDA="kernel_us=100 pinned_gbs=0.0002 pageable_gbs=0.0002" train copies compile.mode=$mode data.on_device=false \
      loader.workers=1 loader.pin_memory=$pinned transfer.non_blocking=true metrics.interval=1000 train.samples=10000 --format json
    mv out $pinned.json
  done
  "$python" - <<'END' || fail "copies are not overlapped, $mode"
import json

beside, after = (json.load(open(name + ".json"))["samples_per_s"] for name in ("true", "false"))
assert beside > 1.2 * after, (beside, after)
END
done

# A process without its own GPU says so before it waits for the others.
RANK=1 WORLD_SIZE=2 LOCAL_RANK=1 LOCAL_WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=1 UNIDLE_FORCE_CUDA=1 \
  LD_PRELOAD="$UNIDLE_LIB/libunidle_fake_cuda.so" "$UNIDLE_BIN/unidle-train" -q houses.yaml >out 2>err
[ $? = 3 ] || fail "exit code of a process without a GPU"
has err "process 1 of this machine wants GPU 1, and torch sees 1"

train unfused optimizer.fused=false
has err "compile.mode: graph is off: it needs optimizer.fused: true"
finish
