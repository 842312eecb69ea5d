#!/usr/bin/env bash
# unidle compare on written records: the answer, its JSON, the exit codes.
set -euo pipefail

unidle="$UNIDLE_BIN/unidle"
samples="$UNIDLE_BIN/../tests/unidle_sample_records"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$samples" "$work"
cd "$work"

fail() {
  echo "FAILED: $*" >&2
  exit 1
}

# expect CODE COMMAND...: runs it, keeps both streams, checks the exit code.
expect() {
  local wanted=$1 code=0
  shift
  "$@" >out 2>err || code=$?
  [ "$code" -eq "$wanted" ] || fail "'$*' ended with $code, expected $wanted: $(cat out err)"
}

expect 0 "$unidle" compare superres-naive superres-tuned
grep -q 'as fast as A (95 % interval' out || fail "no headline: $(cat out)"
grep -q 'precision.amp' out || fail "no settings that differ"
! grep -q $'\x1b' out || fail "colours although stdout is no terminal"

expect 1 "$unidle" compare superres-tuned superres-naive
grep -q '^Regressions' out || fail "the regression is not named"

expect 0 "$unidle" compare superres-naive superres-naive/record.db
grep -q -E 'Same speed|No difference shown' out || fail "a run differs from itself: $(cat out)"

expect 0 "$unidle" compare superres-naive superres-tuned --format json
python3 - <<'PY' || fail "the JSON document is not what docs/compare.md says"
import json
document = json.load(open("out"))
assert document["schema"] == "unidle.comparison/1"
assert document["regression"] is False
ratio = document["training_ratio"]
assert 3.5 < ratio["low"] < ratio["value"] < ratio["high"] < 5, ratio
assert ratio["change"] == "faster"
shares = document["a"]["step_share"]
assert abs(sum(v for v in shares.values() if v is not None) - 1) < 1e-6, shares
assert document["loss"]["verdict"] == "equal"
PY

# A run that is slower than the last one of its command is told by diagnose, unasked.
mkdir -p home/runs
cp -r superres-tuned home/runs/20260101-000000-train
cp -r superres-naive home/runs/20260102-000000-train
for run in home/runs/*; do
  sqlite3 "$run/record.db" "UPDATE meta SET value = '[\"python\", \"train.py\"]' WHERE key = 'command'"
done
sqlite3 home/runs/20260102-000000-train/record.db "UPDATE meta SET value = '\"2026-12-31T00:00:00Z\"' WHERE key = 'started_utc'"
UNIDLE_HOME=home expect 0 "$unidle" diagnose 20260102-000000-train
grep -q 'Slower than your last run of this command' out || fail "the slower run is not told: $(cat out)"
grep -q 'unidle compare 20260101-000000-train' out || fail "no command to compare: $(cat out)"
sqlite3 home/runs/20260101-000000-train/record.db "UPDATE meta SET value = '[\"python\", \"train.py\", \"--lr\"]' WHERE key = 'command'"
UNIDLE_HOME=home expect 0 "$unidle" diagnose 20260102-000000-train
! grep -q 'Slower than' out || fail "compared with another command"
UNIDLE_HOME=home expect 0 "$unidle" diagnose 20260101-000000-train
! grep -q 'Slower than' out || fail "the first run is slower than none"

for width in 40 80 120; do
  COLUMNS=$width expect 0 "$unidle" compare superres-naive superres-tuned
  python3 -c "
import sys
widest = max(len(line.rstrip('\n')) for line in open('out', encoding='utf-8'))
sys.exit(widest > $width)" || fail "wider than $width columns"
done

# The changes of an optimising run are shown; a record without steps does not fail.
expect 0 "$unidle" compare superres-naive optimise
grep -q 'loader.workers: 0 -> 4' out || fail "changes are not shown"
expect 0 "$unidle" compare empty cut

expect 2 "$unidle" compare superres-naive nowhere
[ "$(wc -l <err)" -eq 1 ] && grep -q 'nowhere' err || fail "not one line that names the record: $(cat err)"
touch naive.yaml
expect 2 "$unidle" compare superres-naive naive.yaml
[ "$(wc -l <err)" -eq 1 ] && grep -q 'naive.yaml' err || fail "not one line that names the config: $(cat err)"
grep -q 'the other is not' err || fail "a record and a configuration: $(cat err)"
cp naive.yaml other.yaml
expect 2 "$unidle" compare naive.yaml other.yaml -- python3 train.py
grep -q '{config}' err || fail "a command without a place for the configuration: $(cat err)"
expect 2 "$unidle" compare superres-naive
expect 2 "$unidle" compare superres-naive superres-tuned --tolerance lots

echo "compare: ok"
