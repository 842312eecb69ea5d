#!/usr/bin/env python3
"""Measures how much of an expert's gain `unidle optimize` finds on public programs.

    tools/gains.py FOLDER [--only PROGRAM ...] [--budget 10m] [--pairs 3] [--json]

FOLDER holds clones of the programs' repositories (tools/faults/programs.py lists them); programs that are
not there are skipped. EXPERT lists what an expert would set in each program. `unidle optimize` searches once
with the budget. Then the program as it is, each setting of the expert and what the search found run in
turns, every other round in reverse order. The gain is the median of the rounds' ratios to the program as it
is. The expert's best is the best of these settings, and at least the program as it is, so the truth does not
depend on the machine. The share is that of the search in the expert's gain, by the logarithms of both.
"""

import argparse
import json
import math
import os
import shlex
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools" / "faults"))

import programs  # noqa: E402

UNIDLE = str(Path(os.environ.get("UNIDLE_BIN", ROOT / "build" / "bin")) / "unidle")
WORTH_FINDING = 1.05  # a smaller gain of the expert has no share

# The settings that an expert would try, as for `unidle run --apply`.
_WORKERS = [{"loader.workers": 0}, {"loader.workers": 1}, {"loader.workers": 2}]
_IN_MEMORY = [{"cache.features": "memory"}, {"cache.features": "memory", "loader.workers": 1}]
_ROWS = [{"loader.gather": "true"}, {"loader.gather": "true", "optimizer.fused": "true"}]
_STEP = [{"optimizer.fused": "true"}, {"precision.amp": "bf16"}]
EXPERT = {
    "mnist": _WORKERS[1:] + _IN_MEMORY,
    "vae": [*_WORKERS[1:], *_IN_MEMORY, {"cache.features": "memory", "optimizer.fused": "true"}],
    "siamese_network": _WORKERS[1:] + _IN_MEMORY,
    "mnist_rnn": _WORKERS[1:] + _IN_MEMORY,
    "ignite": _WORKERS[1:] + _IN_MEMORY,
    "accelerate": [_WORKERS[0], _WORKERS[1], {"cpu.threads": 2}],
    "timm": [_WORKERS[0], _WORKERS[2]],
    "minGPT": [_WORKERS[0], {"loader.workers": 0, "optimizer.fused": "true"}, *_STEP],
    "diffusion": _ROWS + _STEP,
    "dcgan": [_WORKERS[0], *_STEP],
    "nanoGPT": _STEP,
    "Lightning": _WORKERS[1:] + _IN_MEMORY,
    "Hugging Face Trainer": _STEP,
}


def command_of(program):
    details = programs.PROGRAMS[program]
    return [sys.executable, Path(details["script"]).name, *details["arguments"]]


def observed(applied, command):
    words = [UNIDLE, "run", "-o", "{record}"]
    for knob, value in applied.items():
        words += ["--apply", f"{knob}={value}"]
    return [*words, "--", *command]


def as_advised(run):
    """The advised command under observation: `unidle run --apply ... -- CMD`, or CMD alone."""
    words = shlex.split(run)
    return [
        UNIDLE,
        "run",
        "-o",
        "{record}",
        *(words[2:] if words[:2] == ["unidle", "run"] else ["--", *words]),
    ]


def execute(command, copy):
    environment = dict(os.environ, HF_HUB_OFFLINE="1", CUDA_VISIBLE_DEVICES="")
    done = subprocess.run(
        command, cwd=copy, capture_output=True, text=True, env=environment, stdin=subprocess.DEVNULL
    )
    if done.returncode != 0:
        raise SystemExit(f"gains: {shlex.join(command)} ended with {done.returncode}:\n{done.stderr[-3000:]}")
    return done.stdout


def rate_of(command, copy, folder):
    """Samples per second of one run."""
    record = str(Path(tempfile.mkdtemp(dir=folder)) / "record")
    execute([record if word == "{record}" else word for word in command], copy)
    return json.loads(execute([UNIDLE, "diagnose", record, "--format", "json"], copy))["throughput"][
        "samples_per_s"
    ]


def measured(sides, pairs, copy, folder):
    """Median ratio to the first side, by name."""
    ratios = {name: [] for name in sides}
    for number in range(pairs):
        order = list(sides) if number % 2 == 0 else list(reversed(sides))
        rates = {name: rate_of(sides[name], copy, folder) for name in order}
        for name in sides:
            ratios[name].append(rates[name] / rates["as it is"])
    return {name: statistics.median(all_) for name, all_ in ratios.items()}


def share_of(found, expert):
    return math.log(max(found, 1)) / math.log(expert) if expert >= WORTH_FINDING else None


def gains_of(program, options, scratch):
    folder = scratch / program
    folder.mkdir()
    copy = programs.copy_of(program, options.folder, folder)
    command = command_of(program)
    search = [UNIDLE, "optimize", "--fresh", "--budget", options.budget, "--format", "json", "--", *command]
    answer = json.loads(execute(search, copy))
    sides = {"as it is": observed({}, command)}
    for applied in EXPERT[program]:
        sides[" ".join(f"{knob}={value}" for knob, value in applied.items())] = observed(applied, command)
    if answer["program"]["run"]:
        sides["found"] = as_advised(answer["program"]["run"])
    ratios = measured(sides, options.pairs, copy, folder)
    found = ratios.pop("found", 1.0)
    best = max(ratios, key=ratios.get)
    return {
        "program": program,
        "expert": best,
        "expert_gain": ratios[best],
        "found": " ".join(f"{change['knob']}={change['to']}" for change in answer["changes"]),
        "found_gain": found,
        "share": share_of(found, ratios[best]),
        "conclusion": answer["conclusion"],
    }


def report(rows):
    print("| program | the expert's best | gain | found | gain | share |")
    print("|---|---|---|---|---|---|")
    for row in rows:
        share = "" if row["share"] is None else f"{row['share']:.0%}"
        print(
            f"| {row['program']} | {row['expert']} | {row['expert_gain']:.2f} "
            f"| {row['found'] or row['conclusion']} | {row['found_gain']:.2f} | {share} |"
        )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="clones of the repositories")
    parser.add_argument("--only", nargs="+", default=list(EXPERT), choices=list(EXPERT), metavar="PROGRAM")
    parser.add_argument("--budget", default="10m", help="of each search")
    parser.add_argument("--pairs", type=int, default=3, help="rounds of the measurement")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        rows = []
        for program in options.only:
            if not (options.folder / programs.PROGRAMS[program]["script"]).exists():
                continue
            rows.append(gains_of(program, options, Path(scratch)))
            print(f"{program}: {rows[-1]['found_gain']:.2f}", file=sys.stderr, flush=True)
    if not rows:
        raise SystemExit("gains: none of the programs is there")
    print(json.dumps(rows)) if options.json else report(rows)


if __name__ == "__main__":
    main()
