#!/usr/bin/env bash
# unidle export and --weights for the workloads except superres (see weights_test.sh): the Python peers load
# every tensor by name, and return them. workload_peers_test.sh shows that equal weights give equal losses.
subcommand=
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
needs_torch
needs_engine

"$python" - <<'PY'
import datetime, math, random
with open("daily.csv", "w") as file:
    print("date,temp_max,wind,weather", file=file)
    for day in range(250):
        date = datetime.date(2020, 1, 1) + datetime.timedelta(days=day)
        print(f"{date},{10 + 9 * math.sin(day / 58):.2f},{1 + day % 5},{'rain' if day % 3 == 0 else 'sun'}", file=file)
draws = random.Random(4)
with open("peptides.txt", "w") as file:
    for _ in range(24):
        print("".join(draws.choices("ACDEFGHIKLMNPQRSTVWY", k=draws.randint(5, 12))), file=file)
PY
cat >peer.py <<'PY'
"""peer.py FOLDER WORKLOAD: take the exported weights, or compare those that came back."""
import sys

sys.path.insert(0, sys.argv[1])
import torch

try:
    from safetensors.torch import load_file, save_file
except ImportError:  # their own package reads and writes them if it is installed
    load_file = save_file = None
module = __import__(sys.argv[2])


def model_like(weights):
    width = {
        "timeseries": lambda: module.Forecaster(weights["lstm.weight_ih_l0"].shape[1], 16, 2),
        "recsys": lambda: module.Model(weights["play.layer0.weight"].shape[1], 32),
        "keypoint": lambda: module.Model(8),
        "protein": lambda: module.Model(32, 2),
    }
    return width[sys.argv[2]]()


def counted(name):
    """Whether a forward pass changes it."""
    return name.endswith(("running_mean", "running_var", "num_batches_tracked"))


if sys.argv[3] == "take":
    weights = torch.load("ours.pt", weights_only=True)
    model = model_like(weights)
    model.load_state_dict(weights, strict=True)
    if load_file:
        same = load_file("ours.safetensors")
        assert same.keys() == weights.keys() and all(torch.equal(same[name], weights[name]) for name in same)
    torch.manual_seed(9)
    other = model_like(weights).state_dict()
    torch.save(other, "theirs.pt")
    save_file(other, "theirs.safetensors") if save_file else torch.save(other, "theirs.safetensors")
else:
    theirs = torch.load("theirs.pt", weights_only=True)
    for back in ("back-pt.pt", "back-st.pt"):
        ours = torch.load(back, weights_only=True)
        assert ours.keys() == theirs.keys(), (back, ours.keys() ^ theirs.keys())
        changed = [name for name in theirs if not counted(name) and not torch.equal(ours[name], theirs[name])]
        assert not changed, (back, changed)
    print(f"{sys.argv[2]}: {len(theirs)} tensors there and back")
PY

# there_and_back WORKLOAD SETTING...
there_and_back() {
  local workload=$1 kind
  shift
  printf 'workload: %s\n' "$workload" >config.yaml
  rm -rf data saved back-pt back-st
  local settings=(data.folder=data device=cpu cpu.threads=1 validation.interval=0 batch.size=2 train.samples=2
    train.warmup_samples=0 checkpoint.interval=2 "$@")
  expect 0 train config.yaml "${settings[@]}" --prepare
  expect 0 train config.yaml "${settings[@]}" checkpoint.folder=saved
  expect 0 export saved -o ours.pt -o ours.safetensors
  "$python" peer.py "$UNIDLE_SOURCE/bench/peers" "$workload" take >python.txt 2>&1 || fail "$workload: $(cat python.txt)"
  expect 0 train config.yaml "${settings[@]}" optimizer.lr=0 checkpoint.folder=back-pt --weights theirs.pt
  expect 0 train config.yaml "${settings[@]}" optimizer.lr=0 checkpoint.folder=back-st --weights theirs.safetensors
  for kind in back-pt back-st; do expect 0 export "$kind" -o "$kind.pt"; done
  "$python" peer.py "$UNIDLE_SOURCE/bench/peers" "$workload" back >python.txt 2>&1 || fail "$workload: $(cat python.txt)"
  cat python.txt
}

there_and_back timeseries prepare.source=daily.csv input.size=10 model.width=16 model.depth=2
there_and_back recsys prepare.source=generated prepare.samples=300 model.width=32
there_and_back keypoint prepare.samples=8 input.size=64 model.width=8
there_and_back protein prepare.source=peptides.txt model.width=32 model.depth=2
finish
