"""What observation costs the observed run, and whether it changes anything.

On a shared machine whole runs differ by several per cent, too much to see a cost below one per cent. So
the observer is alternately stopped (SIGSTOP) and resumed within one run, and the steps of neighbouring
windows are compared: the program writes its events all the time, only the observer's work varies.
bench/probe_cost measures what writing an event costs the program (10 ns; a step has some ten).

Reported: the ratio of the median step of observed windows to unobserved ones (median over pairs of
neighbours, with its bootstrap interval), the processor time of the observer, and whether the losses equal
those of a bare run to the bit.

"""

import argparse
import json
import os
import platform
import random
import signal
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BIN = ROOT / "build" / "bin"
MARGIN_NS = (
    100_000_000  # of each window, left out: what piled up while the observer was stopped is caught up on
)


def command(options):
    return [
        str(BIN / "unidle-train"),
        options.config,
        f"train.samples={options.samples}",
        "validation.interval=0",
        "--format",
        "json",
        "-q",
    ]


def cpu_seconds(pid):
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def observed_run(options, record):
    """Returns the summary, the windows [(begin, end, observed)] and the observer's processor time in its
    windows."""
    process = subprocess.Popen(
        [str(BIN / "unidle"), "run", "-o", str(record), "--"] + command(options),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    windows, busy, seen, observed = [], 0.0, 0.0, True
    try:
        while process.poll() is None:
            begin, before = time.monotonic_ns(), cpu_seconds(process.pid)
            try:
                process.wait(options.window)
            except subprocess.TimeoutExpired:
                windows.append((begin, time.monotonic_ns(), observed))
                if observed:
                    busy, seen = busy + cpu_seconds(process.pid) - before, seen + options.window
                observed = not observed
                process.send_signal(signal.SIGCONT if observed else signal.SIGSTOP)
    finally:
        process.send_signal(signal.SIGCONT)
    output = process.communicate()[0]
    if process.returncode != 0:
        sys.exit(
            f"observe_cost: the run failed with exit code {process.returncode}; are there pictures? "
            f"unidle train {options.config} --prepare"
        )
    return json.loads(output), windows, busy / seen if seen else 0.0


def paired_ratios(record, windows):
    steps = (
        sqlite3.connect(record / "record.db")
        .execute("SELECT t_ns, duration_ns FROM steps ORDER BY t_ns")
        .fetchall()
    )
    steps = steps[len(steps) // 20 :]  # warm-up
    medians = []
    for begin, end, observed in windows:
        inside = [d for t, d in steps if t >= begin + MARGIN_NS and t + d <= end]
        medians.append((statistics.median(inside) if len(inside) >= 5 else None, observed))
    ratios = []
    for (one, observed), (other, _) in zip(medians, medians[1:]):
        if one and other:
            ratios.append(one / other if observed else other / one)
    return ratios


def interval(values, rounds=4000):
    draw = random.Random(1)
    medians = sorted(statistics.median(draw.choices(values, k=len(values))) for _ in range(rounds))
    return medians[int(0.025 * rounds)], medians[int(0.975 * rounds)]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--samples", type=int, default=20000, help="of the run; some 200 a second on two CPUs"
    )
    parser.add_argument("--window", type=float, default=0.5, help="seconds")
    parser.add_argument("--config", default=str(ROOT / "workloads" / "superres" / "tuned.yaml"))
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()

    with tempfile.TemporaryDirectory() as folder:
        record = Path(folder) / "record"
        summary, windows, busy = observed_run(options, record)
        ratios = paired_ratios(record, windows)
        bare = json.loads(subprocess.run(command(options), capture_output=True, text=True, check=True).stdout)
    if len(ratios) < 10:
        sys.exit("observe_cost: too short a run: only %d pairs of windows; take more --samples" % len(ratios))
    equal = all(summary[key] == bare[key] for key in ("loss_first", "loss_last", "metric"))
    low, high = interval(ratios)
    result = {
        "name": "observe_cost",
        "unit": "time of a step, observed / not observed",
        "ours": statistics.median(ratios),
        "peers": {"not observed": 1.0},
        "ratio": statistics.median(ratios),
        "interval": [low, high],
        "observer_cores": busy,
        "losses_equal": equal,
        "pairs": len(ratios),
        "machine": f"{platform.processor() or platform.machine()}, {os.cpu_count()} CPUs",
    }
    if options.json:
        print(json.dumps(result))
    else:
        print(
            f"time of a step, observed / not    {result['ours']:.4f}   "
            f"95 % {low:.4f} to {high:.4f}, {len(ratios)} pairs of windows"
        )
        print(f"processor time of the observer    {100 * busy:.2f} % of one core")
        print(f"losses equal to those of a bare run, to the bit: {'yes' if equal else 'NO'}")
    return 0 if equal else 1


if __name__ == "__main__":
    sys.exit(main())
