"""Whether the observer's memory grows: resident memory of the shim over many steps and many batches, and of
`unidle run` over many steps.

Real training of 10^7 steps would take a day, so the patches' calls are made directly, without torch: the
shim's loop, ring and sample counts are the real ones. `unidle run` is real, too; its command writes step
events as the shim does, as fast as they are read. Memory is read after each tenth; reported is the growth
over the last nine tenths relative to the memory after the first.

"""

import argparse
import json
import os
import platform
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(os.environ.get("UNIDLE_BIN", ROOT / "build" / "bin"))
FLAT = 1.05  # limit of the memory after the last tenth, relative to the first

PROGRAM = """
import gc, json, os, sys
sys.path[:0] = [%r, %r]
from _unidle_shim.host import probe
from _unidle_shim.loop.loop import now
from _unidle_shim.samples import sample_cost as samples
from test_loop import Loader, Module, Optimizer, Program
what, count = sys.argv[1], int(sys.argv[2])
program, loader, model, optimizer = Program(), Loader("train"), Module(), Optimizer()
loop = program.loop
loop.ring = ring = probe.open_ring("train")
book = samples.Samples(0)
def resident():
    gc.collect()
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
def step(number):
    program.fetch(loader)
    program.forward(model)
    program.backward()
    program.step(optimizer)
def batch(number):
    program.fetch(loader)
    book.took += [250] * 4
    samples.account(book, ring, now(), now(), 4, 1000, 10)
def told(number):
    while ring._head - ring._tail_word[0] > 12000:
        pass
    values = []
    for index in range(32 * number, 32 * number + 32):
        values += 1000 * index, 10, index, probe.INPUT, 1000 * index, 1000, index, 4, 1, probe.STEP
    ring.emit_all("pS" * 32, values)
work, each = {"steps": (step, 1), "batches": (batch, 1), "told": (told, 32)}[what]
sizes = []
for tenth in range(10):
    for number in range(tenth * count // each // 10, (tenth + 1) * count // each // 10):
        work(number)
        if what != "told":
            ring._tail_word[0] = ring._head  # as the reader would
    sizes.append(resident())
    if what == "told":
        with open("/proc/%%d/statm" %% os.getppid()) as file:
            sizes[-1] = int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
ring.close()
print(json.dumps(sizes))
""" % (str(ROOT / "python" / "shim"), str(ROOT / "python" / "tests"))


def alone(what, count):
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, what, str(count)],
            env=dict(os.environ, UNIDLE_PROBE_DIR=folder),
            capture_output=True,
            text=True,
            check=True,
        )
    return json.loads(done.stdout)


def observed(count):
    with tempfile.TemporaryDirectory() as folder:
        record = Path(folder) / "record"
        done = subprocess.run(
            [
                str(BIN / "unidle"),
                "run",
                "-o",
                str(record),
                "--",
                sys.executable,
                "-c",
                PROGRAM,
                "told",
                str(count),
            ],
            capture_output=True,
            text=True,
            check=True,
        )
        steps = sqlite3.connect(record / "record.db").execute("select count(*) from steps").fetchone()[0]
    if steps != count // 32 // 10 * 10 * 32 and steps != count // 32 * 32:
        sys.exit("observe_memory: %d steps were recorded of %d" % (steps, count))
    return json.loads(done.stdout)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--steps", type=int, default=10_000_000)
    parser.add_argument("--batches", type=int, default=10_000_000)
    parser.add_argument(
        "--recorded", type=int, default=10_000_000, help="steps of the run under `unidle run`"
    )
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    cases = {
        "the shim, %d steps" % options.steps: alone("steps", options.steps),
        "the shim, %d batches that feed no step" % options.batches: alone("batches", options.batches),
        "unidle run, %d steps" % options.recorded: observed(options.recorded),
    }
    worst = max(sizes[-1] / sizes[0] for sizes in cases.values())
    if options.json:
        print(
            json.dumps(
                {
                    "name": "observe_memory",
                    "unit": "resident memory at the end / after a tenth",
                    "ours": worst,
                    "peers": {},
                    "ratio": worst,
                    "cases": cases,
                    "machine": f"{platform.processor() or platform.machine()}, {os.cpu_count()} CPUs",
                }
            )
        )
    else:
        print("MiB after      1/10    5/10     end      added")
        for name, sizes in cases.items():
            print(
                "           "
                + "".join("%8.1f" % (sizes[at] / 2**20) for at in (0, 4, 9))
                + "%11.2f  " % ((sizes[-1] - sizes[0]) / 2**20)
                + name
            )
    return 0 if worst <= FLAT else 1


if __name__ == "__main__":
    sys.exit(main())
