#!/usr/bin/env python3
"""The result of `unidle optimize --benchmark` on the workloads' naive.yaml, compared with tuned.yaml.

Each search has at most --trials trials and --budget of time. Then its result, tuned.yaml and naive.yaml
train alternately; a ratio is the median over the rounds, with the lowest and the highest. Rates are those
of the loop, including waiting for data.

    bench/optimize_workloads.py [WORKLOAD ...] [--rounds 5] [--trials 12] [--budget 10m] [--json]

"""

import json
import os
import statistics
import subprocess
import sys

from common.workload_runs import (
    BIN,
    alternate,
    arguments,
    config_of,
    machine,
    own_home,
    prepare,
    spread,
    trained,
)
from engine_parity import CASES


def optimized(workload, args, folder):
    """Returns the file that a search wrote, its number of trials, and its changes."""
    naive = config_of(workload, "naive.yaml")
    made = os.path.join(folder, workload + ".yaml")
    prepare(naive)
    prepare(config_of(workload))  # also fills the disk cache, which a setting may enable
    command = [f"{BIN}/unidle", "optimize", naive, "--benchmark", "-o", made, "--format", "json", "--fresh"]
    command += ["--trials", str(args.trials), "--budget", args.budget]
    finished = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if finished.returncode not in (0, 1):
        sys.exit(f"the search of {workload} failed")
    answer = json.loads(finished.stdout)
    changes = [f"{change['knob']}={json.dumps(change['to'])}" for change in answer["changes"]]
    return made if os.path.exists(made) else naive, len(answer["trials"]), changes


def compared(workload, args, folder):
    made, trials, changes = optimized(workload, args, folder)
    samples = f"train.samples={CASES[workload].samples}"
    rounds = alternate(
        args.rounds,
        [made, config_of(workload), config_of(workload, "naive.yaml")],
        lambda config: trained(config, samples)["samples_per_s"],
    )
    against_tuned = spread([made / tuned for made, tuned, _ in rounds])
    return {
        "name": workload,
        "unit": "samples/s",
        "ours": statistics.median(round[0] for round in rounds),
        "peers": {"tuned.yaml": statistics.median(round[1] for round in rounds)},
        "ratio": against_tuned["value"],
        "against_tuned": against_tuned,
        "against_naive": spread([made / naive for made, _, naive in rounds]),
        "trials": trials,
        "changes": changes,
        "machine": machine(),
    }


def main():
    parser = arguments(__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--trials", type=int, default=12)
    parser.add_argument("--budget", default="10m")
    args = parser.parse_args()
    entries = []
    with own_home() as folder:
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
