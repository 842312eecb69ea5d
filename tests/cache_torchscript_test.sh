#!/usr/bin/env bash
# unidle cache warm with TorchScript modules as predictors.
subcommand=cache
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
needs_torch
needs_engine

json() { python3 -c "import json, sys; d = json.load(open('out')); sys.exit(not ($1))" || fail "not true: $1: $(cat out)"; }

cat > models.py <<'PY'
import sys
from typing import Dict, List

import torch
from torch import Tensor, nn


class Embedding(nn.Module):
    """Of letters, by weights; the mean of a text's, and all of them."""

    def __init__(self, seed: int):
        super().__init__()
        torch.manual_seed(seed)
        self.weights = nn.Embedding(128, 8)
        self.scale = 1.0

    @torch.jit.export
    def configure(self, parameters: Dict[str, str]) -> None:
        self.scale = float(parameters["scale"])

    def forward(self, inputs: List[str]) -> List[Dict[str, Tensor]]:
        print("a batch of", len(inputs))
        results: List[Dict[str, Tensor]] = []
        for text in inputs:
            if "!" in text:
                raise ValueError("no exclamations please")
            letters = torch.tensor([ord(letter) for letter in text])
            each = self.weights(letters) * self.scale
            results.append({"mean": each.mean(0), "letters": each.t(), "count": torch.tensor(len(text))})
        return results


class Plain(nn.Module):
    def forward(self, inputs: Tensor) -> Tensor:
        return inputs


class TooFew(nn.Module):
    def forward(self, inputs: List[str]) -> List[Dict[str, Tensor]]:
        results: List[Dict[str, Tensor]] = []
        return results


if __name__ == "__main__":
    torch.jit.script(Embedding(1)).save("one.pt")
    torch.jit.script(Embedding(2)).save("two.pt")
    torch.jit.script(Plain()).save("plain.pt")
    torch.jit.script(TooFew()).save("few.pt")
PY
"$python" models.py || fail "Python could not make the modules"

cat > check.py <<'PY'
"""The entries of a cache against the module in Python: check.py FOLDER MODULE SCALE PARAMETERS INPUT..."""
import hashlib, struct, sys
import numpy as np, torch
from models import Embedding

folder, module, scale, parameters, *inputs = sys.argv[1:]
version = hashlib.sha256(open(module, "rb").read()).hexdigest()
model = Embedding(1 if module == "one.pt" else 2)
model.scale = float(scale)
types = {8: "<i8", 11: "<f4"}
for text in inputs:
    parts = [("t", "what", "feature"), ("t", "identity", "torchscript"), ("t", "version", version),
             ("t", "parameters", parameters), ("t", "layout", ""), ("b", "input", text)]
    key = hashlib.sha256(b"".join(kind.encode() + struct.pack("<QQ", len(name), len(value)) + name.encode() + value.encode()
                                  for kind, name, value in parts)).hexdigest()
    blob = open(f"{folder}/v1/blobs/{key[:2]}/{key}", "rb").read()
    count = struct.unpack_from("<I", blob, 24)[0]
    at, found = 64, {}
    for _ in range(count):
        name_bytes, kind, axes, _, begin, size = struct.unpack_from("<HBBIQQ", blob, at)
        shape = struct.unpack_from(f"<{axes}Q", blob, at + 24)
        at += 24 + 8 * axes
        found[blob[at:at + name_bytes].decode()] = np.frombuffer(blob[begin:begin + size], types[kind]).reshape(shape)
        at += -(-name_bytes // 8) * 8
    with torch.no_grad():
        wanted = model([text])[0]
    assert set(found) == set(wanted), found
    for name, value in wanted.items():
        np.testing.assert_allclose(found[name], value.numpy(), rtol=1e-6)
PY
printf 'one\nthree\ntwelve\n' > words

expect 0 warm features --inputs words --predictor one.pt --format json
json 'd["computed"] == 3 and d["failed"] == 0'
"$python" check.py features one.pt 1 '{}' one three twelve > python.txt 2>&1 || fail "other values: $(tail -3 python.txt)"
mkdir elsewhere && cp one.pt elsewhere/moved.pt
expect 0 warm features --inputs words --predictor elsewhere/moved.pt --format json
json 'd["there"] == 3'
expect 0 warm features --inputs words --predictor two.pt --workers 2 --format json
json 'd["computed"] == 3'
"$python" check.py features two.pt 1 '{}' one three > python.txt 2>&1 || fail "other values: $(tail -3 python.txt)"
expect 0 warm features --inputs words --predictor one.pt --parameters '{"scale": 2.5}' --format json
json 'd["computed"] == 3'
"$python" check.py features one.pt 2.5 '{"scale":2.5}' one three > python.txt 2>&1 || fail "other values: $(tail -3 python.txt)"

# An input for which it raises does not affect the others, and gets the message.
printf 'four\nnever!\nfive\n' > some
expect 1 warm features --inputs some --predictor one.pt --format json
json 'd["computed"] == 2 and d["failed"] == 1 and d["failures"][0]["kind"] == "refused"'
has out "no exclamations please"

expect 1 warm features --inputs words --predictor few.pt
has out "gives 0 entries for"

# A file that is not a predictor is refused at once, with a description of valid ones.
refused warm features --inputs words --predictor plain.pt
has err "List[Dict[str, Tensor]]"
refused warm features --inputs words --predictor models.py
has err "not a TorchScript module"
head -c 3000 one.pt > cut.pt
refused warm features --inputs words --predictor cut.pt
refused warm features --inputs words --predictor few.pt --parameters '{"scale": 1}'
has err "takes no parameters"
refused warm features --inputs words --predictor one.pt --parameters '{"size": 1}'
refused warm features --inputs words --predictor no-such-file.pt
has err "TorchScript"

finish
