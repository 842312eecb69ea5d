#!/usr/bin/env bash
# The workload torchscript: models saved by Python, trained on CSV files.
subcommand=
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
needs_torch
needs_engine
"$python" - <<'EOF' || fail "Python could not make the models"
import torch
from torch import nn
torch.manual_seed(1)
net = nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Dropout(0.0), nn.Linear(16, 1))
torch.jit.script(net).save("price.pt")
torch.jit.script(nn.Sequential(nn.Linear(2, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 3))).save("kind.pt")
torch.jit.script(nn.Linear(2, 5)).save("five.pt")
torch.jit.script(nn.Sequential(nn.Linear(2, 2))).save("two.pt")
torch.jit.script(nn.Flatten()).save("none.pt")
EOF
make_houses 2000
awk -F, 'NR == 1 { print "x,y,kind"; next }
         { print $1 "," $2 "," ($1 > 3 ? 0 : $2 > 1.5 ? 1 : 2) }' houses.csv >kinds.csv
cat >price.yaml <<'EOF'
workload: torchscript
script: {model: price.pt, table: houses.csv, targets: price}
batch.size: 64
optimizer: {lr: 0.01, fused: true}
data.on_device: true
metrics.interval: 20
validation.interval: 0
train.samples: 32000
EOF
# metric NAME: its value in the answer
metric() { grep -oE "\"$1\": ?[0-9.e-]+" out | grep -oE '[0-9.e-]+$'; }
expect 0 train price.yaml checkpoint.interval=32000 checkpoint.folder=saved --format json
awk -v rmse="$(metric rmse)" 'BEGIN { exit !(rmse > 0 && rmse < 0.3) }' || fail "rmse: $(cat out)"

# Python's model loads the weights, and predicts.
expect 0 export saved -o weights.pt
"$python" - >python.txt 2>&1 <<'EOF' || fail "$(cat python.txt)"
import torch
net = torch.jit.load("price.pt")
before = net.state_dict()["0.weight"].clone()
net.load_state_dict(torch.load("weights.pt", weights_only=True), strict=True)
assert not torch.equal(before, net.state_dict()["0.weight"])
EOF

expect 0 train price.yaml script.model=kind.pt script.table=kinds.csv script.targets=kind script.loss=cross-entropy \
  script.metric=accuracy --format json
awk -v right="$(metric accuracy)" 'BEGIN { exit !(right > 0.9 && right <= 1) }' || fail "accuracy: $(cat out)"

refused train price.yaml script.model=houses.csv
has err "is not a TorchScript module"
refused train price.yaml script.model=nowhere.pt
has err "nowhere.pt: is not there"
refused train price.yaml script.model=five.pt
has err "its forward takes"
refused train price.yaml script.model=none.pt script.targets=x,y script.table=kinds.csv
has err "has no parameter that learns"
refused train price.yaml script.model=two.pt script.table=kinds.csv script.targets=kind script.loss=cross-entropy \
  script.metric=accuracy
has err "script.targets: has numbers from 0 to 2, and two.pt gives 2 classes"
refused train price.yaml script.model=two.pt script.table=kinds.csv script.targets=kind script.loss=cross-entropy \
  script.metric=rmse
has err "script.metric: rmse of logits says nothing"
awk -F, 'NR == 1 || NR > 3 {print; next} {sub(/[^,]*$/, "0.5"); print}' kinds.csv >halves.csv
head -1 kinds.csv | grep -q 'kind$' || fail "kind is not the last column"
refused train price.yaml script.model=kind.pt script.table=halves.csv script.targets=kind script.loss=cross-entropy
has err "the loss cross-entropy expects the number of a class"
mkfifo pipe.pt
refused train price.yaml script.model=pipe.pt
has err "pipe.pt: is a pipe"
refused train price.yaml script.targets=cost
refused train price.yaml script.model=
has err "script.model"
finish
