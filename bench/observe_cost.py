"""What observation costs the observed run, and whether it changes anything.

Pairs of the same training run, bare and under `unidle run`, in alternating order. Reported: the ratio of
training rates (median of the pairs, with its bootstrap interval) and whether the losses are equal to the bit.
"""

import argparse
import json
import os
import platform
import random
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BIN = ROOT / "build" / "bin"


def train(config, samples, record):
    command = [str(BIN / "unidle-train"), str(config), f"train.samples={samples}", "validation.interval=0",
               "--format", "json", "-q"]
    if record is not None:
        command = [str(BIN / "unidle"), "run", "-o", str(record), "--"] + command
    before = os.times()
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    after = os.times()
    summary = json.loads(done.stdout)
    summary["cpu_s"] = (after.children_user - before.children_user) + (after.children_system - before.children_system)
    return summary


def interval(values, rounds=4000):
    draw = random.Random(1)
    medians = sorted(statistics.median(draw.choices(values, k=len(values))) for _ in range(rounds))
    return medians[int(0.025 * rounds)], medians[int(0.975 * rounds)]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=10)
    parser.add_argument("--samples", type=int, default=400)
    parser.add_argument("--config", default=str(ROOT / "workloads" / "superres" / "tuned.yaml"))
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()

    rate, cpu, equal = [], [], True
    with tempfile.TemporaryDirectory() as folder:
        for pair in range(options.pairs):
            runs = {}
            for observed in ([False, True] if pair % 2 == 0 else [True, False]):
                record = Path(folder) / f"record-{pair}" if observed else None
                runs[observed] = train(options.config, options.samples, record)
            rate.append(runs[False]["samples_per_s"] / runs[True]["samples_per_s"])
            cpu.append(runs[True]["cpu_s"] / runs[False]["cpu_s"])
            equal &= all(runs[True][key] == runs[False][key] for key in ("loss_first", "loss_last", "metric"))
            print(f"pair {pair + 1}/{options.pairs}: time x{rate[-1]:.4f}  cpu x{cpu[-1]:.4f}", file=sys.stderr)

    low, high = interval(rate)
    result = {
        "name": "observe_cost", "unit": "time of a step, observed / bare",
        "ours": statistics.median(rate), "peers": {"bare": 1.0}, "ratio": statistics.median(rate),
        "interval": [low, high], "cpu_ratio": statistics.median(cpu), "losses_equal": equal,
        "pairs": options.pairs, "machine": f"{platform.processor() or platform.machine()}, {os.cpu_count()} CPUs",
    }
    if options.json:
        print(json.dumps(result))
    else:
        print(f"time of a step, observed / bare   {result['ours']:.4f}   95 % {low:.4f} to {high:.4f}")
        print(f"CPU time, observed / bare         {result['cpu_ratio']:.4f}   (includes unidle's own processes)")
        print(f"losses equal to the bit           {'yes' if equal else 'NO'}")
    return 0 if equal else 1


if __name__ == "__main__":
    sys.exit(main())
