#!/usr/bin/env bash
# A configuration trained by the engine as a job of a real Slurm: its time ends before it is done, repeatedly;
# each time it writes a checkpoint, is requeued, and continues from there.
subcommand=slurm; . "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
needs_engine
. "$(dirname "${BASH_SOURCE[0]}")/slurm_cluster.sh"
cat >train.yaml <<EOF
workload: timeseries
model: {width: 8, depth: 1}
batch: {size: 16}
cpu: {threads: 1}
loader: {workers: 0}
train: {warmup_samples: 0}
EOF
subcommand='' expect 0 train train.yaml --prepare
subcommand='' expect 0 train train.yaml train.samples=16000 --format json
rate=$(python3 -c 'import json; print(json.load(open("out"))["samples_per_s"])')

start_cluster || { echo "skipped: Slurm does not run jobs here"; exit 77; }

# train_as_job SECONDS: the number of samples for that time at the measured rate. A job has 15 s before the
# signal comes.
train_as_job() {
  samples=$(python3 -c "print(16 * int($rate * $1 / 16))")
  sed -i "s/^train: .*/train: {warmup_samples: 0, samples: $samples}/" train.yaml
  expect 0 submit --format json --gpus 0 --cpus-per-task 1 --mem 1500M --time 1 --signal INT@45 --requeue train.yaml
  id=$(python3 -c 'import json; print(json.load(open("out"))["id"])')
  local requeued=0 times
  for _ in $(seq 1500); do
    case $(state_of "$id") in
      COMPLETED | FAILED | TIMEOUT | CANCELLED) break ;;
    esac
    times=$(grep -c "Requeuing JobId=$id" cluster/log/slurmctld.log)
    if [ "$times" -gt "$requeued" ]; then
      requeued=$times
      # Slurm would wait two minutes; the node accepts the job again only some time after it ended there.
      scontrol update JobId="$id" StartTime=now+5 2>/dev/null
    fi
    sleep 0.2
  done
  [ "$(state_of "$id")" = COMPLETED ] || fail "job $id is $(state_of "$id"): $(tail -n 20 results/*.log)"
}

# The machine may be faster now than when the rate was measured.
for seconds in 45 135 405; do
  train_as_job "$seconds"
  if [ -f "results/unidle_${id}_again1/record.db" ] || [ "$failures" -gt 0 ]; then break; fi
done
check "it ran again" test -f "results/unidle_${id}_again1/record.db"
check "its checkpoint" test -e "results/checkpoints_$id/checkpoint.pt"
expect 0 analyze "$id"
has out "COMPLETED after"

# All samples, each once: the last run's steps continue where the previous one ended.
python3 - "$samples" results/unidle_"$id"*/record.db <<'EOF' || fail "steps: $(tail -n 30 results/*.log)"
import sqlite3, sys
samples, records = int(sys.argv[1]), sys.argv[2:]
seen = []
for record in records:
    with sqlite3.connect(record) as data:
        seen += data.execute("SELECT samples_before, samples FROM steps").fetchall()
ends = sorted(before + count for before, count in seen if before is not None)
assert ends and ends[-1] == samples, (ends[-3:], samples)
assert len(set(ends)) == samples // 16, (len(set(ends)), samples // 16)
EOF
finish
