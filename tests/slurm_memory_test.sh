#!/usr/bin/env bash
# A job that uses more memory than it has requested, under a real Slurm that keeps accounts: ended by Slurm
# itself and, if control groups can be created, by the kernel.
subcommand=slurm; . "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$(dirname "${BASH_SOURCE[0]}")/slurm_cluster.sh"
accounts=yes
memory=${1:-slurm}
start_cluster || { echo "skipped: Slurm does not run jobs here"; exit 77; }
cat >hog.py <<'EOF2'
import time
held = []
for step in range(60):
    held.append(bytearray(b"x" * 25_000_000))
    print(f"step {step}/60", flush=True)
    time.sleep(0.2)
EOF2

tells() {  # that its memory was too small, and how much to request
  expect 1 analyze "$id"
  has out "it used more memory than it had asked for"
  has out "#SBATCH --mem=1G  (400.0 MiB were not enough)"
  lacks out "of memory at most"
}

expect 0 submit --format json --name hog --gpus 0 --cpus-per-task 1 --mem 400M -- python3 hog.py
id=$(python3 -c 'import json; print(json.load(open("out"))["id"])')
wait_for "$id" FAILED OUT_OF_MEMORY COMPLETED CANCELLED
tells
has out "of 60"  # its progress
if [ "$memory" = kernel ]; then
  has out "for lack of memory while the run went on"
  subcommand=diagnose expect 1 "results/unidle_$id"
  has out "[out-of-memory]"
fi
for _ in $(seq 900); do scontrol show job "$id" >/dev/null 2>&1 || break; sleep 0.2; done
tells

if [ "$memory" = slurm ] && can_limit_memory; then
  bash "$UNIDLE_SOURCE/tests/slurm_memory_test.sh" kernel || fail "where the kernel ends it"
fi
finish
