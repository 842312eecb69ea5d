#!/usr/bin/env python3
"""The cost of training together: the rate of several processes that share one model (Gloo, one thread each)
relative to as many independent processes. Rounds of both alternate; the ratio is the median of the rounds'
ratios. The goal is 0.95 for two.

The first half of each run is skipped, for two reasons. One-time work is done by then: two processes that
share the data see each sample half as often, and each waits for the other's first-time work. And all
processes have started: one that is alone on the machine for a while is faster.

    bench/ranks_cost.py [WORKLOAD ...] [--processes 2] [--rounds 5] [--samples N] [--json]

"""

import json
import os
import random
import subprocess
import sys

from common.workload_runs import alternate, arguments, config_of, own_home, prepare, row, training
from engine_parity import CASES


def place(rank, processes, port):
    """Returns the variables that torchrun sets for its processes."""
    return {
        "RANK": str(rank),
        "WORLD_SIZE": str(processes),
        "LOCAL_RANK": str(rank),
        "LOCAL_WORLD_SIZE": str(processes),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
    }


def rates(config, samples, processes, together):
    """Returns the rates that the processes print; only the first one's when they train together."""
    settings = ["device=cpu", "cpu.threads=1", "validation.interval=0", "loader.workers=0"]
    counted = samples * processes if together else samples
    settings += [f"train.samples={counted}", f"train.warmup_samples={counted // 2}"]
    port = random.randint(21000, 31999)
    started = [
        subprocess.Popen(
            training(config, *settings),
            env=os.environ | (place(rank, processes, port) if together else {}),
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank in range(processes)
    ]
    printed = [process.communicate()[0] for process in started]
    if any(process.returncode != 0 for process in started):
        sys.exit("ranks_cost: a process failed")
    return [json.loads(text)["samples_per_s"] for text in printed if text.strip()]


def compared(workload, args):
    config = config_of(workload)
    prepare(config)
    samples = args.samples or CASES[workload].samples
    rounds = alternate(
        args.rounds, [True, False], lambda together: sum(rates(config, samples, args.processes, together))
    )
    name = f"{workload}, {args.processes} processes of one thread"
    return row(name, "samples/s", rounds, "independent processes")


def main():
    parser = arguments(__doc__)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--samples", type=int, help="of each process; each workload has its own number")
    args = parser.parse_args()
    with own_home():
        rows = [compared(workload, args) for workload in args.workloads or CASES]
    if args.json:
        print(json.dumps(rows))
        return
    for entry in rows:
        print(
            f"{entry['name']}: {entry['ours']:.1f} samples/s together, "
            f"{entry['peers']['independent processes']:.1f} apart, "
            f"ratio {entry['ratio']:.2f} ({entry['ratio_low']:.2f} to {entry['ratio_high']:.2f})"
        )
    print(rows[0]["machine"])


if __name__ == "__main__":
    main()
