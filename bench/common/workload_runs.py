"""Shared by benchmarks of workloads: engine runs, alternating rounds, the command line."""

import argparse
import contextlib
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BIN = os.path.join(ROOT, "build", "bin")
TRAINER = os.path.join(BIN, "unidle-train")


def machine():
    with open("/proc/cpuinfo") as info:
        model = next(
            (line.split(":")[1].strip() for line in info if line.startswith("model name")), platform.machine()
        )
    return f"{model}, {len(os.sched_getaffinity(0))} CPUs"


def config_of(workload, name="tuned.yaml"):
    return os.path.join(ROOT, "workloads", workload, name)


def prepare(config, *settings, trainer=TRAINER):
    subprocess.run([trainer, config, *settings, "--prepare"], check=True, stdout=subprocess.DEVNULL)


def training(config, *settings, trainer=TRAINER):
    """Returns the command that trains and prints its summary as JSON."""
    return [trainer, config, "--format", "json", "-q", *settings]


def trained(config, *settings):
    """Returns the summary of a run; ends the benchmark on failure."""
    command = training(config, *settings)
    finished = subprocess.run(command, capture_output=True, text=True)
    if finished.returncode != 0:
        sys.exit(f"{' '.join(command)} failed:\n{finished.stderr}")
    return json.loads(finished.stdout)


def alternate(rounds, sides, measure):
    """Returns the results of `measure` for each side, a tuple per round in the order of the sides. Every
    second round reverses the order, so that load from other programs affects all sides."""
    measured = []
    for number in range(rounds):
        order = range(len(sides)) if number % 2 == 0 else reversed(range(len(sides)))
        results = {index: measure(sides[index]) for index in order}
        measured.append(tuple(results[index] for index in range(len(sides))))
        print(f"  round {number + 1} of {rounds}", file=sys.stderr)
    return measured


def spread(ratios):
    return {"value": statistics.median(ratios), "low": min(ratios), "high": max(ratios)}


def row(name, unit, pairs, peer, ratio=lambda ours, theirs: ours / theirs):
    """Returns what a benchmark prints for a figure: the medians of both sides, and the ratio of each
    round."""
    ratios = spread([ratio(ours, theirs) for ours, theirs in pairs])
    return {
        "name": name,
        "unit": unit,
        "ours": statistics.median(ours for ours, _ in pairs),
        "peers": {peer: statistics.median(theirs for _, theirs in pairs)},
        "ratio": ratios["value"],
        "ratio_low": ratios["low"],
        "ratio_high": ratios["high"],
        "rounds": len(pairs),
        "machine": machine(),
    }


def arguments(doc, when_none="all of them when none is named"):
    """Returns a parser with the workloads and --json."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workloads", nargs="*", metavar="WORKLOAD", help=when_none)
    parser.add_argument("--json", action="store_true")
    return parser


@contextlib.contextmanager
def own_home():
    """A temporary folder that serves as unidle's home: data, caches and records are removed with it."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["UNIDLE_HOME"] = folder
        yield folder
