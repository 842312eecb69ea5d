#!/usr/bin/env bash
# unidle fix: what it would try, and what it refuses, before any program runs. fix_program_test.sh has the
# trials.
subcommand=fix
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
timelines=$UNIDLE_SOURCE/src/unidle/diagnose/testing/timelines
# record NAME TIMELINE
record() { "$UNIDLE_BIN/../tests/unidle_timeline" "$timelines/$2.timeline" "$1" || fail "no record of $2"; }
mkdir program && cd program || exit 1
touch train.py

refused # nothing was recorded yet
has err "unidle run -- CMD"
record waiting loader-no-workers
expect 0 waiting --dry-run -- python3 train.py
has out "loader.workers: 0 -> 2 (exact) at train.yaml:6"
has out "at most 5 min (--budget)"
[ ! -e "$UNIDLE_HOME/runs" ] || fail "a dry run left a record"
expect 0 waiting --dry-run --format json -- python3 train.py
python3 - <<'PY' || fail "JSON: $(cat out)"
import json

d = json.load(open("out"))
assert d["schema"] == "unidle.fix/1" and d["tried"] is False and d["run"] is None, d
assert d["to_try"][0]["knob"] == "loader.workers" and d["to_try"][0]["finding"] == "loader-no-workers", d
assert d["command"] == ["python3", "train.py"] and d["conclusion"] == "", d
PY
expect 0 waiting --dry-run --lang zh -- python3 train.py
all_chinese out
refused waiting --budget 3s -- python3 train.py
has err "leaves a margin"
refused waiting --dry-run -- python3 gone.py
has err "gone.py"
refused waiting --dry-run # a timeline has no command
has err "which command"
refused waiting --budget soon -- python3 train.py

# What only the program can change.
record slow synchronize-each-step
expect 0 slow -- python3 train.py
has out "None of the proposed changes can be tried automatically"
has out "see "
expect 0 slow --format json -- python3 train.py
python3 -c 'import json; d = json.load(open("out")); assert not d["to_try"] and d["by_hand"][0]["where"], d' ||
  fail "JSON of changes by hand: $(cat out)"

echo "epoch 1 loss 0.3" >slurm-1.out
refused slurm-1.out
has err "is a log"
record failed run-failed
refused failed -- python3 train.py
has err "failed"

# The next command is named where there is something to try.
"$unidle" diagnose waiting >out 2>err
lacks out "next: unidle fix" # its command is unknown
record between python-between-steps
sqlite3 between/record.db "insert into meta values ('command', '[\"python3\", \"train.py\"]'), ('folder', '\"$PWD\"')"
COLUMNS=200 "$unidle" diagnose between >out 2>err
has out "next: change train.py:41, then"
has out "  unidle run -- python3 train.py && unidle compare between latest"
record often validation-dominates
echo "best_loss = 9" >train.py # a longer interval may change what is trained
touch -d "2 hours ago" train.py
command='["python3", "train.py", "--eval-every", "10"]'
sqlite3 often/record.db "insert into meta values ('command', '$command'), ('folder', '\"$PWD\"')"
COLUMNS=200 "$unidle" diagnose often >out 2>err
has out "next: unidle run -- python3 train.py --eval-every 100 && unidle compare often latest"
(cd / && "$unidle" diagnose "$OLDPWD/between") >out 2>err
lacks out "next:" # its program is elsewhere
finish
