#!/usr/bin/env bash
# The C++ workloads and their Python peers from the same weights on the same batches: the same losses for 20
# steps of plain gradient descent. All training data is one batch, so that the order of samples does not
# matter; except for protein, whose noise depends on positions in a batch: there the peer uses the engine's
# order.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
needs_torch
train="$UNIDLE_BIN/unidle-train"
[ -x "$train" ] || { echo "skipped: built without torch"; exit 77; }
steps=20
export OMP_NUM_THREADS=1

"$python" - <<'PY'
import datetime, math
with open("daily.csv", "w") as file:
    print("date,temp_max,wind,weather", file=file)
    for day in range(250):
        date = datetime.date(2020, 1, 1) + datetime.timedelta(days=day)
        print(f"{date},{10 + 9 * math.sin(day / 58) + 2 * math.sin(1.7 * day):.2f},{1 + day % 5},", file=file, end="")
        print("rain" if day % 3 == 0 else "sun", file=file)
import random
draws = random.Random(4)
with open("peptides.txt", "w") as file:
    for _ in range(24):
        print("".join(draws.choices("ACDEFGHIKLMNPQRSTVWY", k=draws.randint(5, 12))), file=file)
PY

# Pictures of exactly one crop, mirror-symmetric: both sides see the same pixels.
make_pictures() {
  "$python" - <<'PY'
import os
import numpy
from PIL import Image
draws = numpy.random.default_rng(3)


def write(path, half):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    Image.fromarray(numpy.concatenate([half, half[:, ::-1]], axis=1)).save(path)


for part, count in (("train", 6), ("validation", 1)):
    for number in range(count):
        half = draws.integers(0, 256, (8, 4, 3), dtype=numpy.uint8)
        write(f"data/{part}/low/{number}.png", half)
        write(f"data/{part}/high/{number}.png", numpy.asarray(Image.fromarray(half).resize((16, 32))))
PY
}

# rows WORKLOAD: the number of prepared training samples, which make a batch.
rows() {
  case $1 in
    timeseries) "$python" -c "import numpy; print(len(numpy.load('data/train.npy')) - 10)" ;;
    recsys) cat data/log_part*.csv | grep -c ,train, ;;
    keypoint) "$python" -c "import numpy; print(len(numpy.load('data/train/image_0.npy')))" ;;
    superres) find data/train/high -name '*.png' | wc -l ;;
    protein) echo 5 ;;  # does not divide them, so that batches span epochs
  esac
}

# agree WORKLOAD RATE TOLERANCE "SETTINGS" "OPTIONS OF THE PEER"
agree() {
  local workload=$1 rate=$2 tolerance=$3 batch
  # Unquoted to split words.
  # shellcheck disable=SC2206
  local settings=($4) options=($5)
  printf 'workload: %s\n' "$workload" >config.yaml
  rm -rf data checkpoints record
  settings+=(data.folder=data checkpoint.folder=checkpoints device=cpu cpu.threads=1 optimizer.name=sgd
    optimizer.momentum=0 optimizer.weight_decay=0 validation.interval=0)
  if [ "$workload" = superres ]; then
    make_pictures
  else
    check "$workload --prepare" "$train" config.yaml "${settings[@]}" --prepare
  fi
  batch=$(rows "$workload")
  settings+=("batch.size=$batch")
  [ "$workload" != protein ] || options+=(--engine-order --first-sample "$batch" --accumulation 1)
  # Initial weights: a step with rate 0 changes none, and gradient descent without momentum has no state.
  check "$workload, first weights" "$train" config.yaml "${settings[@]}" optimizer.lr=0 "train.samples=$batch" \
    checkpoint.interval=1000000
  check "$workload" "$unidle" run -o record -- "$train" config.yaml "${settings[@]}" "optimizer.lr=$rate" \
    "train.samples=$((batch * (steps + 1)))" --resume checkpoints -q
  "$python" "$UNIDLE_SOURCE/bench/peers/$workload.py" --mode naive --data data --weights checkpoints/checkpoint.pt \
    --sgd --lr "$rate" --batch "$batch" --samples $((batch * steps)) --threads 1 --losses "${options[@]}" \
    >peer.json 2>err.txt || {
    fail "the peer of $workload: $(tail -n 5 err.txt)"
    return
  }
  "$python" - "$workload" "$tolerance" $steps <<'PY' || fail "$workload: the losses are not the same"
import json, sqlite3, sys
name, tolerance, steps = sys.argv[1], float(sys.argv[2]), int(sys.argv[3])
theirs = json.load(open("peer.json"))["losses"]
record = sqlite3.connect("record/record.db")
ours = [value for (value,) in record.execute("SELECT loss FROM steps ORDER BY idx")]
assert len(ours) == len(theirs) == steps, (len(ours), len(theirs))
worst = max(abs(a - b) / abs(b) for a, b in zip(ours, theirs))
print([round(a, 6) for a in ours][:8], [round(b, 6) for b in theirs][:8]) if worst >= tolerance else None
print(f"{name}: loss {theirs[0]:.5f} -> {theirs[-1]:.5f}, largest relative difference {worst:.1e}")
assert theirs[-1] < theirs[0], "nothing was learned"
assert worst < tolerance
PY
}

agree timeseries 0.05 1e-4 "prepare.source=daily.csv input.size=10 model.width=16 model.depth=2" \
  "--length 10 --width 16 --depth 2"
agree recsys 0.01 1e-4 "prepare.source=generated prepare.samples=300 model.width=64" "--width 64"
agree keypoint 0.00002 1e-3 "prepare.samples=8 input.size=64 model.width=8" "--width 8 --ema 0"
agree superres 0.1 1e-4 "input.size=32 model.width=16 model.depth=2" "--size 32 --width 16 --depth 2"
agree protein 0.02 1e-4 "prepare.source=peptides.txt model.width=32 model.depth=2" "--width 32 --depth 2"
finish
