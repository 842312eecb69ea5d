#!/usr/bin/env bash
# `unidle run` with real programs: the command must do, return and write the same as without us.
set -u
unidle="$UNIDLE_BIN/unidle"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
export UNIDLE_HOME="$work/home"
unset UNIDLE_LOG UNIDLE_PROBE_DIR
failures=0

check() {  # check WHAT EXPECTED ACTUAL
  if [ "$2" != "$3" ]; then
    echo "FAILED: $1: expected '$2', got '$3'"
    failures=$((failures + 1))
  fi
}
query() { sqlite3 "$1/record.db" "$2"; }
wait_for() {  # wait_for COMMAND...: until it succeeds, at most 20 s
  for _ in $(seq 400); do
    if "$@" >/dev/null 2>&1; then return 0; fi
    sleep 0.05
  done
  echo "FAILED: never came true: $*"
  failures=$((failures + 1))
}

# Exit codes and signals
"$unidle" run -o r0 -- true 2>/dev/null;               check 'exit 0' 0 $?
"$unidle" run -o r7 -- sh -c 'exit 7' 2>/dev/null;     check 'exit 7' 7 $?
"$unidle" run -o r9 -- sh -c 'kill -9 $$' 2>/dev/null; check 'killed' 137 $?
check 'outcome of 0' '"completed"' "$(query r0 "select value from meta where key='outcome'")"
check 'outcome of 7' '"failed"' "$(query r7 "select value from meta where key='outcome'")"
check 'exit of 9' '0 9' "$(query r9 "select value ->> 'code' || ' ' || (value ->> 'signal') from meta where key='exit'")"
check 'command' '["sh","-c","exit 7"]' "$(query r7 "select value from meta where key='command'")"
check 'one file' 'record.db' "$(ls r0)"

UNIDLE_SHIM_DIR=$work/none "$unidle" run -o rs -- sh -c 'exit 5' 2>err; check 'exit without the shim' 5 $?
check 'the shim is missed' 1 "$(grep -c 'none/sitecustomize.py: is not there (' err)"

# Wrong usage
"$unidle" run -o rx -- /no/such/program 2>err; check 'missing program' 2 $?
check 'missing program: one line' 1 "$(wc -l <err)"
grep -q '/no/such/program' err; check 'missing program is named' 0 $?
[ -e rx ]; check 'no record of a missing program' 1 $?
"$unidle" run -o r0 -- true 2>err; check 'record exists' 2 $?
check 'record exists: one line' 1 "$(wc -l <err)"
"$unidle" run 2>/dev/null; check 'no command' 2 $?
"$unidle" run --nonsense -- true 2>/dev/null; check 'unknown option' 2 $?
"$unidle" run --steps many -- true 2>err; check 'no number' 2 $?
grep -q -- '--steps.*many' err; check 'the option and its value are named' 0 $?

# Output: byte-exact, on its own stream, nothing of ours in stdout
head -c 20000000 /dev/urandom >random
"$unidle" run -o c1 -- cat random 2>/dev/null | cmp - random; check 'random bytes through a pipe' 0 $?
"$unidle" run -o c2 -- cat random >copy 2>/dev/null; cmp copy random; check 'random bytes into a file' 0 $?
"$unidle" run -o c3 -- cat <random 2>/dev/null | cmp - random; check 'stdin passes through' 0 $?
"$unidle" run -o c4 -- sh -c 'cat random >&2' 2>copy >/dev/null
head -c 20000000 copy | cmp - random; check 'random bytes through stderr' 0 $?
tail -c 65536 random >end
query c1 "select writefile('kept', bytes) from output where stream='stdout'" >/dev/null
cmp kept end; check 'end of the output' 0 $?
"$unidle" run --no-capture -o c5 -- echo plain >copy 2>/dev/null; check '--no-capture' plain "$(cat copy)"
check '--no-capture keeps nothing' '' "$(query c5 'select * from output')"
"$unidle" run -o c6 -- sh -c 'echo out; echo err >&2' >out 2>err
check 'stdout alone' out "$(cat out)"
check 'stderr first' err "$(head -1 err)"

# Unread stdin stays for the next reader
printf 'one\ntwo\n' | { "$unidle" run -o s1 -- true 2>/dev/null; cat; } >rest; check 'stdin untouched' "$(printf 'one\ntwo')" "$(cat rest)"

# Order of both streams when they are the same file
order='for i in 1 2 3 4 5 6 7 8 9; do echo o$i; echo e$i >&2; done'
sh -c "$order" >want 2>&1
"$unidle" run -o o1 -- sh -c "$order" 2>&1 | grep -v '^unidle:' >got; cmp want got; check 'order in a pipe' 0 $?
"$unidle" run -o o2 -- sh -c "$order" >got 2>&1; grep -v '^unidle:' got | cmp - want; check 'order in a file' 0 $?

# A reader that stops reading: the command gets SIGPIPE
"$unidle" run -o p1 -- yes 2>/dev/null | head -1 >/dev/null
check 'SIGPIPE' 141 "${PIPESTATUS[0]}"
check 'without us' "$(sh -c 'trap "" PIPE; yes 2>&1 >/dev/full | wc -l')" "$("$unidle" run -o p2 -- sh -c 'trap "" PIPE; yes 2>&1 >/dev/full | wc -l' 2>/dev/null)"

# Ignored signals stay ignored (nohup), others keep their handling
want=$(grep -E 'SigIgn|SigBlk' /proc/self/status)
got=$("$unidle" run -o i1 -- grep -E 'SigIgn|SigBlk' /proc/self/status 2>/dev/null); check 'dispositions' "$want" "$got"
want=$(sh -c "trap '' HUP PIPE; exec grep SigIgn /proc/self/status")
got=$(sh -c "trap '' HUP PIPE; exec '$unidle' run -o i2 -- grep SigIgn /proc/self/status" 2>/dev/null); check 'ignored dispositions' "$want" "$got"
want=$(ls /proc/self/fd | wc -l)
got=$("$unidle" run -o i3 -- ls /proc/self/fd 2>/dev/null | wc -l); check 'no stray descriptors' "$want" "$got"

# Forwarded signals
trapper='trap "echo got $1; exit 5" $1; touch ready; while :; do sleep 0.05; done'
for signal in INT TERM HUP QUIT USR1 USR2; do
  rm -f ready
  # env: a shell starts background commands with INT and QUIT ignored
  env --default-signal=INT,QUIT "$unidle" run -o "f$signal" -- bash -c "$trapper" x $signal >out 2>/dev/null &
  pid=$!
  wait_for test -e ready
  kill -$signal $pid
  wait $pid; check "code after $signal" 5 $?
  check "$signal arrives once" "got $signal" "$(cat out)"
done
check 'outcome after TERM' '"stopped"' "$(query fTERM "select value from meta where key='outcome'")"
rm -f ready
"$unidle" run -o fdie -- sh -c 'touch ready; exec sleep 60' 2>/dev/null &
pid=$!
wait_for test -e ready
kill -TERM $pid
wait $pid; check 'killed by a forwarded TERM' 143 $?

# --timeout
"$unidle" run --timeout 0.3 -o t1 -- sleep 60 2>/dev/null; check 'timeout' 143 $?
"$unidle" run --timeout 1e12 -o t2 -- sleep 0.2 2>/dev/null; check 'a timeout that no clock reaches' 0 $?
check 'outcome of a timeout' '"timed-out"' "$(query t1 "select value from meta where key='outcome'")"

# A grandchild that keeps the output open must not block us
timeout 20 "$unidle" run -o g1 -- sh -c 'sleep 300 & echo $! >grandchild; echo said' >out 2>/dev/null
check 'grandchild holds the pipe' 0 $?
check 'what was said' said "$(cat out)"
kill "$(cat grandchild)" 2>/dev/null

# Terminal
if command -v script >/dev/null; then
  tty_run() { script -qec "$1" /dev/null </dev/null | tr -d '\r'; }
  got=$(tty_run "'$unidle' run -o y1 -- python3 -c 'import os; print(os.isatty(0), os.isatty(1), os.isatty(2))' 2>/dev/null")
  check 'stdout stays a terminal, stderr none' 'True True False' "$got"
  got=$(tty_run "'$unidle' run -o y2 -- sh -c 'test -t 1 && test -t 2 && echo both'" | head -1); check 'both terminals' both "$got"
  want=$(tty_run "stty rows 33 cols 77; sh -c 'stty size <&1'")
  got=$(tty_run "stty rows 33 cols 77; '$unidle' run -o y3 -- sh -c 'stty size <&1' 2>/dev/null"); check 'window size' "$want" "$got"
  script -qec "printf 'a\nb\n'" /dev/null </dev/null >want
  script -qec "'$unidle' run -o y4 -- printf 'a\nb\n' 2>/dev/null" /dev/null </dev/null >got; cmp want got; check 'line ends on a terminal' 0 $?
fi

# kill -9 of unidle itself leaves a readable record
"$unidle" run -o k1 -- sh -c 'echo first; while :; do sleep 0.1; done' >/dev/null 2>&1 &
pid=$!
# -readonly: it must not create the file that the run is about to create.
wait_for sh -c "test \"\$(sqlite3 -readonly k1/record.db 'select count(*) from points')\" -gt 3"
child=$(pgrep -P $pid)
kill -9 $pid; wait $pid 2>/dev/null
kill $child 2>/dev/null
check 'cut off: readable' 1 "$(query k1 "select count(*) from meta where key='start_ns'")"
check 'cut off: no end' 0 "$(query k1 "select count(*) from meta where key in ('end_ns', 'outcome')")"

# Default place, latest, and the list
"$unidle" run -- sh -c 'exit 3' >out 2>err; check 'default place' 3 $?
check 'nothing in stdout' '' "$(cat out)"
grep -q 'unidle diagnose' err; check 'says what is next' 0 $?
check 'latest' "$(ls home/runs | grep -v latest)" "$(readlink home/runs/latest)"
"$unidle" run --name mine -- true 2>/dev/null
check 'list as json' "$(printf 'mine completed\nsh failed')" \
  "$("$unidle" runs --format json | python3 -c 'import json,sys; print("\n".join(r["name"].split("-",2)[2]+" "+r["outcome"] for r in sorted(json.load(sys.stdin)["runs"], key=lambda r: r["name"].split("-",2)[2])))')"
check 'list as table' 3 "$("$unidle" runs | wc -l)"
cp -r k1 home/runs/19700101-000000-cut
echo garbage >home/runs/19700101-000000-cut/record.db
"$unidle" runs | grep -q 'cannot be read'; check 'damaged record in the list' 0 $?

# Our own failures never stop the command
touch file
"$unidle" run -o file/record -- echo works >out 2>err; check 'unwritable record: code' 0 $?
check 'unwritable record: output' works "$(cat out)"
check 'unwritable record: one warning' 1 "$(grep -c warning err)"

[ $failures -eq 0 ] && echo "run_test: all passed"
exit $((failures > 0))
