#!/usr/bin/env python3
"""What it costs to train together: the rate of several processes that share one model (Gloo, one thread each)
against that of as many processes that have nothing to do with each other. Rounds of both, in turns; the ratio
is the median of the rounds' ratios. The goal is 0.95 for two.

    bench/ranks_cost.py [WORKLOAD ...] [--processes 2] [--rounds 5] [--samples N] [--json]
"""

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile

from engine_parity import CASES, ROOT, machine

TRAINER = os.path.join(ROOT, "build", "bin", "unidle-train")


def place(rank, processes, port):
    """What torchrun tells the processes that it starts."""
    return {
        "RANK": str(rank),
        "WORLD_SIZE": str(processes),
        "LOCAL_RANK": str(rank),
        "LOCAL_WORLD_SIZE": str(processes),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
    }


def rates(config, samples, processes, together):
    """The rates that the processes print; the first one's alone where they train together."""
    settings = ["device=cpu", "cpu.threads=1", "validation.interval=0", "loader.workers=0"]
    settings.append(f"train.samples={samples * processes if together else samples}")
    port = random.randint(21000, 31999)
    command = [TRAINER, config, "--format", "json", "-q", *settings]
    started = [
        subprocess.Popen(
            command,
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
    config = os.path.join(ROOT, "workloads", workload, "tuned.yaml")
    subprocess.run([TRAINER, config, "--prepare"], check=True, stdout=subprocess.DEVNULL)
    samples = args.samples or CASES[workload].samples
    rounds = []
    for number in range(args.rounds):
        order = [True, False] if number % 2 == 0 else [False, True]
        both = {together: sum(rates(config, samples, args.processes, together)) for together in order}
        rounds.append((both[True], both[False]))
    ratios = [together / apart for together, apart in rounds]
    return {
        "name": f"{workload}, {args.processes} processes of one thread",
        "unit": "samples/s",
        "ours": statistics.median(together for together, _ in rounds),
        "peers": {"independent processes": statistics.median(apart for _, apart in rounds)},
        "ratio": statistics.median(ratios),
        "ratio_low": min(ratios),
        "ratio_high": max(ratios),
        "machine": machine(),
    }


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("workloads", nargs="*", metavar="WORKLOAD", help="all of them when none is named")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--samples", type=int, help="of each process; each workload has its own number")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["UNIDLE_HOME"] = folder
        rows = [compared(workload, args) for workload in args.workloads or CASES]
    if args.json:
        print(json.dumps(rows))
        return
    for row in rows:
        print(
            f"{row['name']}: {row['ours']:.1f} samples/s together, "
            f"{row['peers']['independent processes']:.1f} apart, "
            f"ratio {row['ratio']:.2f} ({row['ratio_low']:.2f} to {row['ratio_high']:.2f})"
        )
    print(machine())


if __name__ == "__main__":
    main()
