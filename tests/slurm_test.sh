#!/usr/bin/env bash
# unidle slurm with a real Slurm: submitted jobs run observed, and their outcome is reported.
subcommand=slurm; . "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$(dirname "${BASH_SOURCE[0]}")/slurm_cluster.sh"

expect 2 analyze no-number
has err "is not a job id"
PATH=/nowhere expect 3 status
has err "does not belong to a Slurm cluster"

start_cluster || { echo "skipped: Slurm does not run jobs here"; exit 77; }

submit() {  # NAME OPTION... -- COMMAND...: its id is in $id
  local name=$1
  shift
  expect 0 submit --format json --name "$name" --cpus-per-task 1 --mem 400M "$@"
  id=$(python3 -c 'import json; print(json.load(open("out"))["id"])')
}

expect 0 submit --dry-run --partition main --time 4:00:00 -- python3 -c 'print("it is")'
has out "#SBATCH --time=4:00:00"
has out "#SBATCH --gres=gpu:1"
expect 1 submit --partition nowhere -- true
has err "Invalid partition"

submit late --time 1 -- bash -c 'for i in $(seq 300); do echo "step $i/300"; sleep 1; done'; late=$id
submit good -- bash -c 'echo "epoch 1 loss 0.5"; echo done'; good=$id
submit liar -- python3 -c 'import sys
try:
    raise RuntimeError("CUDA error: device lost")
except RuntimeError:
    import traceback; traceback.print_exc()
print("Training completed successfully")'; liar=$id
submit stopped -- sleep 300; stopped=$id
submit sweep --array 0-3 -- bash -c 'echo "task $SLURM_ARRAY_TASK_ID"'; sweep=$id
wait_for "$stopped" RUNNING
submit waits --nodes 4 --gpus 2 -- true; waits=$id

expect 0 status "$stopped"
has out "RUNNING for"
has out "Its time is over in"
expect 0 status "$waits"
has out "waits: "
expect 0 status
has out "liar"
check "cancelled" scancel "$stopped" "$waits"

wait_for "$good" COMPLETED
expect 0 analyze "$good"
has out "COMPLETED after"
check "its log" grep -q "epoch 1 loss 0.5" "results/gpu_run_${good}_detailed.log"
check "its record" test -f "results/unidle_$good/record.db"
check "diagnosis" "$unidle" diagnose "results/unidle_$good" --format json

wait_for "$liar" COMPLETED
expect 1 analyze "$liar"
has out "CUDA error: device lost"

wait_for "$stopped" CANCELLED
expect 1 analyze "$stopped" --format json
state=$(python3 -c 'import json; job = json.load(open("out"))["jobs"][0]; print(job["state"], job["diagnosis"]["schema"])')
[ "$state" = "CANCELLED unidle.diagnosis/1" ] || fail "cancelled: $state"

for task in 0 1 2 3; do
  wait_for "${sweep}_$task" COMPLETED
  check "task $task" grep -q "task $task" "results/gpu_run_${sweep}_${task}_detailed.log"
done
expect 0 analyze "$sweep"
has out "Job ${sweep}_3 sweep"

# The pace of a running job, compared with its limit.
for _ in $(seq 300); do grep -q "step 9/300" "results/gpu_run_${late}_detailed.log" && break; sleep 0.2; done
expect 0 status "$late"
has out "of 300, and needs"
has out "more than its limit"

# A folder on the node's own disk, filled before the command and removed after it.
mkdir local; echo rows >rows.csv
submit staged --scratch "$PWD/local" --stage rows.csv -- bash -c 'cat "$0"; dirname "$0"; ls "$TMPDIR"' '{scratch}/rows.csv'
staged=$id
wait_for "$staged" COMPLETED FAILED
has "results/gpu_run_${staged}_detailed.log" "rows.csv"
has "results/gpu_run_${staged}_detailed.log" "$PWD/local/unidle_$staged."
[ -z "$(ls local)" ] || fail "left on the node's disk: $(ls local)"

# A crash is not a signal of Slurm's: the job is not requeued, or it would crash forever.
submit crash --time 2 --signal INT@20 --requeue -- bash -c 'kill -SEGV $$'; crash=$id

# A signal before its time is over ends it; it is requeued and continues.
submit again --time 1 --signal INT@55 --requeue -- \
  bash -c 'if [ "${SLURM_RESTART_COUNT:-0}" = 0 ]; then exec sleep 300; fi; echo "went on"'; again=$id
for _ in $(seq 600); do
  if grep -q "Requeuing JobId=$again" cluster/log/slurmctld.log; then break; fi  # its node is free again
  sleep 0.2
done
run_again "$again"
wait_for "$again" COMPLETED
check "the second time" grep -q "went on" "results/gpu_run_${again}_detailed.log"
check "its record" test -f "results/unidle_${again}_again1/record.db"

wait_for "$crash" FAILED
expect 1 analyze "$crash"
has out "signal 11"
wait_for "$late" TIMEOUT
expect 1 analyze "$late"
has out "TIMEOUT after"
has out "It came to step"
has out "of 300, and would have needed"
has out "#SBATCH --time="

expect 0 top
has out "GPU hours were held"
has err "accounting"
expect 2 analyze 99999
has err "unknown to Slurm"
finish
