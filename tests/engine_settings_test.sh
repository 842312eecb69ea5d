#!/usr/bin/env bash
# Settings of the engine, depending on the machine on which it runs and on the workload that it trains.
subcommand=train
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
needs_engine

printf 'workload: recsys\n' >config.yaml
settings=(prepare.source=generated prepare.samples=300 device=cpu cpu.threads=1 train.samples=64 batch.size=64 -q)
expect 0 config.yaml "${settings[@]}" --prepare

# bf16 is taken, with a warning if the CPU has no units for it.
mkdir -p host/proc
printf 'model name\t: Some CPU\nflags\t: fpu avx2\n' >host/proc/cpuinfo
UNIDLE_HOST_ROOT=$PWD/host expect 0 config.yaml "${settings[@]}" precision.amp=bf16
has err "no units for bf16"
UNIDLE_HOST_ROOT=$PWD/host expect 0 config.yaml "${settings[@]}"
lacks err "no units for bf16"
printf 'model name\t: Some CPU\nflags\t: fpu avx512_bf16\n' >host/proc/cpuinfo
UNIDLE_HOST_ROOT=$PWD/host expect 0 config.yaml "${settings[@]}" precision.amp=bf16
lacks err "no units for bf16"

# A key that the workload does not read is named in a warning, and by the diagnosis of a recorded run.
expect 0 config.yaml "${settings[@]}" model.depth=7 grad.checkpointing=true model.width=64
has err "model.depth: the workload recsys does not read it"
has err "grad.checkpointing: the workload recsys does not read it"
lacks err "model.width"
"$unidle" run -o unread -- "$unidle" train config.yaml "${settings[@]}" model.depth=7 grad.checkpointing=true \
  >out 2>err || fail "the observed run failed: $(cat err)"
"$unidle" diagnose unread --format json >out
python3 - <<'EOF' || fail "the diagnosis does not name what nothing reads"
import json
found = [e for f in json.load(open("out"))["findings"] if f["id"] == "setting-ignored" for e in f["evidence"]]
assert any(line.startswith("nothing reads the key model.depth (") for line in found), found
assert any(line.startswith("nothing reads the key grad.checkpointing (") for line in found), found
EOF
refused config.yaml "${settings[@]}" model.width=1000000000
has err "model.width: expected a whole number, 8 to 65536"

# A process with only half of the variables of a multi-process run trains alone, and says so.
RANK=1 expect 0 config.yaml "${settings[@]}"
has err "RANK is set without WORLD_SIZE"

# A cluster ends a run with SIGTERM: it stops after the step, with a checkpoint for resuming.
"$unidle" train config.yaml "${settings[@]}" train.samples=64000000 checkpoint.interval=1000000000 \
  checkpoint.folder=saved 2>err >out &
trained=$!
for _ in $(seq 600); do  # until its loop runs, which its live line would not show in a file
  grep -q SigCgt "/proc/$trained/status" 2>/dev/null || break
  # Bit 14 of the caught signals: 15.
  (( 0x$(awk '$1 == "SigCgt:" { print $2 }' "/proc/$trained/status") & 0x4000 )) && break
  sleep 0.1
done
kill -TERM $trained
kill -TERM $trained  # as from a cluster that signals all processes of a run, and from an observer
wait $trained
code=$?
[ $code = 143 ] || fail "exit code $code after SIGTERM: $(cat err)"
ls saved/checkpoint-*.pt >/dev/null || fail "no checkpoint after SIGTERM"
finish
