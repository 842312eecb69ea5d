#!/usr/bin/env python3
"""Diagnoses the workloads as their guides found them: observes the naive run of each, in C++ and in Python,
and prints a table in Markdown (docs/workloads.md).

    tools/diagnose_workloads.py [WORKLOAD ...] [--only cpp,python] [--folder FOLDER]

Data and records go to a temporary folder, or stay in FOLDER. Needs a build with the engine.
"""

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
UNIDLE = os.path.join(ROOT, "build", "bin", "unidle")
# For the Python programs in addition to --mode naive: workers as in the guide, and runs of a minute or two.
PEER_OPTIONS = {
    "superres": ["--samples", "480"],
    "timeseries": ["--samples", "12800"],
    "recsys": ["--samples", "40000"],
    "keypoint": ["--samples", "64", "--workers", "28"],
    "protein": ["--samples", "320"],
}


def observed(command, record):
    """The diagnosis of the command's run."""
    finished = subprocess.run([UNIDLE, "run", "-o", record, "--", *command], capture_output=True, text=True)
    if finished.returncode != 0:
        sys.exit(f"{' '.join(command)} failed:\n{finished.stderr[-2000:]}")
    told = subprocess.run([UNIDLE, "diagnose", record, "--format", "json"], capture_output=True, text=True)
    if told.returncode not in (0, 1):
        sys.exit(told.stderr)
    return json.loads(told.stdout)


def words(diagnosis):
    """The verdict, and the findings with their shares of the wall time."""
    causes = []
    for finding in diagnosis["findings"]:
        share = f" {finding['share']:.0%}" if finding["share"] else ""
        causes.append(f"`{finding['id']}`{share}")
    return f"{diagnosis['verdict']}: {', '.join(causes) or 'nothing'}"


def commands(workload, folder, only):
    config = os.path.join(ROOT, "workloads", workload, "naive.yaml")
    if "cpp" in only:
        yield "C++", [UNIDLE, "train", config, "-q"]
    if "python" in only:
        peer = os.path.join(ROOT, "bench", "peers", workload + ".py")
        data = os.path.join(folder, "data", workload)
        yield "Python", [sys.executable, peer, "--mode", "naive", "--data", data, *PEER_OPTIONS[workload]]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("workloads", nargs="*", metavar="WORKLOAD", help="all of them when none is named")
    parser.add_argument("--only", default="cpp,python")
    parser.add_argument("--folder", help="where data and records stay")
    args = parser.parse_args()
    print("| name | run | the diagnosis |")
    print("|---|---|---|", flush=True)
    with contextlib.nullcontext(args.folder) if args.folder else tempfile.TemporaryDirectory() as folder:
        os.environ["UNIDLE_HOME"] = folder
        for workload in args.workloads or PEER_OPTIONS:
            config = os.path.join(ROOT, "workloads", workload, "naive.yaml")
            subprocess.run([UNIDLE, "train", config, "--prepare"], check=True, stdout=subprocess.DEVNULL)
            for name, command in commands(workload, folder, args.only):
                diagnosis = observed(command, os.path.join(folder, f"{workload}-{name}"))
                print(f"| `{workload}` | {name} | {words(diagnosis)} |", flush=True)


if __name__ == "__main__":
    main()
