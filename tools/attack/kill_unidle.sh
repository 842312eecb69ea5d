# Sourced: kills `unidle run` with SIGKILL at random points. Needs $unidle and an own current folder. The
# command, its files, its output and its end must be the same as without us.

# Writes 40 numbered lines on both streams, a file, and how it ended; a child that outlives it continues
# writing.
_victim='trap "echo PIPE >>$1.end; exit 1" PIPE
for i in $(seq 40); do echo "out $i" || exit 2; echo "err $i" >&2 || exit 2; echo "$i" >>$1.file; sleep 0.01; done
(for i in $(seq 10); do sleep 0.02; echo "late $i" || exit 3; done; echo child >>$1.end) &
echo done >>$1.end; exit 0'

_wait_until() {
  for _ in $(seq 1200); do
    if "$@" >/dev/null 2>&1; then return 0; fi
    sleep 0.05
  done
  return 1
}

_has_lines() { [ "$(wc -l <"$1" 2>/dev/null || echo 0)" -ge "$2" ]; }

# The command and its child have ended, or neither exists: nobody holds the lock that all of them inherited.
# The test also requires that the keepers of the output do not hold it.
_is_over() { flock -n -x "v$1.lock" true; }

_start() {
  exec 9>"v$1.lock"
  flock -s 9
  exec "$unidle" run -- bash -c "$_victim" x "v$1"
}

# The differences from the bare run in round NUMBER of KIND; empty if there are none.
_difference() {
  local n=$1 kind=$2
  [ "$(sort "v$n.end")" = "$(printf 'child\ndone')" ] || { echo "it ended as '$(cat "v$n.end")'"; return; }
  cmp -s "v$n.file" want.file || { echo "its file"; return; }
  [ "$kind" != null ] || return
  _wait_until _has_lines "v$n.out" 50
  cmp -s "v$n.out" want.out || { echo "its stdout"; return; }
  grep -v '^unidle: ' "v$n.err" | cmp -s - want.err || echo "its stderr"
}

# One round: NUMBER, KIND of output (file, pipe, null), MILLISECONDS after which it is killed.
_kill_round() {
  local n=$1 kind=$2 after=$3 pid difference
  case $kind in
    file) _start "$n" >"v$n.out" 2>"v$n.err" & pid=$! ;;
    null) _start "$n" >/dev/null 2>&1 & pid=$! ;;
    pipe)
      mkfifo "v$n.fifo"
      cat "v$n.fifo" >"v$n.out" &
      _start "$n" >"v$n.fifo" 2>"v$n.err" & pid=$! ;;
  esac
  sleep "$(printf '0.%03d' "$after")"
  kill -9 $pid 2>/dev/null && kill_hits=$((kill_hits + 1))
  wait $pid 2>/dev/null
  [ -e "v$n.lock" ] || : >"v$n.lock"
  if ! _wait_until _is_over "$n"; then
    difference='it does not end'
  elif [ ! -e "v$n.file" ]; then  # killed before it started the command: then no file of it exists
    kill_before=$((kill_before + 1))
  else
    difference=$(_difference "$n" "$kind")
  fi
  [ -z "${difference:-}" ] || { echo "round $n ($kind, $after ms): $difference"; return 1; }
  rm -f "v$n".*
}

# kill_unidle_at_random ROUNDS: prints the counts; fails if one round differed.
kill_unidle_at_random() {
  local rounds=$1 bad=0 n kind
  kill_hits=0 kill_before=0
  bash -c "$_victim" x want >want.out 2>want.err
  _wait_until _has_lines want.end 2
  for n in $(seq "$rounds"); do
    case $((n % 3)) in 0) kind=file ;; 1) kind=pipe ;; *) kind=null ;; esac
    _kill_round "$n" $kind $((RANDOM % 950)) || bad=$((bad + 1))
  done
  echo "kill -9 of unidle: $rounds rounds, $kill_hits killed ($kill_before of them before the command was started), $bad differed from the bare run"
  [ $bad = 0 ]
}

attack_kill_unidle() { kill_unidle_at_random "${ATTACK_ROUNDS:-200}"; }
