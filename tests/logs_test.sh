#!/usr/bin/env bash
# unidle diagnose on logs: kinds, exit codes, pairing by job id, and files that are not logs.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

mkdir results
{ echo "timestamp, utilization.gpu [%], power.draw [W]"
  for s in 10 20 30 40; do echo "2025/01/01 10:00:$s.000, 50 %, 100.00 W"; done
  printf '2025/01/01 10:0'; } >results/gpu_4711.log
printf '2025-01-01 10:00:12 epoch 1 loss 0.5\n2025-01-01 10:00:30 epoch 2 loss 0.4\nTraining completed successfully\n' >results/train.log
expect 0 diagnose results/gpu_4711.log --format json
has out '"kind": "cuda"'
has out '"busy": 0.5'
has out '"verdict": "unknown"'
expect 0 diagnose --job-id 4711 --results results --format json
has err "train.log (paired by its time)"
has out '"outcome": "completed"'
has out 'mean utilisation 50.00 %'
cp results/gpu_4711.log anything.json
expect 0 diagnose anything.json results/train.log

printf 'epoch 1 loss 0.5\nTraceback (most recent call last):\n  File "train.py", line 7, in main\nTypeError: x\nAll done successfully\n' >slurm-5.out
: >slurm-5.err
expect 1 diagnose slurm-5.out slurm-5.err
has out "TypeError: x"
has out "train.py:7"
has out "a later line claims success"
expect 1 diagnose --job-id 5 --format json
has out '"id": "run-failed"'
gzip -k slurm-5.out
expect 1 diagnose slurm-5.out.gz

: >empty.log
head -c 100000 /dev/urandom >noise.log
head -c 3000000 /dev/zero | tr '\0' x >huge.log
printf '{"traceEvents": [{"ph": "X", "cat": "kernel", "ts": 1, "dur"' >cut.json
echo 'key: value' >config.yaml
head -c 40 slurm-5.out.gz >cut.gz
for file in empty.log noise.log huge.log cut.json config.yaml cut.gz absent.log results; do
  refused diagnose "$file"
  has err "$file"
done

expect 2 diagnose --job-id 12345 --results results
has err 12345
expect 2 diagnose --job-id abc --results results
expect 2 diagnose --job-id 4711 --results nowhere
expect 2 diagnose --results results
expect 2 diagnose --job-id 4711 results/train.log
for shell in bash fish; do
  "$unidle" completion "$shell" >out
  has out job-id
  has out results
done

if [ -n "${UNIDLE_SHARED:-}" ]; then
  real="$UNIDLE_SHARED/real/recsys-slurm"
  expect 0 diagnose --job-id 909648 --results "$real"
  has out "validation-dominates"
  expect 1 diagnose --job-id 52178 --results "$real" --format json
  has out '"outcome": "timed-out"'
  expect 1 diagnose --job-id 53480 --results "$real" --format json
  has out '"outcome": "failed"'
  for job in 909648:0 52178:1 53480:1; do  # Slurm knows none of them
    expect "${job#*:}" slurm analyze "${job%:*}" --results "$real"
    has out "by its files alone"
    lacks out "#SBATCH"
  done
  expect 1 slurm analyze 52178 --results "$real" --format json
  has out '"timed-out"'

  reports="$UNIDLE_SHARED/reports"
  expect 1 diagnose "$reports"/01-*/s3.log
  has out "the scheduler ended the job for using too much memory"
  for log in "$reports"/03-*/*.log; do
    expect 1 diagnose "$log"
    has out "run-failed"
    has out "[out-of-memory]"
  done
  for log in "$reports"/05-*/*.log; do
    expect 0 diagnose "$log"
    has out "training went on after it"
  done
  expect 0 diagnose -v "$log"
  has out "Fine: enough memory"
  expect 1 diagnose "$reports"/27-*/q0.log "$reports"/27-*/q1.log
  has out "q1.log:202, at 2024-03-05 10:03:20"
  expect 1 diagnose "$reports"/27-*/q2.log
  has out "it said: KeyError: 4711"
  has out "/home/me/data.py:9"
  expect 1 diagnose "$reports"/27-*/12-horovod.log
  has out "rank 0 failed first, ended by signal 9"
  expect 1 diagnose "$reports"/27-*/16-nccl.log
  has out "timed out after 30 min"
  accounts=$(echo "$reports"/20-*)
  FAKE="$accounts/09-multi" PATH="$accounts/bin:$PATH" expect 0 slurm analyze 4711
  has out "109.1 GiB was the most in use on a node, of 256.0 GiB"
  lacks out "mem=32G"
else
  echo "UNIDLE_SHARED names no folder with real logs: those are not tested"
fi

finish
