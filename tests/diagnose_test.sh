#!/usr/bin/env bash
# unidle diagnose on records of real commands: exit codes, formats, and the generated rule page.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

expect 2 diagnose
expect 2 diagnose "$folder/nothing"
has err nothing
[ "$(wc -l <err)" = 1 ] || fail "an input error takes more than one line: $(cat err)"
echo "no record" >file.db
expect 2 diagnose file.db
expect 2 diagnose --format xml
expect 2 diagnose --fail-on bad

expect 0 diagnose --explain loader-no-workers
has out "loader-no-workers"
expect 2 diagnose --explain no-such-rule
has err "no-such-rule"

LANGUAGE= LC_ALL=zh_CN.UTF-8 "$unidle" diagnose --explain loader-no-workers >out
has out "加载器运行在训练进程内"
expect 0 diagnose --explain loader-no-workers --lang en
has out "The loader runs in the training process"

expect 2 diagnose --explain loader-no-workers --lang de  # an unsupported language
has err "de"
expect 2 slurm status --lang de

expect 0 diagnose --rules-markdown
cmp -s out "$UNIDLE_SOURCE/docs/rules.md" || fail "docs/rules.md is stale: unidle diagnose --rules-markdown > docs/rules.md"

expect 0 run -o fine -- sh -c 'echo done'
expect 0 diagnose fine --format json
has out '"schema": "unidle.diagnosis/1"'
has out '"outcome": "completed"'
has out '"verdict": "unknown"'
has out '"step": null'
expect 0 diagnose fine/record.db
expect 0 diagnose fine --fail-on info

expect 3 run -o broken -- sh -c 'echo "ValueError: no such column" >&2; exit 3'
expect 1 diagnose broken --format json
has out '"verdict": "failed"'
has out '"id": "run-failed"'
has out 'exit code 3'

# A traceback counts even if the last line claims success and the exit code is 0.
cat >claims.sh <<'SCRIPT'
echo "epoch 1 loss 0.5"
printf 'Traceback (most recent call last):\n  File "train.py", line 7, in main\nTypeError: not serializable\n'
echo "Training finished successfully"
SCRIPT
expect 0 run -o claims -- sh claims.sh
expect 1 diagnose claims
has out "The run failed"
has out "TypeError: not serializable"
has out "train.py:7"
expect 1 diagnose claims --lang zh
has out "运行失败"
expect 1 diagnose claims --lang zh --format json
has out "it said: TypeError"
expect 1 diagnose claims --format json
has out '"outcome": "failed"'

expect 0 run -- sh -c 'true'
expect 0 diagnose
NO_COLOR=1 "$unidle" diagnose >out 2>err
grep -q $'\x1b' out && fail "colours without a terminal"

if command -v python3 >/dev/null; then
  "$unidle" diagnose broken --format json | python3 -c '
import json, sys
document = json.load(sys.stdin)
assert list(document) == ["schema", "outcome", "verdict", "device", "throughput", "time", "step", "findings", "abstained"]
assert all(entry["missing"] for entry in document["abstained"])
' || fail "the JSON document has not the fixed keys"
fi

finish
