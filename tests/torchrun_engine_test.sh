#!/usr/bin/env bash
# The engine under torchrun: one record sees all processes, and one that is killed costs what came after the
# last checkpoint: torchrun starts all again, --resume auto goes on, and the run ends with the same loss.
subcommand=
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
needs_torch
needs_engine
make_houses 500
"$python" - <<'PY' || fail "Python could not make the model"
import torch
torch.manual_seed(1)
torch.jit.script(torch.nn.Sequential(torch.nn.Linear(2, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))).save("net.pt")
PY
cat >houses.yaml <<'YAML'
workload: torchscript
script: {model: net.pt, table: houses.csv, targets: price}
batch.size: 10
optimizer.lr: 0.01
metrics.interval: 10
validation.interval: 0
train: {samples: 40000, warmup_samples: 0}
checkpoint.interval: 4000
device: cpu
cpu.threads: 1
YAML
torchrun=("$python" -m torch.distributed.run --no-python --nproc-per-node 2 --master-addr 127.0.0.1)
port() { echo $((21000 + RANDOM % 11000)); }

expect 0 run -o record -- "${torchrun[@]}" --master-port "$(port)" "$UNIDLE_BIN/unidle-train" houses.yaml -q \
  --format json --resume auto checkpoint.folder=whole
cp out whole.json
[ "$(wc -l <whole.json)" = 1 ] || fail "more than the first process answers: $(cat whole.json)"

"${torchrun[@]}" --master-port "$(port)" --max-restarts 1 "$UNIDLE_BIN/unidle-train" houses.yaml -q --format json \
  --resume auto checkpoint.folder=again >again.json 2>again.err &
agent=$!
for ((waited = 0; waited < 1200; ++waited)); do
  [ -e again/checkpoint.pt ] && break
  kill -0 "$agent" 2>/dev/null || break
  sleep 0.05
done
mapfile -t workers < <(pgrep -P "$agent" -f unidle-train)
kill -9 "${workers[$((RANDOM % 2))]}" || fail "no process to kill: $(cat again.err)"
wait "$agent" || fail "torchrun failed: $(tail -n 20 again.err)"

"$python" - >python.txt 2>&1 <<'PY' || fail "$(cat python.txt again.err)"
import json, sqlite3

whole, again = (json.loads(open(name + ".json").read()) for name in ("whole", "again"))
assert whole["samples"] == 40000, whole
assert 0 < again["samples"] < 40000, "it began anew, or was not killed: %s" % again
assert again["loss_last"] == whole["loss_last"] and again["metric"] == whole["metric"], (whole, again)
steps = dict(sqlite3.connect("record/record.db").execute("SELECT process, COUNT(*) FROM steps GROUP BY process"))
assert sorted(steps.values()) == [2000, 2000], steps
PY
finish
