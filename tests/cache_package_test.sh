#!/usr/bin/env bash
# unidle cache warm with a model compiled by AOTInductor as predictor.
subcommand=cache
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
needs_torch
needs_engine

json() { python3 -c "import json, sys; d = json.load(open('out')); sys.exit(not ($1))" || fail "not true: $1: $(cat out)"; }

cat > models.py <<'PY'
import json
import sys

import torch
from torch import nn

LETTERS = "ACDEFGHIKLMNPQRSTVWY"


class Embedding(nn.Module):
    """Of residues: the mean of a peptide's, all of them, and their products in pairs."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.weights = nn.Embedding(len(LETTERS) + 1, 8)

    def forward(self, tokens, lengths):
        each = self.weights(tokens)
        real = torch.arange(tokens.shape[1]).unsqueeze(0) < lengths.unsqueeze(1)
        each = each * real.unsqueeze(2)
        return each.sum(1) / lengths.unsqueeze(1), each, each @ each.transpose(1, 2)


OUTPUTS = [["mean", []], ["residues", [1]], ["pairs", [1, 2]]]
CONTRACTS = {
    "model": {"alphabet": LETTERS, "longest": 12, "outputs": OUTPUTS},
    "few": {"alphabet": LETTERS, "outputs": OUTPUTS[:2]},
    "wrong": {"alphabet": LETTERS, "outputs": [["mean", [1]], *OUTPUTS[1:]]},
    "silent": None,
}

if __name__ == "__main__":
    import zipfile

    batch, length = torch.export.Dim("batch"), torch.export.Dim("length")
    example = (torch.ones(3, 7, dtype=torch.long), torch.full((3,), 7))
    program = torch.export.export(Embedding().eval(), example, dynamic_shapes=({0: batch, 1: length}, {0: batch}))
    metadata = {"unidle": json.dumps(CONTRACTS["model"])}
    torch._inductor.aoti_compile_and_package(
        program, package_path="model.pt2", inductor_configs={"aot_inductor.metadata": metadata}
    )
    # The others have the same code with another contract, because compiling takes long.
    for name, contract in list(CONTRACTS.items())[1:]:
        with zipfile.ZipFile("model.pt2") as given, zipfile.ZipFile(f"{name}.pt2", "w") as made:
            for item in given.infolist():
                content = given.read(item)
                if item.filename.endswith("_metadata.json"):
                    held = json.loads(content)
                    held.pop("unidle")
                    content = json.dumps({**held, **({"unidle": json.dumps(contract)} if contract else {})})
                made.writestr(item, content)
PY
if ! "$python" models.py > made.txt 2>&1; then
  if grep -qiE "compiler|g\+\+" made.txt; then
    echo "skipped: no compiler for AOTInductor here: $(tail -n 1 made.txt)"
    exit 77
  fi
  fail "Python could not make the packages: $(tail -n 3 made.txt)"
fi

cat > check.py <<'PY'
"""The entries of a cache against the module in Python: check.py FOLDER PACKAGE INPUT..."""
import hashlib, struct, sys
import numpy as np, torch
from models import LETTERS, OUTPUTS, Embedding

folder, package, *inputs = sys.argv[1:]
version = hashlib.sha256(open(package, "rb").read()).hexdigest()
for text in inputs:
    parts = [("t", "what", "feature"), ("t", "identity", "aotinductor"), ("t", "version", version),
             ("t", "parameters", "{}"), ("t", "layout", ""), ("b", "input", text)]
    key = hashlib.sha256(b"".join(kind.encode() + struct.pack("<QQ", len(name), len(value)) + name.encode() + value.encode()
                                  for kind, name, value in parts)).hexdigest()
    blob = open(f"{folder}/v1/blobs/{key[:2]}/{key}", "rb").read()
    at, found = 64, {}
    for _ in range(struct.unpack_from("<I", blob, 24)[0]):
        name_bytes, kind, axes, _, begin, size = struct.unpack_from("<HBBIQQ", blob, at)
        assert kind == 11, kind
        shape = struct.unpack_from(f"<{axes}Q", blob, at + 24)
        at += 24 + 8 * axes
        found[blob[at:at + name_bytes].decode()] = np.frombuffer(blob[begin:begin + size], "<f4").reshape(shape)
        at += -(-name_bytes // 8) * 8
    with torch.no_grad():  # alone, so without padding
        wanted = Embedding()(torch.tensor([[1 + LETTERS.index(letter) for letter in text]]), torch.tensor([len(text)]))
    assert sorted(found) == sorted(name for name, _ in OUTPUTS), found
    for (name, _), value in zip(OUTPUTS, wanted):
        np.testing.assert_allclose(found[name], value[0].numpy(), rtol=1e-5, atol=1e-5)
PY
printf 'ACDEF\nG\nKLMNPQRSTVWY\nWW\n' > peptides

# With different lengths in one batch, each is cut to its own.
expect 0 warm features --inputs peptides --predictor model.pt2 --format json
json 'd["computed"] == 4 and d["failed"] == 0'
"$python" check.py features model.pt2 ACDEF G KLMNPQRSTVWY WW > python.txt 2>&1 || fail "other values: $(tail -3 python.txt)"
mkdir elsewhere && cp model.pt2 elsewhere/moved.pt2
expect 0 warm features --inputs peptides --predictor elsewhere/moved.pt2 --workers 2 --format json
json 'd["there"] == 4'

# An invalid input is refused on its own.
printf 'ACX\nACDEFGHIKLMNPQ\nVV\n' > some
expect 1 warm features --inputs some --predictor model.pt2 --format json
json 'd["computed"] == 1 and d["failed"] == 2 and all(f["kind"] == "refused" for f in d["failures"])'
has out "does not know: X"
has out "has 14 letters"

# A package whose output differs from its contract computes nothing.
expect 1 warm features --inputs peptides --predictor few.pt2
has out "gives 3 tensors"
expect 1 warm features --inputs peptides --predictor wrong.pt2
has out "along the input"

refused warm features --inputs peptides --predictor silent.pt2
has err "does not say what it takes"
refused warm features --inputs peptides --predictor model.pt2 --parameters '{"scale": 2}'
has err "takes no parameters"
head -c 3000 model.pt2 > cut.pt2
refused warm features --inputs peptides --predictor cut.pt2
has err "not an AOTInductor package"

# A package is unpacked under $TMPDIR, into a folder that is removed when the program ends or, if that is
# killed, by the next one.
cat > killed.py <<'PY'
"""Kills a predictor that has loaded its package: killed.py PROGRAM PACKAGE; prints the folders that stay."""
import glob, json, os, struct, subprocess, sys, time

program = subprocess.Popen([sys.argv[1], "predictor", sys.argv[2]], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
head = json.dumps({"type": "hello", "protocol": 1, "parameters": {}}).encode()
program.stdin.write(struct.pack("<4sIQ", b"UPP1", len(head), 0) + head)
program.stdin.flush()
_, length, _ = struct.unpack("<4sIQ", program.stdout.read(16))
assert json.loads(program.stdout.read(length))["type"] == "ready"
program.kill()
program.wait()
folders = glob.glob(os.environ["TMPDIR"] + "/*")
for folder in folders:
    os.utime(folder, (time.time() - 3600,) * 2)  # a new folder may not be locked yet, and is left alone
print(*folders)
PY
mkdir tmp
export TMPDIR="$PWD/tmp"
left=$("$python" killed.py "$UNIDLE_BIN/unidle-train" model.pt2) || fail "the predictor did not get ready"
case $left in "$TMPDIR"/unidle-package-*) ;; *) fail "unpacked elsewhere: $left" ;; esac
expect 0 warm others --inputs peptides --predictor model.pt2 --format json
json 'd["computed"] == 4'
[ -z "$(ls tmp)" ] || fail "left in \$TMPDIR: $(ls tmp)"

finish
