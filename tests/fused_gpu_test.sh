#!/usr/bin/env bash
# compile.mode: fused on a real NVIDIA device: the compiled loss is captured, and learns the same as the step
# without it. Prints steps/s of off, graph and fused. UNIDLE_FUSED_WORKLOADS replaces the three workloads.
subcommand=
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
needs_gpu
needs_engine
command -v g++ >/dev/null || {
  echo "skipped: there is no g++"
  exit 77
}
"$python" -c 'import triton' 2>/dev/null || {
  echo "skipped: $python has no Triton"
  exit 77
}
export UNIDLE_PYTHON=$python UNIDLE_LOG=info
read -ra workloads <<<"${UNIDLE_FUSED_WORKLOADS:-superres keypoint protein}"

# Generated pictures, without a package: smooth noise as PNG.
mkdir -p pictures
"$python" - <<'EOF2' || fail "Python could not make the pictures"
import struct, torch, zlib

torch.manual_seed(1)
for number in range(6):
    noise = torch.rand(1, 3, 24, 24)
    pixels = torch.nn.functional.interpolate(noise, size=(512, 512), mode="bicubic").clamp(0, 1)[0]
    rows = (pixels * 255).to(torch.uint8).permute(1, 2, 0).contiguous().reshape(512, 1536)
    raw = b"".join(b"\0" + bytes(row.tolist()) for row in rows)
    part = lambda kind, data: struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    head = struct.pack(">IIBBBBB", 512, 512, 8, 2, 0, 0, 0)
    png = b"\x89PNG\r\n\x1a\n" + part(b"IHDR", head) + part(b"IDAT", zlib.compress(raw)) + part(b"IEND", b"")
    open("pictures/%d.png" % number, "wb").write(png)
EOF2

# Sizes that load a GPU, in bf16, with one shape each.
common=(device=cuda precision.amp=bf16 optimizer.fused=true metrics.interval=1000 validation.interval=0 cpu.threads=4
  train.warmup_samples=640)
settings_of() {
  case $1 in
    superres) echo batch.size=32 model.width=64 train.samples=12800 loader.workers=6 ;;
    keypoint) echo batch.size=32 train.samples=6400 loader.workers=6 prepare.samples=128 ;;
    protein) echo batch.size=64 train.samples=12800 loader.workers=4 prepare.source=peptides.txt ;;
    *) echo batch.size=256 train.samples=51200 ;;
  esac
}
prepare_of() {
  case $1 in
    superres) echo prepare.source=pictures ;;
    keypoint) echo prepare.samples=128 ;;
    protein) echo prepare.source=peptides.txt ;;
  esac
}
# Peptides of one length: batches of one shape.
awk 'BEGIN { srand(3); for (i = 0; i < 200; i++) { s = ""; for (j = 0; j < 40; j++) s = s substr("ACDEFGHIKLMNPQRSTVWY", int(rand() * 20) + 1, 1); print s } }' >peptides.txt

# train NAME WORKLOAD SETTING...: its answer in NAME.json, its messages in NAME.err
train() {
  local name=$1 workload=$2
  shift 2
  # shellcheck disable=SC2046
  "$UNIDLE_BIN/unidle-train" -q "$UNIDLE_SOURCE/workloads/$workload/tuned.yaml" "${common[@]}" $(settings_of "$workload") \
    --format json "$@" >"$name.json" 2>"$name.err" || fail "$name: exit code $?: $(tail -n 20 "$name.err")"
}

# All compilers at once, each for a run of a few steps.
for workload in "${workloads[@]}"; do
  # shellcheck disable=SC2046
  "$UNIDLE_BIN/unidle-train" "$UNIDLE_SOURCE/workloads/$workload/tuned.yaml" "${common[@]}" $(settings_of "$workload") \
    $(prepare_of "$workload") --prepare >prepare.out 2>&1 || fail "$workload: no data: $(cat prepare.out)"
done
for workload in "${workloads[@]}"; do
  train "$workload-first" "$workload" compile.mode=fused train.samples=320 train.warmup_samples=64 &
done
wait
for workload in "${workloads[@]}"; do
  echo "$workload, compiling: $(grep -h 'compile.mode' "$workload-first.err" | tr '\n' ';')"
  for mode in off graph fused; do
    train "$workload-$mode" "$workload" "compile.mode=$mode"
  done
  "$python" - "$workload" <<'EOF2' || fail "$workload: fused: $(cat "$workload-fused.err")"
import json, sys

name = sys.argv[1]
answers = {mode: json.load(open("%s-%s.json" % (name, mode))) for mode in ("off", "graph", "fused")}
batch = int(answers["off"]["effective"]["batch.size"])
rates = ", ".join("%s %.1f" % (mode, answer["samples_per_s"] / batch) for mode, answer in answers.items())
print("%s, steps/s: %s; losses %s" % (name, rates, [answer["loss_last"] for answer in answers.values()]))
modes = {mode: answer["effective"]["compile.mode"] for mode, answer in answers.items()}
assert modes == {mode: mode for mode in modes}, modes
first, last = answers["off"]["loss_first"], answers["off"]["loss_last"]
for mode in ("graph", "fused"):
    assert abs(answers[mode]["loss_last"] - last) <= 0.1 * last + 0.02 * first, mode
EOF2
done
finish
