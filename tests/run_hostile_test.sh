#!/usr/bin/env bash
# `unidle run` under attack: whatever happens to it, the command's output, files and exit are those of the
# bare run.
subcommand=run
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
unset UNIDLE_LOG UNIDLE_PROBE_DIR
same() { [ "$2" = "$3" ] || fail "$1: expected '$2', got '$3'"; }
wait_for() {  # wait_for COMMAND...: until it succeeds, at most 60 s
  for _ in $(seq 1200); do
    if "$@" >/dev/null 2>&1; then return 0; fi
    sleep 0.05
  done
  fail "never came true: $*"
}

# Eight at once in one folder, in the same second: each starts its command and has its own record.
for i in 1 2 3 4 5 6 7 8; do
  "$unidle" run -- sh -c "echo $i >started.$i; exit $i" 2>err.$i &
  pids[i]=$!
done
for i in 1 2 3 4 5 6 7 8; do
  wait "${pids[$i]}"; same "eight at once, $i: code" "$i" $?
  same "eight at once, $i: the command" "$i" "$(cat started.$i 2>/dev/null)"
  same "eight at once, $i: lines" 1 "$(wc -l <err.$i)"
done
same 'eight records' 8 "$("$unidle" runs --format json | grep -c '"outcome": "failed"')"

# The same -o: one has it, the others are beside it; reusing a finished record is the caller's mistake.
for i in 1 2 3 4; do
  "$unidle" run -o same -- sh -c "echo $i >named.$i; while [ ! -e go ]; do sleep 0.05; done" 2>err.$i &
  pids[i]=$!
done
for i in 1 2 3 4; do wait_for test -e named.$i; done
touch go
for i in 1 2 3 4; do wait "${pids[$i]}"; same "same -o, $i: code" 0 $?; done
same 'records beside each other' 'same same-2 same-3 same-4' "$(echo same same-*)"
same 'said on stderr' 3 "$(cat err.[1-4] | grep -c 'holds the record of another run')"
refused -o same -- touch never
[ ! -e never ] || fail 'a refused command ran'
SLURM_NTASKS=8 "$unidle" run -o same -- touch task 2>err; same 'a task of srun finds a finished record' 0 $?
[ -e task ] && [ -e same-5/record.db ] || fail 'a task of srun was not started or recorded'

# No problem with the record keeps the command from starting.
unobserved() {  # unobserved DESCRIPTION COMMAND...: its output is "works", its code 5, and stderr has one line
  local what=$1
  shift
  "$@" >out 2>err
  same "$what: code" 5 $?
  same "$what: output" works "$(cat out)"
  same "$what: lines" 1 "$(wc -l <err)"
}
script='echo works; exit 5'
touch file
ln -s nowhere dangling
mkfifo fifo
mkdir -p taken/record.db
unobserved 'a file in the way' "$unidle" run -o file -- sh -c "$script"
unobserved 'a file above' "$unidle" run -o file/record -- sh -c "$script"
unobserved 'a device' "$unidle" run -o /dev/null -- sh -c "$script"
unobserved 'a fifo' "$unidle" run -o fifo -- sh -c "$script"
unobserved 'a link to nowhere' "$unidle" run -o dangling -- sh -c "$script"
unobserved 'the kernel refuses' "$unidle" run -o /proc/nothing -- sh -c "$script"
unobserved 'no home' env UNIDLE_HOME=/proc/nothing "$unidle" run -- sh -c "$script"
unobserved 'a home that is a file' env UNIDLE_HOME="$PWD/file" "$unidle" run -- sh -c "$script"
[ -c /dev/null ] && [ -p fifo ] && [ -L dangling ] || fail 'something was replaced'
mkdir gone
(cd gone && rmdir ../gone && unset UNIDLE_HOME && "$unidle" run -- sh -c "$script" >../out 2>../err); same 'a folder that is gone: code' 5 $?
same 'a folder that is gone: output' works "$(cat out)"
(ulimit -n 9; "$unidle" run -- sh -c "$script" >out 2>err); same 'hardly any descriptors: code' 5 $?
same 'hardly any descriptors: output' works "$(cat out)"
for closed in '0<&-' '1>&-' '2>&-' '0<&- 1>&- 2>&-'; do
  want=$(bash -c "ls /proc/self/fd $closed" 2>/dev/null; echo $?)
  got=$(bash -c "'$unidle' run -- ls /proc/self/fd $closed" 2>/dev/null; echo $?)
  same "streams closed ($closed)" "$want" "$got"
done
"$unidle" run -- sh -c 'exit 7' 2>/dev/full; same 'stderr is full' 7 $?
"$unidle" diagnose nothing 2>/dev/full; same 'stderr is full, of another command' 2 $?

# Output with -o replaces only files.
"$unidle" run -o report -- true 2>/dev/null
for to in fifo to-fifo; do
  ln -sf fifo to-fifo
  cat fifo >read & reader=$!
  "$unidle" report report -o $to >/dev/null; same "report -o $to" 0 $?
  wait $reader; grep -q '</html>' read || fail "report -o $to: nothing came through"
done
"$unidle" report report -o /dev/null >/dev/null; same 'report -o /dev/null' 0 $?
"$unidle" trace report -o /dev/null >/dev/null 2>&1; same 'trace -o /dev/null' 0 $?
echo first >page
"$unidle" report report -o /dev/stdout >>page; same 'report -o /dev/stdout' 0 $?
same 'appended to what was there' first "$(head -1 page)"
grep -q '</html>' page || fail 'report -o /dev/stdout: nothing came through'
ln -s page to-page
"$unidle" report report -o to-page >/dev/null; grep -q '<html' to-page || fail 'report -o to a link'
[ -c /dev/null ] && [ -p fifo ] && [ -L to-fifo ] && [ -L to-page ] && [ -L dangling ] || fail 'something was replaced by a file'

# However we were started, signals and waiting work.
same 'CHLD ignored' 3 "$(env --ignore-signal=CHLD timeout 60 "$unidle" run -- sh -c 'exit 3' 2>/dev/null; echo $?)"
want=$(env --ignore-signal=CHLD grep -E 'SigIgn|SigBlk' /proc/self/status)
same 'CHLD stays ignored' "$want" "$(env --ignore-signal=CHLD "$unidle" run -- grep -E 'SigIgn|SigBlk' /proc/self/status 2>/dev/null)"
for signal in TERM ALRM XCPU VTALRM RTMIN+3; do
  rm -f ready
  env --block-signal=TERM "$unidle" run -- python3 -c "
import signal, sys, time
number = getattr(signal, 'SIG' + '$signal'.split('+')[0]) + int('+0$signal'.rsplit('+', 1)[1].strip('ABCDEFGHIJKLMNOPQRSTUVWXYZ') or 0)
signal.signal(number, lambda *_: sys.exit(9))
signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
open('ready', 'w').close()
time.sleep(60)" 2>/dev/null &
  wait_for test -e ready
  kill -$signal $!
  wait $!; same "$signal reaches the command" 9 $?
done

# Regular files are the command's own, and are read back.
kind='import os,stat,sys; print(stat.S_ISREG(os.fstat(1).st_mode))'
echo before >log
"$unidle" run -o o1 -- python3 -c "$kind" >>log 2>/dev/null
same 'a file stays a file' "$(printf 'before\nTrue')" "$(cat log)"
tail_of() { sqlite3 "$1/record.db" "select cast(bytes as text) from output where stream='$2'"; }
same 'only what was appended is kept' True "$(tail_of o1 stdout)"
"$unidle" run -o o2 -- sh -c 'echo out; echo err >&2' >log 2>&1
same 'both in one file' "$(printf 'out\nerr')" "$(tail_of o2 stdout)"
"$unidle" run -o o3 -- sh -c 'echo out; echo err >&2' >/dev/null 2>&1
same 'thrown away and kept' "$(printf 'out\nerr')" "$(tail_of o3 stdout)"
"$unidle" run -- sh -c 'echo x || exit 4' >/dev/full 2>/dev/null; same 'a full disk is told to the command' 4 $?

# A child that outlives the command keeps its output, and delays its reader as without us, but not us.
"$unidle" run -- sh -c '(for i in $(seq 20); do sleep 0.1; echo late $i || exit 1; done; echo whole >later) & echo soon' 2>/dev/null | cat >out
same 'a child that outlives the command' "$(echo soon; for i in $(seq 20); do echo "late $i"; done)" "$(cat out)"
wait_for test -e later
same 'it came to its end' whole "$(cat later)"
rm -f go
"$unidle" run -- sh -c 'while [ ! -e go ]; do sleep 0.1; done & echo said' >out 2>/dev/null
touch go
same 'what was said' said "$(cat out)"

# A device library that hangs, in its constructor or in a call, delays neither start, nor signals, nor end.
hang_c='#include <unistd.h>
#ifdef IN_CONSTRUCTOR
__attribute__((constructor)) static void hang(void) { for (;;) pause(); }
#endif
int nvmlInit_v2(void) { for (;;) pause(); }
int nvmlDeviceGetCount_v2(unsigned *n) { *n = 0; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned i, void **d) { return 1; }'
if command -v cc >/dev/null; then
  echo "$hang_c" | cc -shared -fPIC -DIN_CONSTRUCTOR -x c - -o constructor.so
  echo "$hang_c" | cc -shared -fPIC -x c - -o call.so
  for which in constructor call; do
    export UNIDLE_NVML_LIBRARY="$PWD/$which.so"
    timeout 60 "$unidle" run -o hang-$which -- sh -c "$script" >out 2>err; same "$which hangs: code" 5 $?
    same "$which hangs: output" works "$(cat out)"
    sqlite3 hang-$which/record.db "select value from meta where key='problems'" | grep -q 'the driver does not answer' || fail "$which hangs: not in the record"
    same "$which hangs: the record is whole" '"failed"' "$(sqlite3 hang-$which/record.db "select value from meta where key='outcome'")"
    rm -f ready
    timeout 60 "$unidle" run -- bash -c 'trap "exit 8" TERM; touch ready; while :; do sleep 0.1; done' 2>/dev/null &
    wait_for test -e ready
    kill -TERM $!
    wait $!; same "$which hangs: signals pass" 8 $?
    unset UNIDLE_NVML_LIBRARY
  done
else
  echo 'no C compiler: hanging device libraries are not tried'
fi

# Closing a terminal reaches a command that is the session's leader.
python3 - "$unidle" <<'PY'
import os, pty, sys, time
pid, terminal = pty.fork()
if pid == 0:
    os.execv(sys.argv[1], [sys.argv[1], 'run', '--', 'bash', '-c', 'trap "echo hup >hung-up; exit" HUP; touch on; while :; do sleep 0.05; done'])
while not os.path.exists('on'):
    time.sleep(0.05)
os.close(terminal)
os.waitpid(pid, 0)
PY
same 'hang-up' hup "$(cat hung-up 2>/dev/null)"

# `latest` points to the run that began last, even if unidle was killed while it recorded it.
"$unidle" run --name earlier -- true 2>/dev/null
"$unidle" run --name killed -- sh -c 'touch begun; while [ ! -e go-on ]; do sleep 0.05; done' 2>/dev/null &
wait_for test -e begun
is_latest() { [[ $(readlink "$UNIDLE_HOME/runs/latest") == *-"$1" ]]; }
wait_for is_latest killed
kill -KILL $!
wait $! 2>/dev/null
is_latest killed || fail "latest is $(readlink "$UNIDLE_HOME/runs/latest") after a kill"
"$unidle" diagnose >out 2>&1
[ $? -le 1 ] || fail "a killed run cannot be diagnosed: $(cat out)"
touch go-on
"$unidle" run -- /nowhere/at-all 2>/dev/null
is_latest killed || fail 'a command that could not be started is the latest run'

# Killed at random points, with each kind of output; tools/attack.sh has the long version.
. "${UNIDLE_SOURCE:?}/tools/attack/kill_unidle.sh"
kill_unidle_at_random 24 || failures=$((failures + 1))
finish
