#!/usr/bin/env python3
"""Programs with known answers, on the GPU of this machine, and what is measured there.

gpu_suite.py UNIDLE [--python PYTHON] [--out FOLDER] [--tests FOLDER] [--seconds N] [--only NAME ...]

Rewrites FOLDER/gpu-suite.json and FOLDER/gpu-suite.html with each result, so that a suite that is cut off
leaves its results so far, and prints a line for each; FOLDER/gpu-suite-records.tar.gz has the records. Ends
with 1 if something does not hold, and with 0 if everything holds or was skipped by name. Takes no more than N
seconds (400). A hanging part is ended when it has used the time that the later ones are not expected to need.
Needs no network. --list prints the names of the parts."""

import argparse
import concurrent.futures
import itertools
import os
import shutil
import signal
import sys
import tempfile

import costs
import driver
import gains
import known
import machine
import measures
import parity
import readings
import suite as suites

HERE = os.path.dirname(os.path.abspath(__file__))


# Programs with known answers: those that must run as without us, those of two faults that are hard to detect,
# and the usual ones.
UNCHANGED = ("fork", "capture", "tf32_api", "scripted")
HARD = ("pinned_async", "frozen_encoder")
USUAL = ("fp32_item", "healthy_bf16", "launch_bound", "pageable", "gan")


def parts(suite, tests, root, only=None, compared=None, budget="45s"):
    """[(name, function, expected seconds, maximal seconds)], the most informative first. `only`: the programs
    among these names, if any."""
    bare, compared = {}, compared or parity.Parity(suite, root)
    programs = [name for name in known.TABLE if only is None or name in only]

    def observed(names):
        return [
            (name, lambda name=name: known.observe(suite, name, bare.get(name)), 11, 60)
            for name in names
            if name in programs
        ]

    def tested(name):
        path = os.path.join(tests or "", name + ".sh")
        return [(name, lambda: machine.run_test(suite, path), 90, 150)] if os.path.exists(path) else []

    others = [name for name in programs if name not in UNCHANGED]
    rest = [name for name in programs if name not in UNCHANGED + HARD + USUAL]
    wanted_tests = sorted(name[:-3] for name in os.listdir(tests) if is_test(name)) if tests else []
    return [
        ("parity-begin", compared.begin, 1, 5),
        *[part for name in wanted_tests for part in tested(name)],
        ("bare", lambda: bare.update(known.run_bare(suite, others)), 60, 120),
        *observed(UNCHANGED),
        ("answers", lambda: machine.answers(suite), 6, 60),
        ("check-smi", lambda: machine.check_beside_smi(suite), 2, 30),
        ("mig", lambda: machine.mig_beside_smi(suite), 2, 30),
        ("parity", compared.measure, 90, 180),
        ("overhead", lambda: costs.overhead(suite), 48, 90),
        *observed(HARD),
        *observed(USUAL),
        ("readings", lambda: readings.side_by_side(suite), 40, 90),
        ("speed", lambda: driver.ceilings(suite), 20, 50),
        ("driver", lambda: driver.readings(suite), 8, 40),
        ("trace", lambda: costs.trace(suite), 25, 60),
        ("kernels", lambda: costs.kernels(suite), 35, 80),
        ("optimize-engine", lambda: gains.engine(suite, root, budget), 60, 240),
        ("optimize-program", lambda: gains.program(suite, root, budget), 60, 240),
        *observed(rest),
        ("loader-idle", lambda: measures.idle_beside_profiler(suite), 10, 40),
        ("monitor-smi", lambda: measures.monitor_beside_smi(suite), 14, 60),
    ]


def is_test(name):
    return name.endswith("_gpu_test.sh")


def chosen(found, only):
    """The parts with these names; also the bare programs if one of them is selected."""
    if only is None:
        return found
    wanted = set(only) | ({"bare"} if set(only) & set(known.TABLE) else set())
    wanted |= {"parity-begin"} if "parity" in wanted else set()
    return [part for part in found if part[0] in wanted]


def is_untimed(name):
    """Such parts run in parallel, while the variants for the comparison with torch are compiled."""
    return name.endswith("_gpu_test") or name in UNCHANGED + ("bare", "answers", "check-smi", "mig")


def together(suite, parts):
    with concurrent.futures.ThreadPoolExecutor(len(parts)) as pool:
        for name, work, _, _ in parts:
            pool.submit(suite.attempt, name, work)


def run_parts(suite, found):
    """Runs the parts one after another; consecutive untimed ones in parallel."""
    steps = []
    for untimed, group in itertools.groupby(found, lambda part: is_untimed(part[0])):
        group = list(group)
        if untimed and len(group) > 1:
            names, work = ", ".join(part[0] for part in group), lambda group=group: together(suite, group)
            group = [(names, work, max(part[2] for part in group), max(part[3] for part in group))]
        steps += group
    for at, (name, work, expected_s, most_s) in enumerate(steps):
        suite.part(name, work, expected_s, most_s, sum(later for _, _, later, _ in steps[at + 1 :]))
    for name, work, _, most_s in found:
        suite.again(name, work, most_s)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("unidle")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--out", default="gpu-suite")
    parser.add_argument("--tests", default=None, metavar="FOLDER")
    parser.add_argument("--root", default=os.path.join(HERE, ".."), help="has workloads/ and bench/")
    parser.add_argument("--seconds", type=float, default=suites.BUDGET_S)
    parser.add_argument("--only", nargs="*", default=None, metavar="NAME")
    parser.add_argument("--workloads", nargs="*", default=[], help="of parity; all when none is named")
    parser.add_argument("--prepared", type=int, default=None, help="samples of the data of parity")
    parser.add_argument("--budget", default="45s", help="of each search of `unidle optimize`")
    parser.add_argument("--work", default=None, metavar="FOLDER", help="keep what is made on the way there")
    parser.add_argument("--list", action="store_true")
    given = parser.parse_args()
    work = given.work or tempfile.mkdtemp(prefix="unidle-gpu-suite-")
    suite = suites.Suite(given.unidle, given.python, given.out, work, budget_s=given.seconds)
    tests = os.path.abspath(given.tests) if given.tests else None
    if given.list:
        print(*(name for name, *_ in parts(suite, tests, os.path.abspath(given.root))))
        return

    def end(*_):
        suite.end_commands()
        sys.exit(143)

    signal.signal(signal.SIGTERM, end)
    try:
        root = os.path.abspath(given.root)
        compared = parity.Parity(suite, root, given.workloads, given.prepared)
        found = chosen(parts(suite, tests, root, given.only, compared, given.budget), given.only)
        suite.facts = machine.facts(suite)
        if "device" in suite.facts:
            run_parts(suite, found)
        else:
            for name, _, _, _ in found:
                suite.add(name, "skipped", why="no GPU that %s can use" % given.python)
        suite.complete = True
    finally:
        suite.end_commands()
        suite.write()
        suite.archive()
        if given.work is None:
            shutil.rmtree(work, ignore_errors=True)
    sys.exit(1 if suite.counts()["fails"] else 0)


if __name__ == "__main__":
    main()
