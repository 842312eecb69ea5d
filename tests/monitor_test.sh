#!/usr/bin/env bash
# unidle monitor: lines, CSV, JSON, the live view in a pseudo-terminal, and the metrics for Prometheus.
subcommand=monitor
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
fake="$UNIDLE_LIB/libunidle_fake_nvml.so"
# until_true COMMAND...: it succeeds within a minute, so that the machine's speed does not matter.
until_true() {
  for _ in $(seq 600); do "$@" >/dev/null 2>&1 && return; sleep 0.1; done
  fail "never came true: $*"
}

# Usage.
expect 2 --interval 1
expect 2 --seconds -1
expect 2 --format xml
expect 2 --listen nonsense --seconds 0.1
expect 2 --pid 999999999
[ "$(wc -l <err)" = 1 ] || fail "an input error takes more than one line: $(cat err)"

# Without a GPU the CPU is the device.
export UNIDLE_NVML_LIBRARY="$folder/nowhere.so"
expect 0 --seconds 1.2 --interval 100
has out "Verdict: the CPU, which is the device here"
grep -q $'\x1b' out && fail "control characters without a terminal"
expect 0 --seconds 0.3 --interval 100 --format live
has out "Verdict"
expect 0 --seconds 0.5 --interval 100 --lang zh
all_chinese out

# With two devices, one of which does not report its power.
cat >script <<'SCRIPT'
count 2
name H200
uuid GPU-1234
memory 150754820096:40000000000
utilisation 20 30 40
0.power 350000
power_limit 700000
energy 1000000 2000000
temperature 55
clock 1980
throttle 0
gpm 1
gpm.2 25
gpm.5 10
processes 4711:30000000000
xid 1:79
SCRIPT
export UNIDLE_NVML_LIBRARY="$fake" UNIDLE_FAKE_NVML_SCRIPT="$folder/script"
expect 0 --seconds 1.6 --interval 100
has out "gpu0"
has out "350/700 W"
has out "SM  25 %"
has out "Verdict: the GPUs idled part of the time"
has out "energy"
has out "Xid errors"
expect 0 --seconds 1.6 --interval 100 --lang zh
all_chinese out
for format in csv json; do  # for programs: always English
  expect 0 --seconds 0.5 --interval 100 --format $format --lang zh
  LC_ALL=C grep -q $'[\x80-\xff]' out && fail "Chinese in $format: $(cat out)"
done
expect 0 --seconds 0.5 --interval 100 --format csv
python3 - <<'PY' || fail "the CSV is not what it should be: $(cat out)"
import csv
rows = list(csv.DictReader(open("out")))
assert len(rows) >= 3, len(rows)
assert float(rows[-1]["gpu0.power"]) == 350, rows[-1]
assert rows[-1]["gpu1.power"] == "", "absent is an empty field"
assert float(rows[-1]["gpu1.sm_activity"]) == 0.25, rows[-1]
PY
has err "Verdict"
expect 0 --seconds 1.6 --interval 100 --format json
python3 - <<'PY' || fail "the JSON lines are not what they should be: $(cat out)"
import json
lines = [json.loads(line) for line in open("out")]
assert [line["type"] for line in lines[:-1]] == ["sample"] * (len(lines) - 1)
assert lines[-1]["type"] == "summary" and lines[-1]["verdict"]
assert lines[0]["gpus"][1]["power"] is None
assert lines[0]["gpus"][0]["processes"] == [{"pid": 4711, "memory": 30000000000, "share": None}]
assert lines[-1]["gpus"][0]["energy_j"] == 1000, lines[-1]
assert lines[-1]["gpus"][1]["xid_errors"] == 1
PY

# A driver that does not respond is not "no GPU".
UNIDLE_NVML_LIBRARY=libm.so.6 expect 0 --seconds 0.3 --interval 100 --format json
tail -1 out | python3 -c 'import json, sys; d = json.load(sys.stdin); sys.exit(d["gpus"] is not None or "unidle check" not in d["verdict"])' ||
  fail "a broken driver: $(cat out)"

# A watched process that ends.
sh -c 'while [ ! -e stop ]; do :; done' &
busy=$!
children+=("$busy")
"$unidle" monitor --pid $busy --interval 200 --format json >out 2>err &
watcher=$!
until_true python3 -c "
import json
lines = [json.loads(line) for line in open('out') if line.endswith('\n')]
assert sum(1 for line in lines for p in line.get('processes', []) if p['pid'] == $busy and (p['cpu'] or 0) > 0.02) > 1"
touch stop
wait $watcher || fail "watching a process that ends: exit code $?"
python3 - <<PY || fail "the watched process: $(tail -2 out)"
import json
lines = [json.loads(line) for line in open("out")]
rows = [p for line in lines[:-1] for p in line["processes"] if p["pid"] == $busy and p["cpu"] is not None]
assert rows and max(p["cpu"] for p in rows) > 0.02, rows
assert rows[0]["state"] in "RS"
PY

# A run in progress is followed while its record is being written.
cat >steps.py <<'PY'
import os, time
while not os.path.exists("enough"):
    time.sleep(0.05)
PY
"$unidle" run -- python3 steps.py >/dev/null 2>&1 &
running=$!
for _ in $(seq 100); do [ -e .unidle/runs/*-steps/record.db ] && break; sleep 0.1; done
"$unidle" monitor --seconds 2.5 --interval 200 --format json >out 2>err
tail -2 out | head -1 | python3 -c '
import json, sys
d = json.load(sys.stdin)
assert d["run"] and d["run"]["folder"].endswith("-steps"), d["run"]
assert d["cpu"]["watched_pid"] == d["run"]["pid"]
assert any(p["name"].startswith("python") for p in d["processes"]), d["processes"]
' || fail "a run under way is not followed: $(tail -2 out)"
touch enough
wait $running || fail "the run under way was disturbed"

# Signals end it with the summary and code 0.
for signal in INT TERM HUP; do
  "$unidle" monitor --interval 100 >out 2>err &
  watcher=$!
  until_true grep -q . out
  kill -$signal $watcher
  wait $watcher
  code=$?
  [ $code = 0 ] || fail "$signal: exit code $code"
  has out "Verdict"
done

# The live view in a pseudo-terminal.
cat >live.py <<'PY'
import fcntl, os, pty, re, select, signal, struct, sys, termios, time

def size(fd, rows, columns):
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

def start(arguments, environment):
    pid, fd = pty.fork()
    if pid == 0:
        os.environ.update(environment)
        os.execv(os.environ["unidle"], ["unidle", "monitor", "--interval", "100"] + arguments)
    size(fd, 24, 80)
    return pid, fd

def read_until(fd, wanted, limit=20.0):
    """All that came until `wanted` is in it; fails after `limit` seconds."""
    seen = b""
    end = time.monotonic() + limit
    while wanted not in seen:
        left = end - time.monotonic()
        assert left > 0, (wanted, seen[-2000:])
        if select.select([fd], [], [], left)[0]:
            try:
                chunk = os.read(fd, 65536)
            except OSError:
                chunk = b""
            assert chunk, ("ended before", wanted, seen[-2000:])
            seen += chunk
    return seen

def finish(pid, fd):
    seen = b""
    while True:
        try:
            chunk = os.read(fd, 65536)
        except OSError:
            break
        if not chunk:
            break
        seen += chunk
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), seen

ascii_terminal = {"TERM": "xterm", "LC_ALL": "C"}
ENTER, LEAVE = b"\x1b[?1049h", b"\x1b[?1049l"

# q quits; the screen is restored, then the summary follows.
pid, fd = start([], ascii_terminal)
seen = read_until(fd, b"kernels ran")
assert ENTER in seen, seen
os.write(fd, b"h"); read_until(fd, b"any kernel ran")
os.write(fd, b"h")
os.write(fd, b"s"); read_until(fd, b"memory")
os.write(fd, b"p"); read_until(fd, b"PAUSED")
os.write(fd, b"p"); read_until(fd, b"pause")
size(fd, 10, 40)
os.kill(pid, signal.SIGWINCH)
size(fd, 60, 200)
os.kill(pid, signal.SIGWINCH)
read_until(fd, b"kernels ran")
size(fd, 1, 1)
os.kill(pid, signal.SIGWINCH)
time.sleep(0.3)
size(fd, 24, 80)
os.kill(pid, signal.SIGWINCH)
read_until(fd, b"kernels ran")
os.write(fd, b"q")
code, seen = finish(pid, fd)
assert code == 0, code
assert LEAVE in seen and b"Verdict:" in seen.split(LEAVE)[-1], seen[-2000:]

# Ctrl-C, as the terminal sends it.
pid, fd = start([], ascii_terminal)
read_until(fd, b"kernels ran")
os.write(fd, b"\x03")
code, seen = finish(pid, fd)
assert code == 0 and LEAVE in seen and b"Verdict:" in seen, (code, seen[-2000:])

# Block characters if the locale has them, no colours with NO_COLOR.
pid, fd = start([], {"TERM": "xterm-256color", "LC_ALL": "C.UTF-8", "NO_COLOR": "1"})
seen = read_until(fd, "█".encode())
os.write(fd, b"q")
code, rest = finish(pid, fd)
assert code == 0 and not re.search(rb"\x1b\[3[123]m", seen + rest), seen

# A terminal without capabilities gets lines.
pid, fd = start(["--seconds", "0.5"], {"TERM": "dumb"})
code, seen = finish(pid, fd)
assert code == 0 and b"\x1b" not in seen and b"util" in seen and b"Verdict" in seen, (code, seen)

# The terminal is closed: the monitor ends.
pid, fd = start([], ascii_terminal)
read_until(fd, b"kernels ran")
os.close(fd)
end = time.monotonic() + 20
while os.waitpid(pid, os.WNOHANG)[0] == 0:
    assert time.monotonic() < end, "it goes on without a terminal"
    time.sleep(0.05)
PY
python3 live.py >live.out 2>&1 || fail "the live view: $(tail -5 live.out)"

# The metrics that Prometheus gets.
"$unidle" monitor --listen :0 --interval 100 >out 2>err &
watcher=$!
children+=("$watcher")
for _ in $(seq 100); do grep -q 'serving http' err && break; sleep 0.1; done
url=$(sed -n 's/.*serving //p' err)
case "$url" in http://127.0.0.1:*) ;; *) fail "not on the loopback interface: $url" ;; esac
until_true python3 -c "
import urllib.request
assert b'unidle_gpu_sm_activity_ratio{' in urllib.request.urlopen('$url', timeout=20).read()"
python3 - "$url" >metrics.txt <<'PY' || fail "the metrics were not served"
import sys, urllib.request
sys.stdout.write(urllib.request.urlopen(sys.argv[1], timeout=20).read().decode())
PY
python3 - <<'PY' || fail "the metrics are malformed: $(cat metrics.txt)"
import re
text = open("metrics.txt").read()
assert text.endswith("\n")
types, seen, closed, family = {}, set(), set(), None
label = r'[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\\\|\\"|\\n)*"'
sample = re.compile(r'^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(%s(?:,%s)*)?\})? (\S+)$' % (label, label))
for line in text.splitlines():
    if line.startswith(("exposer_", "# HELP exposer_", "# TYPE exposer_")):
        continue  # of the library that serves them
    if line.startswith("# HELP "):
        assert line.split(" ", 3)[3].strip(), line
        continue
    if line.startswith("# TYPE "):
        _, _, name, kind = line.split(" ")
        assert name not in types, "twice: " + name
        assert kind in ("counter", "gauge"), line
        assert (kind == "counter") == name.endswith("_total"), "naming: " + line
        types[name] = kind
        continue
    match = sample.match(line)
    assert match, line
    name, labels, value = match.group(1), match.group(2), float(match.group(3))
    assert name in types, "no type: " + line
    assert (name, labels) not in seen, "twice: " + line
    if name != family:
        assert name not in closed, "a family in pieces: " + name
        closed.add(family)
        family = name
    seen.add((name, labels))
    assert name.startswith("unidle_"), name
assert ("unidle_gpu_power_watts", 'gpu="gpu0"') in seen and ("unidle_gpu_power_watts", 'gpu="gpu1"') not in seen
assert ("unidle_gpu_sm_activity_ratio", 'gpu="gpu1"') in seen
PY
# HOST:PORT/metrics is not a valid address.
"$unidle" monitor --listen "${url#http://}" --seconds 0.2 2>err2 >/dev/null
[ $? = 2 ] || fail "a malformed address"
port=${url#http://127.0.0.1:}
"$unidle" monitor --listen "${port%/metrics}" --seconds 0.2 >/dev/null 2>err2
[ $? = 2 ] || fail "a port that is taken: $(cat err2)"
kill -INT $watcher
wait $watcher || fail "serving, then Ctrl-C: exit code $?"
has out "Verdict"
grep -q 'util ' out && fail "lines although it only serves"

finish
