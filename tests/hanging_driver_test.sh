#!/usr/bin/env bash
# A device library that hangs when it is loaded, in its first call, in a reading or at its end: check, monitor
# and optimize abandon it.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
export UNIDLE_NVML_LIBRARY="$UNIDLE_LIB/libunidle_fake_nvml.so" UNIDLE_FAKE_NVML_SCRIPT="$folder/script"

# hangs WHERE: it hangs there from now on, until there is a file go.
hangs() {
  rm -f go go.hangs
  unset UNIDLE_FAKE_NVML_HANG
  printf 'count 1\nname H200\nmemory 150754820096:40000000000\nutilisation 20\npower 350000\n' >script
  case $1 in
    loading) export UNIDLE_FAKE_NVML_HANG="$folder/go" ;;
    init) echo "init hang:$folder/go" >>script ;;
    reading) echo "energy 1000 hang:$folder/go" >>script ;;
    end) echo "shutdown hang:$folder/go" >>script ;;
  esac
}
# The driver's call that the answer must name.
named() {
  case $1 in
    loading) echo 'the driver does not answer (loading its library, ' ;;
    init) echo 'the driver does not answer (nvmlInit_v2, ' ;;
    reading) echo 'the driver does not answer (nvmlDeviceGetTotalEnergyConsumption, ' ;;
    end) echo 'the driver does not answer (nvmlShutdown, ' ;;
  esac
}
# within COMMAND...: does not hang itself. Its output is in out and err.
within() { timeout -k 5 90 "$@" >out 2>err; }
json() { python3 -c "import json, sys; d = json.load(open('out')); sys.exit(not ($1))" || fail "$2: not true: $1: $(cat out err)"; }
# lines CONDITION WHAT: some of the samples (`line`) in monitor's JSON lines match.
lines() {
  python3 -c "
import json, sys
found = [line for line in map(json.loads, filter(lambda one: one.endswith('\n'), open('out'))) if line['type'] == 'sample']
sys.exit(not any($1 for line in found))"
}
wait_for() {
  for _ in $(seq 600); do "$@" && return; sleep 0.1; done
  fail "waited in vain for: $*"
}

for where in loading init reading end; do
  hangs $where
  [ $where = reading ] && sed -i 's/energy 1000 /energy /' script
  within "$unidle" check --format json
  [ $? = 1 ] || fail "$where, check: not 1: $(cat err)"
  json 'd["gpus"] is None and d["host"]["cpu"]["allowed"] > 0' "$where"
  json "[p for p in d['problems'] if p['id'] == 'gpu-driver-hangs' and p['level'] == 'critical' and p['message'].startswith('$(named $where)')]" "$where"
  [ ! -s err ] || fail "$where, check: stderr has $(cat err)"
done

# monitor continues with the host, and says so in one line.
for where in loading init; do
  hangs $where
  within "$unidle" monitor --seconds 1 --interval 200 --format json || fail "$where, monitor: exit code $?"
  lines 'line["gpus"] is None and line["host"]' || fail "$where, monitor: the host is not there: $(cat out)"
  has err "unidle: $(named $where)"
  [ "$(wc -l <err)" = 1 ] || fail "$where, monitor: not one line: $(cat err)"
  tail -1 out | grep -q '"verdict":"there is a GPU driver that does not answer' || fail "$where, monitor: the verdict: $(tail -1 out)"
done

# A hanging reading does not end monitoring; when the driver responds again, so does the monitor.
hangs reading
within "$unidle" monitor --interval 200 --format json &
watcher=$!
wait_for lines 'line["gpus"] and line["gpus"][0]["energy"] is not None'
wait_for lines 'line["gpus"] is None and line["host"]'
has err "unidle: $(named reading)"
touch go
wait_for python3 -c "
import json, sys
rows = [json.loads(line) for line in open('out') if line.endswith('\n')]
hung = max(i for i, row in enumerate(rows) if row['type'] == 'sample' and row['gpus'] is None)
sys.exit(not any(row['gpus'] for row in rows[hung:]))"
kill -INT $(pgrep -P $watcher -x timeout || echo $watcher)
wait $watcher
tail -1 out | grep -q '"type":"summary"' || fail "a reading that hung: no summary: $(tail -1 out)"

# Ctrl-C need not wait for the driver; at the end it is abandoned too.
hangs init
"$unidle" monitor --interval 200 >out 2>err &
watcher=$!
wait_for [ -e go.hangs ]
kill -INT $watcher
wait $watcher || fail "Ctrl-C while the driver hangs: exit code $?"
hangs end
within "$unidle" monitor --seconds 0.5 --interval 100 || fail "monitor, end: exit code $?"
has out "350 W"
within "$unidle" run -o recorded -- true || fail "run, end: exit code $?"

# Prometheus gets the host's figures.
hangs loading
"$unidle" monitor --listen :0 --interval 200 >out 2>err &
watcher=$!
wait_for grep -q 'the driver does not answer' err
url=$(sed -n 's/.*serving //p' err)
wait_for python3 -c "
import sys, urllib.request
text = urllib.request.urlopen('$url', timeout=20).read().decode()
sys.exit('unidle_host_cpu' not in text or 'unidle_gpu_' in text)"
kill -INT $watcher
wait $watcher || fail "serving: exit code $?"

# Advice for a machine with unknown devices.
for where in loading init; do
  hangs $where
  printf 'workload: superres\nbatch_size: 4\nnum_workers: 0\n' >config.yaml
  within "$unidle" optimize config.yaml
  code=$?
  [ $code = 0 ] || fail "$where, optimize: exit code $code: $(cat err)"
  cat out err | grep -qF "$(named $where)" || fail "$where, optimize does not say so: $(cat out err)"
done

finish
