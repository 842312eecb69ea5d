"""The results of `unidle run` and `unidle diagnose` on public programs, compared with timing by hand.

    bench/observe_programs.py FOLDER [--only NAME ...] [--pairs 3] [--json]

FOLDER holds clones of the programs' repositories (examples and nanoGPT among them;
peers/public_programs.py has the list); missing ones are reported and skipped. Each program is copied, gets
timing calls from peers/hand.py and generated data, and runs alternately bare and under `unidle run`.
Within the same observed run, diagnose is compared with the times by hand: steps, the share of a step that
waits for input, and samples/s, all after the same warm-up. Then, over the pairs, how much longer the steps
of the observed runs took.

"""

import argparse
import json
import os
import platform
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PEERS = ROOT / "bench" / "peers"
UNIDLE = Path(os.environ.get("UNIDLE_BIN", ROOT / "build" / "bin")) / "unidle"
sys.path.insert(0, str(PEERS))

from public_programs import PROGRAMS, copy_of  # noqa: E402


def run(program, copy, record):
    out = copy.parent / "hand.json"
    command = [sys.executable, Path(program["script"]).name, *program["arguments"]]
    if record is not None:
        shutil.rmtree(record, ignore_errors=True)
        command = [str(UNIDLE), "run", "-o", str(record), "--"] + command
    environment = dict(os.environ, HAND_OUT=str(out), HF_HUB_OFFLINE="1", CUDA_VISIBLE_DEVICES="")
    done = subprocess.run(command, cwd=copy, capture_output=True, text=True, env=environment)
    if done.returncode != 0:
        raise SystemExit(
            f"observe_programs: {program['script']} ended with {done.returncode}:\n{done.stderr[-3000:]}"
        )
    return json.loads(out.read_text())


def warm_up(steps):
    """Returns the number of steps that diagnose skips as warm-up."""
    return min(max(3, min(20, steps // 20)), steps // 2)


def by_hand(times):
    steady = times["steps"][warm_up(len(times["steps"])) :]
    seconds = sum(step[0] for step in steady)
    return {
        "steps": len(times["steps"]),
        "input": sum(step[1] for step in steady) / seconds,
        "samples_per_s": sum(step[2] for step in steady) / seconds,
    }


def recorded(record):
    (steps,) = sqlite3.connect(record / "record.db").execute("select count(*) from steps").fetchone()
    done = subprocess.run(
        [str(UNIDLE), "diagnose", str(record), "--format", "json"], capture_output=True, text=True, check=True
    )
    diagnosis = json.loads(done.stdout)
    return {
        "steps": steps,
        "input": (diagnosis["step"] or {}).get("input"),
        "samples_per_s": diagnosis["throughput"]["samples_per_s"],
        "verdict": diagnosis["verdict"],
        "findings": [f["id"] for f in diagnosis["findings"] if f["severity"] != "info"],
    }


def step_s(times):
    return statistics.mean(step[0] for step in times["steps"])


def measure(name, program, source, folder, pairs):
    copy, record = copy_of(program, source, folder, by_hand=True), folder / "record"
    longer = []
    for pair in range(pairs):
        times = {
            observed: run(program, copy, record if observed else None)
            for observed in ([False, True] if pair % 2 == 0 else [True, False])
        }
        longer.append(step_s(times[True]) / step_s(times[False]) - 1)
        print(f"{name}, pair {pair + 1} of {pairs}: {longer[-1]:+.1%}", file=sys.stderr)
    commit = subprocess.run(
        ["git", "rev-parse", "--short=10", "HEAD"],
        cwd=(source / program["script"]).parent,
        capture_output=True,
        text=True,
    )
    return {
        "program": name,
        "commit": commit.stdout.strip(),
        "hand": by_hand(times[True]),
        "unidle": recorded(record),
        "step_ms": step_s(times[False]) * 1e3,
        "longer": statistics.median(longer),
        "longer_all": longer,
    }


def deviation(row):
    """Returns the largest relative error of steps and samples/s, and error of the input share."""
    hand, ours = row["hand"], row["unidle"]
    if ours["input"] is None or ours["samples_per_s"] is None:
        return 1.0
    return max(
        abs(ours["steps"] / hand["steps"] - 1),
        abs(ours["samples_per_s"] / hand["samples_per_s"] - 1),
        abs(ours["input"] - hand["input"]),
    )


HEADER = (
    "| program | commit | steps, hand / unidle | input wait | samples/s | one step | steps take longer "
    "| verdict, findings above info |\n"
    "|---|---|---|---|---|---|---|---|"
)


def line(row):
    hand, ours = row["hand"], row["unidle"]
    input_share = "none" if ours["input"] is None else f"{ours['input']:.1%}"
    rate = (
        "none"
        if ours["samples_per_s"] is None
        else f"{ours['samples_per_s']:.1f} ({ours['samples_per_s'] / hand['samples_per_s'] - 1:+.1%})"
    )
    return (
        f"| {row['program']} | {row['commit']} | {hand['steps']} / {ours['steps']} "
        f"| {hand['input']:.1%} / {input_share} | {hand['samples_per_s']:.1f} / {rate} "
        f"| {row['step_ms']:.1f} ms "
        f"| {row['longer']:+.1%} ({min(row['longer_all']):+.1%} to {max(row['longer_all']):+.1%}) "
        f"| {', '.join([ours['verdict']] + ours['findings'])} |"
    )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, nargs="?", help="clones of the repositories")
    parser.add_argument("--only", nargs="+", default=list(PROGRAMS), choices=list(PROGRAMS), metavar="NAME")
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--keep", type=Path, help="leave the copies and the last records here")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if options.folder is None:
        print(
            "observe_programs: left out, for it needs a folder with clones of the programs' repositories",
            file=sys.stderr,
        )
        return 0
    rows = []
    for name in options.only:
        program = PROGRAMS[name]
        if not (options.folder / program["script"]).exists():
            print(f"{name}: {program['script']} is not there", file=sys.stderr)
            continue
        with tempfile.TemporaryDirectory() as scratch:
            folder = options.keep / name.replace(" ", "_").replace(",", "") if options.keep else Path(scratch)
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            rows.append(measure(name, program, options.folder, folder, options.pairs))
        if not options.json:
            print(line(rows[-1]) if len(rows) > 1 else HEADER + "\n" + line(rows[-1]), flush=True)
    if not rows:
        raise SystemExit("observe_programs: none of the programs is there")
    if options.json:
        print(
            json.dumps(
                {
                    "name": "observe_programs",
                    "unit": "largest deviation from times by hand",
                    "ours": max(map(deviation, rows)),
                    "peers": {},
                    "ratio": statistics.median(row["longer"] for row in rows) + 1,
                    "machine": f"{os.cpu_count()} CPUs, {platform.processor() or platform.machine()}",
                    "programs": rows,
                }
            )
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
