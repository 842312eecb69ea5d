#!/usr/bin/env bash
# The engine's live line: rate, loss, input wait and remaining time on a terminal, nothing elsewhere; Ctrl-C
# ends the run after its step.
subcommand=
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
needs_torch
needs_engine
make_houses 500
"$python" - <<'PY' || fail "Python could not make the model"
import torch
torch.jit.script(torch.nn.Linear(2, 1)).save("line.pt")
PY
cat >houses.yaml <<'YAML'
workload: torchscript
script: {model: line.pt, table: houses.csv, targets: price}
batch.size: 20
metrics.interval: 5
validation.interval: 0
train.samples: 20000000
device: cpu
cpu.threads: 1
YAML

cat >watch.py <<'PY'
"""Runs the command on a terminal of 110 columns until its live line is whole; then Ctrl-C."""
import fcntl, os, pty, re, select, signal, struct, sys, termios, time

pid, fd = pty.fork()
if pid == 0:
    os.execvp(sys.argv[1], sys.argv[1:])
fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 110, 0, 0))
line = re.compile(r"training \[[#.]{4,24}\] \d+/20000000 loss \S+, \S+ samples/s, input wait \d+ % ETA \S")
seen, interrupted, deadline = "", False, time.monotonic() + 120
while time.monotonic() < deadline:
    if select.select([fd], [], [], 0.2)[0]:
        try:
            seen += os.read(fd, 65536).decode(errors="replace")
        except OSError:
            break
    if not interrupted and line.search(seen):
        interrupted = True
        os.kill(pid, signal.SIGINT)
else:
    os.kill(pid, signal.SIGKILL)  # it hangs, or its line was never complete: the assertions below say which
code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
lines = [part for part in seen.replace("\r", "\n").split("\n") if "training [" in part]
assert interrupted, f"the line was never whole: {seen[-500:]!r}"
assert all(len(part.replace("\x1b[K", "")) < 110 for part in lines), max(lines, key=len)
assert "torchscript on cpu, houses.yaml (stopped early)" in seen, seen[-500:]
assert code == 130, code
PY
"$python" watch.py "$UNIDLE_BIN/unidle-train" houses.yaml >python.txt 2>&1 || fail "on a terminal: $(cat python.txt)"

expect 0 train houses.yaml train.samples=20000
[ ! -s err ] || fail "off a terminal: $(cat err)"
expect 0 train houses.yaml train.samples=2000 --format json
"$python" -c 'import json; json.loads(open("out").read())["samples_per_s"]' || fail "no JSON: $(cat out)"
[ "$(wc -l <out)" = 1 ] || fail "JSON of several lines"
finish
