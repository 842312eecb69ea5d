#!/usr/bin/env bash
# Failed writes to standard output are reported: no script takes a partial answer for a complete one.
subcommand=
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

printf 'num_workers: 0\nbatch_size: 8\n' >train.yaml
printf '{"traceEvents": [{"ph": "X", "cat": "kernel", "name": "gemm", "ts": 10, "dur": 5, "pid": 1, "tid": 1}]}' \
  >one.pt.trace.json
expect 0 run -o record -- true
touch train.py
answers=(
  "--version" "--help" "diagnose --help"
  "diagnose record --format json" "diagnose record" "diagnose --print-policy" "diagnose --explain loader-no-workers"
  "runs" "runs --format json" "compare record record" "compare record record --format json"
  "report record" "knobs" "knobs list" "knobs list --format json" "knobs recognize train.yaml"
  "trace one.pt.trace.json" "check" "check --format json"
  "optimize train.yaml --dry-run" "completion bash" "monitor --seconds 0.1 --interval 50 --format csv"
)

# cut_off WHY: the last run ended with 2, and one line that says why.
cut_off() {
  local got=$?
  [ "$got" = 2 ] || fail "unidle $answer: exit code $got where output is cut off"
  [ "$(grep -c "standard output: cannot be written: $1" err)" = 1 ] || fail "unidle $answer: $(cat err)"
}

for answer in "${answers[@]}"; do
  # shellcheck disable=SC2086
  "$unidle" $answer >/dev/full 2>err
  cut_off "No space left on device"
  # shellcheck disable=SC2086
  "$unidle" $answer >&- 2>err
  cut_off "Bad file descriptor"
done

# A reader that stops early is not an error, even if SIGPIPE is ignored.
for answer in "--version" "diagnose --print-policy" "knobs list --format json"; do
  exec 3> >(true)
  wait $!
  # shellcheck disable=SC2086
  (trap '' PIPE && exec "$unidle" $answer) >&3 2>err
  got=$?
  exec 3>&-
  [ "$got" = 0 ] && [ ! -s err ] || fail "unidle $answer: $got for a reader that went away: $(cat err)"
done

# The command's exit code stays its own, whatever happens to the output.
"$unidle" run -o full -- sh -c 'echo lost; exit 7' >/dev/full 2>err
[ $? = 7 ] || fail "run: the code of the command was lost: $(cat err)"
"$unidle" run -o closed -- sh -c 'exit 7' >&- 2>err
[ $? = 7 ] || fail "run: the code of the command was lost: $(cat err)"

# A refusal names the help of the command as far as it was typed.
for words in "cache" "knobs recognize" "slurm submit"; do
  # shellcheck disable=SC2086
  "$unidle" $words >out 2>err && fail "unidle $words: succeeded"
  grep -q "(see unidle $words --help)" err || fail "unidle $words: $(cat err)"
done

# So does the name that a misspelt word was meant to be.
while IFS='|' read -r words said; do
  # shellcheck disable=SC2086
  "$unidle" $words >out 2>err && fail "unidle $words: succeeded"
  grep -qF "($said)" err || fail "unidle $words: $(cat err)"
done <<'EOF'
diagonse|did you mean diagnose?
--verison|did you mean --version?
diagnose --formt json|did you mean --format?
run --step=4 -- true|did you mean --steps?
run --nonsense -- true|see unidle run --help
run --apply loader.worker=2 -- true|did you mean loader.workers?
diagnose --explain loader-no-worker|did you mean loader-no-workers?
run train.py|unidle run -- python train.py
diagnose --job 4711|did you mean --job-id?
EOF
"$unidle" diagnose --explain zzz >out 2>err && fail "diagnose --explain zzz: succeeded"
grep -q "zzz: unknown rule (the nearest are [a-z0-9-]*, [a-z0-9-]*, [a-z0-9-]*)$" err || fail "diagnose --explain: $(cat err)"

# As other programs have it.
for words in "diagnose" "slurm submit" ""; do
  # shellcheck disable=SC2086
  "$unidle" help $words >out || fail "unidle help $words"
  # shellcheck disable=SC2086
  "$unidle" $words --help | cmp -s - out || fail "unidle help $words: $(cat out)"
done
"$unidle" version >out || fail "unidle version"
"$unidle" --version | cmp -s - out || fail "unidle version: $(cat out)"
"$unidle" help nothing >out 2>err && fail "unidle help nothing: succeeded"
grep -q "nothing: unknown command" err || fail "unidle help nothing: $(cat err)"

# Help fits into the terminal, whose width COLUMNS says where there is none. Lines of examples stay whole.
for command in "" run diagnose fix "slurm submit" data; do
  for columns in 60 80 140; do
    # shellcheck disable=SC2086
    COLUMNS=$columns "$unidle" $command --help >out || fail "unidle $command --help"
    long=$(awk -v most="$columns" '/^Examples:/ { exit } length($0) > most' out)
    [ -z "$long" ] || fail "unidle $command --help at $columns columns: $long"
  done
done
COLUMNS=140 "$unidle" diagnose --help >wide
COLUMNS=60 "$unidle" diagnose --help >narrow
[ "$(wc -l <wide)" -lt "$(wc -l <narrow)" ] || fail "help does not use a wide terminal"

"$unidle" >out 2>err
[ $? = 2 ] && grep -q 'unidle run -- python train.py' out || fail "unidle alone: $(cat out err)"
finish
