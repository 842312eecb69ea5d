#!/usr/bin/env bash
# check --speed on a CUDA runtime that computes nothing and keeps time: nothing of CUDA is loaded at its
# start, and the figures are those of that runtime.
subcommand=check
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
needs_torch
needs_engine
needs_pretend_gpu "$UNIDLE_LIB/libunidle_cuda.so"  # built if torch has CUDA
export UNIDLE_FORCE_CUDA=1

LD_PRELOAD="$UNIDLE_LIB/libunidle_fake_cuda.so" \
  UNIDLE_FAKE_CUDA="devices=2 fp32_tflops=2 tf32_tflops=8 half_tflops=16 pinned_gbs=4 pageable_gbs=0.8" \
  UNIDLE_FAKE_CUDA_LOG="$PWD/said" "$unidle" check --speed --format json >out 2>err
[ $? -le 1 ] || fail "check --speed: $(cat err)"
# A host that is slow to queue can only make it slower than the device.
"$python" - <<'PY' || fail "other figures than the device's: $(cat out)"
import json

devices = {one["device"]: one for one in json.load(open("out"))["speed"]["torch"]["devices"]}
gpu = devices["cuda:0"]
rates = gpu["matmul_tflops"]
for name, most in (("fp32", 2), ("tf32", 8), ("bf16", 16), ("fp16", 16)):
    assert 0 < rates[name] <= most * 1.02, (name, rates)
assert rates["fp32"] < rates["tf32"] < rates["bf16"], rates
assert gpu["copy_pageable_bytes_s"] <= 0.8e9 * 1.02 and gpu["copy_pinned_bytes_s"] <= 4e9 * 1.02, gpu
assert gpu["copy_pageable_bytes_s"] < gpu["copy_pinned_bytes_s"], gpu
assert gpu["launch_s"] > 0 and "cpu" in devices
PY
[ "$(cat said)" = "context: 0" ] || fail "a context on another device: $(cat said)"

# If the runtime finds no device, the figures are those of the CPU, and one line says why.
LD_PRELOAD="$UNIDLE_LIB/libunidle_fake_cuda.so" UNIDLE_FAKE_CUDA="devices=0" "$unidle" check --speed >out 2>err
[ $? -le 1 ] || fail "check --speed without a device: $(cat err)"
has out "matmul"
finish
