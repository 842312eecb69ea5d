#!/usr/bin/env bash
# Recorded runs: listed, selected, removed, exported into one file.
subcommand=runs
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

expect 0
has out "No recorded runs"
"$unidle" run -- true 2>/dev/null
"$unidle" run -- sh -c 'exit 3' 2>/dev/null
good=$(ls "$UNIDLE_HOME/runs" | grep -- -true)
bad=$(ls "$UNIDLE_HOME/runs" | grep -- -sh)

expect 0
has out "$good"; has out "$bad"; has err "2 runs,"
"$unidle" report -o page.html >out 2>err || fail "report takes the latest record: $(cat err)"
grep -q 'exit code 3' page.html || fail "the page of another record"
expect 0 --bad
has out "$bad"; lacks out "$good"
expect 0 --since 99999999999999d
has out "$good"
expect 0 --since 1h --user "$(id -un)"
has err "2 runs,"
expect 0 --before 1h
has out "No such runs"
expect 0 --since 2020-01-01 --format json
python3 -c '
import json, sys
document = json.load(open("out"))
assert document["schema"] == "unidle.runs/1" and len(document["runs"]) == 2
assert all(run["bytes"] > 4096 and run["seconds"] > 0 for run in document["runs"])
assert {run["outcome"] for run in document["runs"]} == {"completed", "failed"}' || fail "the JSON: $(cat out)"
for time in yesterday 2026-11-23T7 2026-11-23Tx 2026-13-45 2026-02-31 2026-11-23T99 26-1-1; do
  refused --since "$time"
done
refused rm
refused rm "$good" --bad
refused rm nothing
refused rm "$UNIDLE_HOME"

expect 0 export "$good" -o one.db
expect 0 export "$UNIDLE_HOME/runs/$bad"
[ "$(cat out)" = "$bad.db" ] || fail "export says $(cat out)"
refused export "$good" -o one.db
subcommand=diagnose expect 0 one.db
subcommand=diagnose expect 1 "$bad.db"

mkdir "$UNIDLE_HOME/runs/mine"; echo keep > "$UNIDLE_HOME/runs/mine/notes"
refused rm mine
echo text > "$UNIDLE_HOME/runs/mine/record.db"
refused rm mine
expect 0 rm --since 1h
has out "$good"; has err "nothing was removed"
[ -d "$UNIDLE_HOME/runs/$good" ] || fail "removed without --yes"
expect 0 rm "$good"
[ ! -e "$UNIDLE_HOME/runs/$good" ] || fail "$good is still there"
[ -f "$UNIDLE_HOME/runs/mine/notes" ] || fail "what is no record was removed"
expect 0 --folder "$UNIDLE_HOME/runs" --bad
has out "$bad"; has out "cannot be read"
[ "$(readlink "$UNIDLE_HOME/runs/latest")" = "$bad" ] || fail "latest leads to $(readlink "$UNIDLE_HOME/runs/latest")"
expect 0 rm --bad --yes
[ -f "$UNIDLE_HOME/runs/mine/notes" ] || fail "what is no record was removed"
[ ! -e "$UNIDLE_HOME/runs/$bad" ] || fail "$bad is still there"

finish
