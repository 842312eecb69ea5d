#!/usr/bin/env bash
# Several processes of the engine on a CUDA runtime that computes nothing and keeps time: which GPU each of
# them takes. NCCL calls driver functions that this runtime lacks, so a run that reaches it ends.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
needs_torch
needs_pretend_gpu "$UNIDLE_LIB/libunidle_cuda.so"
make_houses 200
"$python" -c 'import torch; torch.jit.script(torch.nn.Linear(2, 1)).save("line.pt")' || fail "Python could not make the model"
cat >houses.yaml <<'EOF2'
workload: torchscript
script: {model: line.pt, table: houses.csv, targets: price}
batch.size: 10
validation.interval: 0
train: {samples: 400, on_nan: go-on, warmup_samples: 40}
device: cuda
ranks.timeout_s: 60
EOF2
port=$("$python" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')

# rank NUMBER PROGRAM [NAME=VALUE...]: leaves out.NUMBER, err.NUMBER, code.NUMBER, and the device's log in
# said.NUMBER
rank() {
  local number=$1 program=$2
  shift 2
  rm -f "said.$number"
  env RANK="$number" LOCAL_RANK="$number" WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT="$port" \
    UNIDLE_FORCE_CUDA=1 PYTORCH_TENSOREXPR=0 UNIDLE_FAKE_CUDA=devices=2 UNIDLE_FAKE_CUDA_LOG="$PWD/said.$number" \
    LD_PRELOAD="$UNIDLE_LIB/libunidle_fake_cuda.so" "$@" "$program" -q houses.yaml >"out.$number" 2>"err.$number"
  echo $? >"code.$number"
}

# Each has its own. Without libunidle_cuda.so the gradients are exchanged over Gloo.
mkdir bin
cp "$UNIDLE_BIN/unidle-train" bin/
for number in 0 1; do rank $number bin/unidle-train & done
wait
for number in 0 1; do
  [ "$(cat code.$number)" = 0 ] || fail "rank $number: $(cat err.$number)"
  has err.$number "libunidle_cuda.so could not be used"
  [ "$(head -n 1 said.$number)" = "context: $number" ] || fail "rank $number is on another GPU: $(cat said.$number)"
done
has out.0 "400 samples in 20 steps"

# The same one is visible to both.
for number in 0 1; do rank $number "$UNIDLE_BIN/unidle-train" CUDA_VISIBLE_DEVICES=1 & done
wait
for number in 0 1; do
  [ "$(cat code.$number)" = 3 ] || fail "rank $number takes the GPU of another: $(cat code.$number) $(cat err.$number)"
  has err.$number "ranks 0 and 1 have the same GPU"
done

# They reach NCCL, whose own reason is reported, and create no context on the other's device.
for number in 0 1; do rank $number "$UNIDLE_BIN/unidle-train" & done
wait
for number in 0 1; do
  has err.$number "NCCL error"
  [ "$(cat said.$number)" = "context: $number" ] || fail "rank $number has contexts elsewhere: $(cat said.$number)"
done

# So they do if only one is visible to each, as with srun --gpus-per-task=1.
for number in 0 1; do rank $number "$UNIDLE_BIN/unidle-train" CUDA_VISIBLE_DEVICES=$number & done
wait
for number in 0 1; do
  lacks err.$number "wants GPU"
  lacks err.$number "the same GPU"
  has err.$number "NCCL error"
done
finish
