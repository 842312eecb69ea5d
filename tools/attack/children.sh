# $CHILDREN short children (20000), each of which leaves a note: measures the CPU time of unidle, and finds
# leftovers.
attack_children() {
  local children=${CHILDREN:-20000} python=${UNIDLE_PYTHON:-python3} spent
  cat >children.py <<'PROGRAM'
import os, sys
folder = os.environ.get("UNIDLE_PROBE_DIR")
for number in range(int(sys.argv[1])):
    pid = os.fork()
    if pid == 0:
        if folder:
            with open(os.path.join(folder, "%d.%d.notes.jsonl" % (os.getpid(), number + 1)), "a") as file:
                file.write('{"type":"metric","name":"child","value":1}\n')
        os._exit(0)
    os.waitpid(pid, 0)
PROGRAM
  "$python" - "$unidle" "$python" "$children" <<'PROGRAM'
import os, sqlite3, sys, time
unidle, python, children = sys.argv[1:]
began = time.monotonic()
pid = os.spawnv(os.P_NOWAIT, unidle, [unidle, "run", "--no-capture", "-o", "record", "--", python, "children.py", children])
own = 0.0
while True:
    with open("/proc/%d/stat" % pid) as file:
        fields = file.read().rsplit(")", 1)[1].split()
    if fields[0] == "Z":
        break
    own = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    time.sleep(0.02)
os.waitpid(pid, 0)
took = time.monotonic() - began
noted = sqlite3.connect("record/record.db").execute("select count(*) from metrics where name = 'child'").fetchone()[0]
print("%s children in %.1f s: unidle used %.2f s of CPU time, %.1f %% of a CPU; %d noted, files left: %s" % (
    children, took, own, 100 * own / took, noted, os.path.exists("record/probe")))
sys.exit(noted != int(children) or os.path.exists("record/probe"))
PROGRAM
}
