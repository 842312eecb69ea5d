#!/usr/bin/env bash
# The jobs of docs/ci.md, as written there: a run as fast as the baseline passes, a slower and a failed one do
# not.
subcommand=
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

mkdir bin
ln -s "$(command -v python3)" bin/python
ln -s "$unidle" bin/unidle
export PATH="$folder/bin:$PATH" PYTHONPATH="$UNIDLE_SOURCE/python"
# Much more than a busy machine can add: 20 ms compared with 200.
cat >train.py <<'PY'
import os, time, unidle
if os.environ.get("TRAIN") == "fails":
    raise SystemExit("no data")
with unidle.observe():
    for step in range(20):
        time.sleep(0.2 if os.environ.get("TRAIN") == "slow" else 0.02)
        unidle.step(samples=8, loss=1.0 / (1 + step))
PY

# The commands of one job: the lines below "run: |" or "script:", one per file.
python3 - "$UNIDLE_SOURCE/docs/ci.md" <<'PY' || fail "docs/ci.md has other jobs"
import re, sys
text = open(sys.argv[1]).read()
github = re.search(r"run: \|\n((?: {10}unidle .*\n)+)", text).group(1)
gitlab = re.search(r"  script:\n((?:    - unidle .*\n)+)", text).group(1)
lines = [[re.sub(r"^ *(?:- )?", "", line) for line in part.splitlines()] for part in (github, gitlab)]
assert lines[0] == lines[1] and len(lines[0]) == 3, lines
open("job.sh", "w").write("set -e\n" + "\n".join(lines[0]) + "\n")
open("page.sh", "w").write(re.search(r"run: (unidle report .*)\n", text).group(1) + "\n")
PY

# job CODE HOW: the exit code of the job
job() {
  rm -rf run
  TRAIN=$2 bash job.sh >out 2>err
  local got=$?
  [ "$got" = "$1" ] || fail "a job whose training is $2 ends with $got, expected $1: $(cat out err)"
}

unidle run -o first -- python train.py >out 2>&1 || fail "the baseline: $(cat out)"
expect 0 runs export first -o baseline.db
job 0 normal
bash page.sh >out 2>&1 || fail "the page: $(cat out)"
[ -s speed.html ] || fail "there is no page"
job 1 slow
has out "slower"
job 1 fails

finish
