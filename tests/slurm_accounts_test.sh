#!/usr/bin/env bash
# unidle slurm with a real Slurm that keeps accounts: jobs that its controller has forgotten, and a node that
# goes away.
subcommand=slurm; . "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$(dirname "${BASH_SOURCE[0]}")/slurm_cluster.sh"
accounts=yes
start_cluster || { echo "skipped: Slurm does not run jobs here"; exit 77; }

submit() {  # NAME OPTION... -- COMMAND...: its id is in $id
  local name=$1
  shift
  expect 0 submit --format json --name "$name" --cpus-per-task 1 --mem 400M "$@"
  id=$(python3 -c 'import json; print(json.load(open("out"))["id"])')
}

# forgotten ID: waits until only accounting knows the job; at most three minutes.
forgotten() {
  for _ in $(seq 900); do
    if ! scontrol show job "$1" >/dev/null 2>&1; then return 0; fi
    sleep 0.2
  done
  fail "the controller still knows job $1"
}

# job KEY...: facts about its job from the JSON in `out`, one word each.
job() {
  python3 - "$@" <<'EOF'
import json, sys
job = json.load(open("out"))["jobs"][0]
for key in sys.argv[1:]:
    print(job[key] if key != "exit" else job[key]["code"], end=" ")
EOF
}

# Without a record, only the accounts know its resource use.
used=$(sbatch --parsable --mem 400M --output=/dev/null --wrap 'srun python3 -c "
import time
held = bytearray(b\"x\" * 100_000_000)
end = time.process_time() + 2
while time.process_time() < end: pass
time.sleep(2)"')
submit good --gpus 2 -- bash -c 'echo "epoch 1 loss 0.5"'; good=$id
submit bad --gpus 0 -- bash -c 'exit 7'; bad=$id
submit lost --gpus 0 -- sleep 300; lost=$id
submit sweep --gpus 0 --array 0-1 -- true; sweep=$id
for _ in $(seq 900); do
  node=$(squeue -h -j "$lost" -t RUNNING -o %N)
  # Other jobs may run on the same node: they must be over before it goes away.
  if [ "$(squeue -h -o %A | sort -u)" = "$lost" ] && [ -n "$node" ] && [ -f "results/unidle_$lost/record.db" ]; then
    break
  fi
  sleep 0.2
done
# Its node goes away: nobody requeues the job.
check "the node is down" scontrol update NodeName="$node" State=DOWN Reason=test
expect 1 analyze "$lost"
has out "NODE_FAIL"
has out "no fault of the program"

forgotten "$good"
expect 0 analyze "$good" --format json
[ "$(job state gpus cpus nodes exit)" = "COMPLETED 2 1 1 0 " ] || fail "good: $(job state gpus cpus nodes exit)"
expect 0 analyze "$good"  # through the comment, from anywhere
has out "COMPLETED after"
forgotten "$used"
expect 0 analyze "$used" --format json
python3 - <<'EOF' || fail "what the accounts tell: $(cat out)"
import json
job = json.load(open("out"))["jobs"][0]
assert job["use"]["peak_memory_bytes"] > 90e6 and job["use"]["cpus"] > 0 and job["diagnosis"] is None, job
EOF
forgotten "$bad"
expect 1 analyze "$bad" --format json
[ "$(job state exit)" = "FAILED 7 " ] || fail "bad: $(job state exit)"
forgotten "$lost"
expect 1 analyze "$lost"
has out "NODE_FAIL"
forgotten "$sweep"
expect 0 analyze "$sweep"
has out "Job ${sweep}_0 sweep"
has out "Job ${sweep}_1 sweep"
expect 0 top
lacks err "accounting"
has out "good"
expect 2 analyze 99999
finish
