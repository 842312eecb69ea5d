#!/usr/bin/env python3
"""A grid of settings as one command, compared with training the same candidates one by one.

`unidle-train --grid` starts once and shares data between candidates. Rounds are interleaved; a figure is
the wall time of all candidates, including start-up and validation.

    bench/grid.py [WORKLOAD ...] [--rounds 5] [--json]      # timeseries when none is named

"""

import itertools
import json
import subprocess
import sys
import time

from common.workload_runs import TRAINER, alternate, arguments, config_of, own_home, prepare, row

AXES = {
    "model.width": ["32", "64", "128"],
    "input.size": ["30", "60"],
}  # hidden size and days, as in the guide
SAMPLES = 2560


def seconds(commands):
    begin = time.perf_counter()
    for command in commands:
        finished = subprocess.run(command, capture_output=True, text=True)
        if finished.returncode != 0:
            sys.exit(f"grid: {' '.join(command)} failed:\n{finished.stderr}")
    return time.perf_counter() - begin


def compare(workload, rounds):
    config = config_of(workload)
    prepare(config)
    base = [TRAINER, config, f"train.samples={SAMPLES}", "device=cpu", "-q"]
    grid = [option for key, values in AXES.items() for option in ("--grid", f"{key}={','.join(values)}")]
    points = itertools.product(*([f"{key}={value}" for value in values] for key, values in AXES.items()))
    sides = [[base + grid], [base + list(point) for point in points]]
    times = alternate(rounds, sides, seconds)
    name = f"grid of {workload}, {len(sides[1])} candidates of {SAMPLES} samples"
    return row(name, "s", times, "one by one", lambda together, apart: apart / together)


def main():
    parser = arguments(__doc__, "timeseries when none is named")
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    with own_home():
        rows = [compare(workload, args.rounds) for workload in args.workloads or ["timeseries"]]
    if args.json:
        print(json.dumps(rows))
        return
    for entry in rows:
        (apart,) = entry["peers"].values()
        print(
            f"{entry['name']}: {entry['ours']:.2f} s as a grid, {apart:.2f} s one by one, "
            f"{entry['ratio']:.2f} ({entry['ratio_low']:.2f} to {entry['ratio_high']:.2f})"
        )
    print(rows[0]["machine"])


if __name__ == "__main__":
    main()
