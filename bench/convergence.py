#!/usr/bin/env python3
"""Whether tuned.yaml learns as well as naive.yaml: the metrics of both after the same samples, for several
seeds. Prints the mean difference of the pairs and its 95 % interval (Student's t); an interval that
contains zero shows no difference.

    bench/convergence.py [WORKLOAD ...] [--seeds 5] [--samples N] [--json]

"""

import json
import math
import statistics
import sys

from common.workload_runs import arguments, config_of, own_home, prepare, trained

CHEAPEST = ["timeseries", "recsys"]
# Student's t at 97.5 % for 1, 2, ... degrees of freedom.
T = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262]


def metrics(config, seed, samples):
    settings = [f"seed={seed}", "validation.interval=0"]
    if samples:
        settings.append(f"train.samples={samples}")
    summary = trained(config, *settings)
    return summary["metric"] | {"loss_last": summary["loss_last"]}, summary["samples"]


def interval(differences):
    """Returns the mean and the half-width of its 95 % interval."""
    half = T[len(differences) - 2] * statistics.stdev(differences) / math.sqrt(len(differences))
    return statistics.mean(differences), half


def compared(workload, args):
    configs = [config_of(workload, name) for name in ("naive.yaml", "tuned.yaml")]
    for config in configs:
        prepare(config)
    pairs = []
    for seed in range(1, args.seeds + 1):
        (naive, samples), (tuned, as_many) = (metrics(config, seed, args.samples) for config in configs)
        if samples != as_many:
            sys.exit(f"{workload}: naive.yaml trained {samples} samples and tuned.yaml {as_many}")
        pairs.append((naive, tuned))
    for name in pairs[0][0]:
        difference, half = interval([tuned[name] - naive[name] for naive, tuned in pairs])
        yield {
            "name": f"{workload}, {name} after {samples} samples",
            "naive": statistics.mean(naive[name] for naive, _ in pairs),
            "tuned": statistics.mean(tuned[name] for _, tuned in pairs),
            "spread": statistics.stdev(naive[name] for naive, _ in pairs),
            "difference": difference,
            "interval": [difference - half, difference + half],
            "same": abs(difference) <= half,
        }


def line_of(row):
    return (
        f"{row['name']}: naive {row['naive']:.5g} (deviation {row['spread']:.2g}), "
        f"tuned {row['tuned']:.5g}; "
        f"difference {row['difference']:.2g} ({row['interval'][0]:.2g} to {row['interval'][1]:.2g})"
        f"{'' if row['same'] else ', SHOWN'}"
    )


def main():
    parser = arguments(__doc__, "the two cheapest when none is named")
    parser.add_argument("--seeds", type=int, default=5, choices=range(2, len(T) + 2), metavar="2..10")
    parser.add_argument("--samples", type=int, help="of a run; naive.yaml's own number when not given")
    args = parser.parse_args()
    rows = []
    with own_home():
        for workload in args.workloads or CHEAPEST:
            rows += list(compared(workload, args))
            if not args.json:
                print("\n".join(map(line_of, rows)), flush=True)
                rows.clear()
    if args.json:
        print(json.dumps(rows))


if __name__ == "__main__":
    main()
