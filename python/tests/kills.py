"""kill -9 of the observed process, of unidle, or of both, at random points: does the record open, and does it
contain every step?

    UNIDLE_BIN=build/bin python3 python/tests/kills.py --kills 1000 --program shim

Prints the counts; the exit code is 1 if a record did not open or a step was missing, duplicate or invented.
"""

import argparse
import json
import mmap
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

HERE = os.path.dirname(os.path.abspath(__file__))
UNIDLE = os.path.join(os.environ.get("UNIDLE_BIN", ""), "unidle")
PROGRAM = os.path.join(HERE, "programs", "counted.py")
SHIM = os.path.join(HERE, "..", "shim")
BOUND = 1  # steps: the last one is known to be over when the next batch is requested
RUN_S = {"shim": 0.8, "torch": 5.0}  # after the first step, or in one run of five after the start
LONGEST_S = 300
# A program whose unidle was killed runs on for this long; its ring has space for ten times that.
AFTER_S = 0.3
KINDS = ("command", "unidle", "both")


def children(pid):
    try:
        with open("/proc/%d/task/%d/children" % (pid, pid)) as file:
            return [int(word) for word in file.read().split()]
    except OSError:
        return []


def kill(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except OSError:
        pass


def wait_gone(pid):
    """The program is not a child of ours once its unidle is gone."""
    while True:
        try:
            with open("/proc/%d/stat" % pid) as file:
                if file.read().rsplit(")", 1)[1].split()[0] in "ZX":
                    return
        except OSError:
            return
        time.sleep(0.002)


def diagnose(record):
    done = subprocess.run([UNIDLE, "diagnose", record, "--format", "json"], capture_output=True, text=True)
    if done.returncode not in (0, 1) or not done.stdout:
        return "it does not open: " + done.stderr.strip()
    json.loads(done.stdout)
    return None


def recorded(record):
    database = sqlite3.connect("file:%s?mode=ro" % os.path.join(record, "record.db"), uri=True)
    try:
        return [row[0] for row in database.execute("select idx from steps order by rowid")]
    finally:
        database.close()


def judged(record, told, exact):
    """What is wrong with the record; None if nothing is. `exact`: all processes have ended."""
    before = told[0]
    if not os.path.exists(os.path.join(record, "record.db")):
        return "no record of %d steps" % before if before else None
    why = diagnose(record)
    if why:
        return why
    steps = recorded(record)
    after = told[0] if not exact else before
    if steps != list(range(len(steps))):
        return "steps are missing or there twice: %d of them, the last %s" % (len(steps), steps[-1:])
    if not before - BOUND <= len(steps) <= after + 1:
        return "%d steps of %d" % (len(steps), before)
    return None


def one(seed, program):
    """Returns (kind, steps, only marked, what is wrong or None)."""
    draw = random.Random(seed)
    kind = KINDS[seed % 3]
    folder = tempfile.mkdtemp(prefix="kills")
    try:
        path, record = os.path.join(folder, "told"), os.path.join(folder, "record")
        with open(path, "w+b") as file:
            file.truncate(24)
            told = memoryview(mmap.mmap(file.fileno(), 24)).cast("Q")
        run_s = RUN_S[program]
        environment = {name: value for name, value in os.environ.items() if not name.startswith("UNIDLE_")}
        environment.update(OMP_NUM_THREADS="1", PYTHONPATH=SHIM if program == "shim" else "")
        process = subprocess.Popen(
            [
                UNIDLE,
                "run",
                "--no-capture",
                "-o",
                record,
                "--",
                sys.executable,
                PROGRAM,
                program,
                path,
                str(LONGEST_S),
            ],
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        if draw.random() < 0.8:
            while not told[0] and process.poll() is None:
                time.sleep(0.005)
        time.sleep(draw.uniform(0, run_s))
        if kind == "command":
            while not children(process.pid) and process.poll() is None:
                time.sleep(0.002)
            started = children(process.pid)
        else:
            process.send_signal(signal.SIGSTOP)  # so that it starts nothing between the check and its end
            started = children(process.pid)
            kill(process.pid)
            process.wait()
        wrong = None
        if kind == "unidle" and draw.random() < 0.5:
            time.sleep(draw.uniform(0, AFTER_S))
            wrong = judged(
                record, told, exact=False
            )  # the program continues: its later events are read the next time
        elif kind == "unidle":
            time.sleep(draw.uniform(0, AFTER_S))
        marked = bool(told[2])
        for pid in started or ([told[1]] if told[1] else []):
            kill(pid)
            wait_gone(pid)
        process.wait()
        return kind, told[0], marked, wrong or judged(record, told, exact=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def run(kills, program, at_once=4, first=0):
    """Counts by kind, and the failures: (seed, what)."""
    counts, wrong = (
        {kind: {"kills": 0, "with steps": 0, "steps": 0, "within a stretch": 0} for kind in KINDS},
        [],
    )
    with ThreadPoolExecutor(at_once) as pool:
        for seed, (kind, steps, marked, why) in enumerate(
            pool.map(lambda n: one(first + n, program), range(kills))
        ):
            count = counts[kind]
            count["kills"] += 1
            count["steps"] += steps
            count["with steps"] += steps > 0
            count["within a stretch"] += marked
            if why:
                wrong.append((first + seed, kind, why))
    return counts, wrong


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--program", choices=sorted(RUN_S), default="shim")
    parser.add_argument("--at-once", type=int, default=4)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    options = parser.parse_args()
    counts, wrong = run(options.kills, options.program, options.at_once, options.first)
    for kind in KINDS:
        print(
            "kill -9 of %-8s" % kind, ", ".join("%s %d" % (name, counts[kind][name]) for name in counts[kind])
        )
    for seed, kind, why in wrong:
        print("seed %d, %s: %s" % (seed, kind, why))
    print("%d kills, %d records wrong" % (options.kills, len(wrong)))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
