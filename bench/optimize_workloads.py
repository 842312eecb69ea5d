#!/usr/bin/env python3
"""What `unidle optimize --benchmark` makes of the workloads' naive.yaml, against their tuned.yaml.

Each search has --trials trials and --budget of time. What it wrote, tuned.yaml and naive.yaml then train in
turns; a ratio is the median over the rounds, with the lowest and the highest. Rates are of the loop, with
waiting for data.

    bench/optimize_workloads.py [WORKLOAD ...] [--rounds 5] [--trials 12] [--budget 10m] [--json]
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

from engine_parity import CASES, ROOT, machine

BIN = os.path.join(ROOT, "build", "bin")


def optimized(workload, args, folder):
    """The file that a search wrote, how many trials it took, and what it changed."""
    naive = os.path.join(ROOT, "workloads", workload, "naive.yaml")
    made = os.path.join(folder, workload + ".yaml")
    subprocess.run([f"{BIN}/unidle", "train", naive, "--prepare"], check=True, stdout=subprocess.DEVNULL)
    # The cache on disk, which a setting may turn on, is filled for tuned.yaml here.
    tuned = os.path.join(ROOT, "workloads", workload, "tuned.yaml")
    subprocess.run([f"{BIN}/unidle", "train", tuned, "--prepare"], check=True, stdout=subprocess.DEVNULL)
    command = [f"{BIN}/unidle", "optimize", naive, "--benchmark", "-o", made, "--format", "json", "--fresh"]
    command += ["--trials", str(args.trials), "--budget", args.budget]
    finished = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if finished.returncode not in (0, 1):
        sys.exit(f"the search of {workload} failed")
    answer = json.loads(finished.stdout)
    changes = [f"{change['knob']}={json.dumps(change['to'])}" for change in answer["changes"]]
    return made if os.path.exists(made) else naive, len(answer["trials"]), changes


def rate(config, samples):
    command = [f"{BIN}/unidle-train", config, "--format", "json", "-q", f"train.samples={samples}"]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)[
        "samples_per_s"
    ]


def compared(workload, args, folder):
    made, trials, changes = optimized(workload, args, folder)
    folder_of = os.path.join(ROOT, "workloads", workload)
    configs = [made, f"{folder_of}/tuned.yaml", f"{folder_of}/naive.yaml"]
    rounds = []
    for number in range(args.rounds):
        order = configs if number % 2 == 0 else configs[::-1]
        rates = {config: rate(config, CASES[workload].samples) for config in order}
        rounds.append([rates[config] for config in configs])

    def ratio(other):
        ratios = [round[0] / round[other] for round in rounds]
        return {"value": statistics.median(ratios), "low": min(ratios), "high": max(ratios)}

    return {
        "name": workload,
        "unit": "samples/s",
        "ours": statistics.median(round[0] for round in rounds),
        "peers": {"tuned.yaml": statistics.median(round[1] for round in rounds)},
        "ratio": ratio(1)["value"],
        "against_tuned": ratio(1),
        "against_naive": ratio(2),
        "trials": trials,
        "changes": changes,
        "machine": machine(),
    }


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("workloads", nargs="*", metavar="WORKLOAD", help="all of them when none is named")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--trials", type=int, default=12)
    parser.add_argument("--budget", default="10m")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    entries = []
    with tempfile.TemporaryDirectory() as folder:
        os.environ["UNIDLE_HOME"] = folder
        for workload in args.workloads or CASES:
            entries.append(compared(workload, args, folder))
            if not args.json:
                entry = entries[-1]
                told = {
                    key: "{value:.2f} ({low:.2f} to {high:.2f})".format(**entry[f"against_{key}"])
                    for key in ("naive", "tuned")
                }
                print(
                    f"{workload}: {told['naive']} of naive.yaml, {told['tuned']} of tuned.yaml; "
                    f"{entry['trials']} trials: {', '.join(entry['changes']) or 'nothing'}",
                    flush=True,
                )
    if args.json:
        print(json.dumps(entries))
    else:
        print(machine())


if __name__ == "__main__":
    main()
