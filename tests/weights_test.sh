#!/usr/bin/env bash
# Weights from the engine to Python and back: unidle export, unidle train --weights, and the Python peer of
# superres.
subcommand=
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
needs_torch
needs_engine
superres=${UNIDLE_SOURCE:?}/workloads/superres/tuned.yaml
small=(input.size=32 model.width=16 model.depth=2 train.warmup_samples=0 cpu.threads=1)

expect 0 train "$superres" --prepare
expect 0 train "$superres" "${small[@]}" train.samples=16 checkpoint.interval=8 checkpoint.folder=saved \
  optimizer.lr=0.01 --format json
cp out trained.json
expect 0 export saved
has out "checkpoint-000000000016.safetensors"
expect 2 train "$superres" --weights early.pt --resume saved
has err "--resume excludes --weights"
expect 0 export saved/checkpoint-000000000008.pt -o early.pt -o early.safetensors

# The Python model loads all names and shapes, and has the engine's PSNR.
"$python" - "$UNIDLE_SOURCE/bench/peers" "$UNIDLE_HOME/data/superres/validation" >python.txt 2>&1 <<'EOF' || fail "$(cat python.txt)"
import json, os, struct, sys
sys.path.insert(0, sys.argv[1])
import numpy as np, torch
import superres

def safetensors(path):
    with open(path, "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        data = file.read()
    types = {"F32": np.float32, "I64": np.int64}
    header.pop("__metadata__")
    return {
        name: torch.from_numpy(np.frombuffer(data[slice(*entry["data_offsets"])], types[entry["dtype"]]).copy())
        .reshape(entry["shape"])
        for name, entry in header.items()
    }

torch.set_num_threads(1)
name = "saved/checkpoint-000000000016"
weights = torch.load(name + ".weights.pt", weights_only=True)
same = safetensors(name + ".safetensors")
assert weights.keys() == same.keys(), weights.keys() ^ same.keys()
assert all(torch.equal(weights[key], same[key]) for key in same)
early = torch.load("early.pt", weights_only=True)
assert not torch.equal(early["head_pointwise.weight"], weights["head_pointwise.weight"])
model = superres.Net(16, 2)
model.load_state_dict(weights, strict=True)
psnr = superres.validate(model, sys.argv[2], torch.contiguous_format, None)
engine = json.load(open("trained.json"))["metric"]["psnr"]
assert abs(psnr - engine) < 1e-3, (psnr, engine)

# And back: weights from Python, as saved by torch and by safetensors.
torch.manual_seed(5)
model = superres.Net(16, 2)
torch.save(model.state_dict(), "python.pt")
torch.save({key: value for key, value in model.state_dict().items() if key != "up1.bias"}, "lacks.pt")
torch.save(superres.Net(32, 2).state_dict(), "other.pt")
torch.save({"lr": 0.1}, "none.pt")
EOF

# One step that changes no parameter, from Python's weights; then their parameters are in the checkpoint.
expect 0 train "$superres" "${small[@]}" train.samples=4 optimizer.lr=0 checkpoint.interval=4 checkpoint.folder=back \
  --weights python.pt
expect 0 export back -o back.pt -o back.safetensors
"$python" - >python.txt 2>&1 <<'EOF' || fail "$(cat python.txt)"
import torch
ours, theirs = torch.load("back.pt", weights_only=True), torch.load("python.pt", weights_only=True)
assert ours.keys() == theirs.keys(), ours.keys() ^ theirs.keys()
changed = {key for key in theirs if not torch.equal(ours[key], theirs[key])}
assert changed == {"head_norm.running_mean", "head_norm.running_var", "head_norm.num_batches_tracked"}, changed
EOF
expect 0 train "$superres" "${small[@]}" train.samples=4 --weights back.safetensors
expect 0 train "$superres" "${small[@]}" train.samples=4 --weights back

refused train "$superres" "${small[@]}" --weights lacks.pt
has err "has no 'up1.bias'"
refused train "$superres" "${small[@]}" --weights other.pt
has err "another model"
refused train "$superres" "${small[@]}" --weights none.pt
refused train "$superres" "${small[@]}" --weights /dev/null
refused export none.pt
refused export nowhere
finish
