#!/usr/bin/env bash
# The engine under torchrun: one record has all processes, and a killed one loses only the work since the last
# checkpoint: torchrun restarts all, --resume auto resumes, and the run ends with the same loss. For 2 and for
# 4 processes, or for $WORLD, with $KILLS kills; tools/attack.sh has more.
subcommand=
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
needs_torch
needs_engine
kills=${KILLS:-1}
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
train.warmup_samples: 0
checkpoint.interval: 4000
device: cpu
cpu.threads: 1
YAML
port() { echo $((21000 + RANDOM % 11000)); }

# awaited COMMAND ...: waits until it succeeds; false when the agent has ended, or after two minutes
awaited() {
  local waited
  for ((waited = 0; waited < 2400; ++waited)); do
    "$@" && return 0
    kill -0 "$agent" 2>/dev/null || return 1
    sleep 0.05
  done
  return 1
}
all_are_new() {
  local found old
  mapfile -t found < <(pgrep -P "$agent" -f unidle-train)
  [ "${#found[@]}" = "$world" ] || return 1
  for old in "${workers[@]}"; do [[ " ${found[*]} " != *" $old "* ]] || return 1; done
  workers=("${found[@]}")
}
newest() { readlink "again.$world/checkpoint.pt"; }
has_gone_on() { [ "$(newest)" != "$reached" ]; }

# survives WORLD: a run with kills ends like one without them.
survives() {
  world=$1 workers=()
  local samples=$((40000 + 16000 * (kills - 1))) killed=0
  local torchrun=("$python" -m torch.distributed.run --no-python --nproc-per-node "$world" --master-addr 127.0.0.1)
  local train=("$UNIDLE_BIN/unidle-train" houses.yaml -q --format json --resume auto "train.samples=$samples")
  expect 0 run -o "record.$world" -- "${torchrun[@]}" --master-port "$(port)" "${train[@]}" "checkpoint.folder=whole.$world"
  cp out whole.json
  [ "$(wc -l <whole.json)" = 1 ] || fail "more than the first process answers: $(cat whole.json)"

  "${torchrun[@]}" --master-port "$(port)" --max-restarts "$kills" --monitor-interval 0.1 "${train[@]}" \
    "checkpoint.folder=again.$world" >again.json 2>again.err &
  agent=$!
  while [ "$killed" -lt "$kills" ] && awaited all_are_new; do
    reached=$(newest)
    awaited has_gone_on || break
    sleep "0.0$((RANDOM % 10))"
    kill -9 "${workers[$((RANDOM % world))]}" && killed=$((killed + 1))
  done
  [ "$killed" = "$kills" ] || fail "$world processes: only $killed of $kills kills: $(tail -n 20 again.err)"
  wait "$agent" || fail "torchrun of $world processes failed: $(tail -n 20 again.err)"

  "$python" - "$world" "$samples" >python.txt 2>&1 <<'PY' || fail "$world processes: $(cat python.txt again.err)"
import json, sqlite3, sys

world, samples = int(sys.argv[1]), int(sys.argv[2])
steps = samples // (10 * world)
whole, again = (json.loads(open(name + ".json").read()) for name in ("whole", "again"))
assert whole["steps"] == steps, whole
assert 0 < again["steps"] < steps, "it began anew, or was not killed: %s" % again
assert again["loss_last"] == whole["loss_last"] and again["metric"] == whole["metric"], (whole, again)
record = sqlite3.connect("record.%d/record.db" % world)
seen = dict(record.execute("SELECT process, COUNT(*) FROM steps GROUP BY process"))
assert list(seen.values()) == [steps] * world, seen
# Each validates its share of the hundred or so held-out rows.
shares = [rows for (rows,) in record.execute("SELECT samples FROM spans WHERE kind = 'validate'")]
assert len(shares) == world and max(shares) - min(shares) <= 1 and 50 < sum(shares) < 150, shares
PY
}

for world in ${WORLD:-2 4}; do survives "$world"; done
# Processes with other data do not train together.
mkdir other
cp houses.yaml net.pt other
head -n 400 houses.csv >other/houses.csv
common=$(port)
one_of_two() {  # one_of_two RANK: in its folder
  RANK=$1 LOCAL_RANK=$1 WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=$common \
    timeout 120 "$UNIDLE_BIN/unidle-train" houses.yaml train.samples=400 checkpoint.interval=0 -q
}
(cd other && one_of_two 1 >out 2>err) &
second=$!
one_of_two 0 >out 2>err
[ $? = 1 ] || fail "the first of two with other data: $(cat err)"
wait "$second"
[ $? = 2 ] || fail "the second of two with other data: $(cat other/err)"
has other/err "data: is '"
has err "not so in the first process"

# A process without peers says so in one line, without torch's frames.
RANK=1 LOCAL_RANK=1 WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=$(port) \
  timeout 120 "$UNIDLE_BIN/unidle-train" houses.yaml ranks.timeout_s=1 -q >out 2>err
[ $? = 1 ] || fail "a process alone: $(cat err)"
has err "rank 1 cannot reach the first process"
[ "$(wc -l <err)" = 1 ] || fail "a process alone: more than one line: $(cat err)"
finish
