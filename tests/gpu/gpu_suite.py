#!/usr/bin/env python3
"""Programs with known answers, on the GPU of this machine, and what is measured there.

gpu_suite.py UNIDLE [--python PYTHON] [--out FOLDER] [--tests FOLDER] [--seconds N] [--only NAME ...]

Writes FOLDER/gpu-suite.json and FOLDER/gpu-suite.html anew with each result, so that a suite that is cut off
leaves what it has found, and prints a line for each. Ends with 1 where something does not hold, and with 0
where everything holds or was skipped by name. Takes no more than N seconds (480). A part that hangs is ended
when it has taken what the later ones are not expected to need. Needs no network."""

import argparse
import os
import signal
import sys

import known
import machine
import measures
import suite as suites

HERE = os.path.dirname(os.path.abspath(__file__))


def parts(suite, tests, root, only=None):
    """[(name, what does it, seconds that it is expected to take, seconds at most)]: what tells most goes
    first. `only`: the programs among these names, where there are any."""
    bare = {}
    programs = [name for name in known.TABLE if only is None or name in only]
    found = [
        ("answers", lambda: machine.answers(suite), 6, 60),
        ("check-smi", lambda: machine.check_beside_smi(suite), 2, 30),
        ("mig", lambda: machine.mig_beside_smi(suite), 2, 30),
        ("bare", lambda: bare.update(known.run_bare(suite, programs)), 40, 200),
    ]
    for name in programs:
        found.append((name, lambda name=name: known.observe(suite, name, bare.get(name)), 9, 60))
    for name in sorted(os.listdir(tests)) if tests else []:
        if name.endswith("_gpu_test.sh"):
            path = os.path.join(tests, name)
            found.append((name[: -len(".sh")], lambda path=path: machine.run_test(suite, path), 30, 100))
    found += [
        ("overhead", lambda: measures.overhead(suite), 60, 120),
        ("superres", lambda: measures.superres(suite, root), 60, 100),
        ("check-speed", lambda: machine.speed(suite), 20, 60),
        ("loader-idle", lambda: measures.idle_beside_profiler(suite), 10, 40),
        ("monitor-smi", lambda: measures.monitor_beside_smi(suite), 14, 60),
    ]
    return found


def chosen(found, only):
    """Those of these names; the programs bare as well where one of them is wanted."""
    if only is None:
        return found
    wanted = set(only) | ({"bare"} if set(only) & set(known.TABLE) else set())
    return [part for part in found if part[0] in wanted]


def run_parts(suite, found):
    for at, (name, work, expected_s, most_s) in enumerate(found):
        later_s = sum(later for _, _, later, _ in found[at + 1 :])
        suite.part(name, work, expected_s, most_s, later_s)
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
    given = parser.parse_args()
    suite = suites.Suite(given.unidle, given.python, given.out, budget_s=given.seconds)

    def end(*_):
        suite.end_commands()
        sys.exit(143)

    signal.signal(signal.SIGTERM, end)
    tests = os.path.abspath(given.tests) if given.tests else None
    try:
        found = chosen(parts(suite, tests, os.path.abspath(given.root), given.only), given.only)
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
    sys.exit(1 if suite.counts()["fails"] else 0)


if __name__ == "__main__":
    main()
