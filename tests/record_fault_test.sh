#!/usr/bin/env bash
# A disk that fills up while a run is recorded: the command must not notice.
set -u
unidle="$UNIDLE_BIN/unidle"
work=$(mktemp -d)
trap 'umount "$work/small" 2>/dev/null; rm -rf "$work"' EXIT
cd "$work" || exit 1
unset UNIDLE_LOG UNIDLE_PROBE_DIR
failures=0
check() {
  if [ "$2" != "$3" ]; then
    echo "FAILED: $1: expected '$2', got '$3'"
    failures=$((failures + 1))
  fi
}

# A file size limit simulates a full disk if nothing can be mounted.
full_disk() {  # full_disk RECORD OUTPUT_BYTES
  "$unidle" run -o "$1" -- sh -c "head -c $2 /dev/zero; sleep 1.5; echo end >&2; exit 6" >out 2>err
  check "$1: code" 6 $?
  check "$1: output" "$2" "$(stat -c %s out)"
  check "$1: stderr" 1 "$(grep -c '^end$' err)"
}

mkdir small
if mount -t tmpfs -o size=64k none small 2>/dev/null; then
  full_disk small/tiny 100000
  check 'tiny: one warning' 1 "$(grep -c warning err)"
  umount small
  mount -t tmpfs -o size=256k none small
  full_disk small/later 100000000
  head -c 1000000 /dev/zero >small/fill 2>/dev/null
  "$unidle" run -o small/none -- echo works >out 2>err
  check 'no room at all: code' 0 $?
  check 'no room at all: output' works "$(cat out)"
  check 'no room at all: one warning' 1 "$(grep -c warning err)"
  umount small
else
  echo "no tmpfs can be mounted here: only the file size limit is tested"
fi

(ulimit -f 40; full_disk limited 30000; exit $failures) || failures=$((failures + $?))

mkdir readonly
chmod 555 readonly
if [ "$(id -u)" != 0 ]; then
  "$unidle" run -o readonly/r -- echo works >out 2>err
  check 'read-only folder: code' 0 $?
  check 'read-only folder: output' works "$(cat out)"
fi

[ $failures -eq 0 ] && echo "record_fault_test: all passed"
exit $((failures > 0))
