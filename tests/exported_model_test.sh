#!/usr/bin/env bash
# The workload torchscript with programs of torch.export: they learn as their models do in Python.
subcommand=
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
needs_torch
needs_engine
export OMP_NUM_THREADS=1 PYTHONPATH=$UNIDLE_SOURCE/python UNIDLE_LIBRARY=$UNIDLE_BIN/../lib/libunidle.so
make_houses 400

cat >models.py <<'PY'
import torch
from torch import nn
from torch.export import Dim, export, save


def mlp():
    return nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Linear(16, 1))


class Many(nn.Module):
    """Much that a program can hold: modes, a weight with two names, buffers, constants, sizes in the graph."""

    def __init__(self, dropout=0.0):
        super().__init__()
        self.first, self.second = nn.Linear(2, 8), nn.Linear(8, 8)
        self.again = nn.Linear(8, 8)
        self.again.weight = self.second.weight
        self.norm, self.frozen = nn.BatchNorm1d(8), nn.BatchNorm1d(8)
        self.frozen.weight.requires_grad_(False)
        self.dropout = nn.Dropout(dropout)
        self.last = nn.Linear(8, 1)
        self.register_buffer("scale", torch.full((8,), 0.5))
        self.register_buffer("shift", torch.linspace(0, 1, 8), persistent=False)

    def forward(self, rows):
        hidden = self.dropout(torch.relu(self.norm(self.first(rows))))
        hidden = hidden + self.again(torch.tanh(self.second(hidden))) * self.scale + self.shift
        hidden = self.frozen(hidden + torch.tensor([1.0, 2.0]).repeat(4))
        halves = hidden.reshape(rows.shape[0] * 2, -1)
        return self.last(torch.cat(halves.reshape(rows.shape[0], 2, 4).unbind(1), 1)) + 1


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.wide = nn.Linear(2, 32)
        self.mix = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.3, batch_first=True)
        self.last = nn.Linear(32, 1)

    def forward(self, rows):
        return self.last(self.mix(self.wide(rows).unflatten(1, (4, 8))).flatten(1))


def seeded(make, *arguments, **options):
    torch.manual_seed(1)
    model = make(*arguments, **options)
    if hasattr(model, "frozen"):
        model.frozen.eval()
    return model


def rows_of(part):
    """All rows of a part of the table, as the engine has them."""
    import unidle.data

    table = unidle.data.table("houses.csv", targets=["price"], validation=0.2, part=part, standardize=True)
    return tuple(torch.as_tensor(field) for field in next(iter(unidle.data.Loader(table, len(table)))))


def write(path, model, rows=Dim("rows"), inputs=None):
    example = inputs or (torch.randn(7, 2),)
    save(export(model, example, dynamic_shapes=tuple({0: rows} for _ in example)), path)


if __name__ == "__main__":
    from torch.export.pt2_archive._package import PT2ArchiveWriter

    write("mlp.pt2", seeded(mlp))
    write("many.pt2", seeded(Many))
    write("dropout.pt2", seeded(Many, 0.5))
    write("attention.pt2", seeded(Attention))
    write("evaluation.pt2", seeded(Many).eval())
    write("seven.pt2", seeded(mlp), rows=None)
    write("few.pt2", seeded(mlp), rows=Dim("rows", min=4, max=16))
    write("three.pt2", nn.Linear(3, 1), inputs=(torch.randn(7, 3),))
    write("two.pt2", nn.Bilinear(2, 2, 1), inputs=(torch.randn(7, 2), torch.randn(7, 2)))
    with PT2ArchiveWriter("compiled.pt2") as archive:
        archive.write_string("data/aotinductor/model/x.cpp", "")
PY
"$python" models.py >python.txt 2>&1 || fail "Python could not export the models: $(tail -5 python.txt)"

cat >houses.yaml <<'YAML'
workload: torchscript
script: {model: mlp.pt2, table: houses.csv, targets: price}
optimizer: {name: sgd, lr: 0.02, momentum: 0, weight_decay: 0}
validation.interval: 0
device: cpu
cpu.threads: 1
YAML
rows=$("$python" -c 'import models; print(len(models.rows_of("train")[0]))') || fail "no rows"

# All rows are one batch, so that their order does not matter.
cat >agree.py <<'PY'
"""The losses, the metric and the weights of the engine's run against a loop in Python: agree.py MODEL STEPS"""
import json, sqlite3, sys
import torch
import models

name, steps = sys.argv[1], int(sys.argv[2])
model = models.seeded({"mlp": models.mlp, "many": models.Many}[name])
(x, y), (held_x, held_y) = models.rows_of("train"), models.rows_of("validation")
optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
theirs = []
for _ in range(steps):
    loss = torch.nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    theirs.append(loss.item())
ours = [v for (v,) in sqlite3.connect("record/record.db").execute("SELECT loss FROM steps ORDER BY idx")]
assert len(ours) == steps and theirs[-1] < 0.5 * theirs[0], (ours, theirs)
assert max(abs(a - b) / b for a, b in zip(ours, theirs)) < 1e-4, (ours, theirs)
with torch.no_grad():
    rmse = (model.eval()(held_x) - held_y).square().mean().sqrt().item()
metric = json.loads(open("out").read())["metric"]["rmse"]
assert abs(metric - rmse) / rmse < 1e-4, (metric, rmse)
weights = torch.load("weights.pt", weights_only=True)
state = {key: value for key, value in model.state_dict().items() if key != "again.weight"}
assert set(weights) == set(state), (set(weights), set(state))
for key, value in state.items():
    torch.testing.assert_close(weights[key], value, rtol=1e-3, atol=1e-5)
PY
for model in mlp many; do
  rm -rf record saved
  expect 0 run -o record -- "$UNIDLE_BIN/unidle-train" houses.yaml "script.model=$model.pt2" "batch.size=$rows" \
    "train.samples=$((20 * rows))" checkpoint.interval=1000000 checkpoint.folder=saved -q --format json
  cp out answer
  expect 0 export saved -o weights.pt
  cp answer out
  "$python" agree.py "$model" 20 >python.txt 2>&1 || fail "$model: $(tail -3 python.txt)"
done

# Dropout works while it trains, and only then: the same weights, another loss.
cat >modes.py <<'PY'
import json
import torch
import models

answer = json.load(open("out"))
model = models.seeded(models.Attention).eval()
with torch.no_grad():
    held_out, training = (torch.nn.functional.mse_loss(model(x), y).item()
                          for x, y in (models.rows_of("validation"), models.rows_of("train")))
assert abs(answer["metric"]["rmse"] ** 2 - held_out) / held_out < 1e-4, (answer, held_out)
assert abs(answer["loss_first"] - training) / training > 1e-3, (answer, training)
PY
expect 0 train houses.yaml script.model=attention.pt2 optimizer.lr=0 "batch.size=$rows" "train.samples=$rows" --format json
"$python" modes.py >python.txt 2>&1 || fail "modes of attention: $(tail -3 python.txt)"
expect 0 train houses.yaml script.model=dropout.pt2 batch.size=32 train.samples=3200 precision.amp=bf16 --format json
has out '"rmse"'

refused train houses.yaml script.model=evaluation.pt2
has err "model.train()"
refused train houses.yaml script.model=seven.pt2
has err "was exported for 7 rows and no other number"
has err "dynamic_shapes"
refused train houses.yaml script.model=few.pt2 batch.size=32
has err "was exported for 4 to 16 rows, and this batch has 32"
refused train houses.yaml script.model=three.pt2
has err "takes rows of 3 features, and the table has 2"
refused train houses.yaml script.model=two.pt2
has err "its forward takes one tensor"
refused train houses.yaml script.model=compiled.pt2
has err "holds 0 exported programs"
head -c 3000 mlp.pt2 >cut.pt2
refused train houses.yaml script.model=cut.pt2
has err "cut.pt2: is neither a TorchScript module nor an exported program, or is damaged"
for swap in 's/torch.ops.aten.relu/torch.ops.aten.relx/' 's/"nodes"/"nades"/' 's/"weight_0"/"weight_9"/'; do
  LC_ALL=C sed "$swap" mlp.pt2 >damaged.pt2
  cmp -s mlp.pt2 damaged.pt2 && fail "$swap changes nothing"
  refused train houses.yaml script.model=damaged.pt2
  has err "damaged.pt2: is damaged, or cannot be trained here"
done
finish
