#!/usr/bin/env python3
"""Measures how often the diagnosis is right, on public programs with faults injected.

    tools/faults.py FOLDER [--only PROGRAM ...] [--faults NAME ...] [--kept-back] [--pairs N] [--into FILE]

FOLDER holds clones of the programs' repositories (tools/faults/programs.py lists them); programs that are
not there are skipped. Each program runs once as it is, under `unidle run`. Then each fault
(tools/faults/inject.py) is injected on its own. Its strength comes from the program's own step: a fault takes
a share of 30 to 60 % of a step, so the truth does not depend on the machine. Timers in the program say which
share of the wall time it really took; where a fault acts in workers, the run without it says so. The gain of
removing the fault is the ratio of the wall times with and without it; a finding's bound should not be less.

A diagnosis is right if its first finding names the fault, or a larger one of the program itself, and no
warning stands that the program as it is does not get and the fault does not explain. A fault that took less
than 10 % of the time, from where rules warn, is printed and not counted.

A third of all combinations, chosen by a hash of their names, is kept back: it runs with --kept-back only, so
that nobody fits the rules to it. The records stay in the folder of --keep.
"""

import argparse
import hashlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools" / "faults"))

import inject  # noqa: E402
import plot  # noqa: E402
import programs  # noqa: E402

UNIDLE = Path(os.environ.get("UNIDLE_BIN", ROOT / "build" / "bin")) / "unidle"
EXCEEDED = 0.95  # of the gain: a bound below it was exceeded, and not by noise alone
WEAK = 0.10  # of all time
MACHINE = {"device-shared", "throttled", "link-degraded"}  # findings about the machine, not the program
_SLOW_SAMPLES = {"loader-no-workers", "dataset-slow-sample", "loader-too-few-workers", "recomputed-features"}

# The findings that name each fault.
FINDINGS = {
    "slow-sample": _SLOW_SAMPLES,
    "slow-read": _SLOW_SAMPLES | {"storage-bound"},
    "rare-slow-sample": _SLOW_SAMPLES | {"dataset-heavy-tail"},
    "slow-collate": _SLOW_SAMPLES,
    "worker-start": {"loader-respawn"},
    "metric": {"python-between-steps"},
    "validation": {"validation-dominates"},
    "checkpoint": {"checkpoint-dominates"},
    "log": {"logging-dominates"},
    "collect-garbage": {"python-between-steps", "empty-cache-each-step"},
    "slowing": {"steps-slow-down"},
    "one-thread": {"cpu-restricted"},
}
ALSO = {"slowing": {"python-between-steps"}}  # no false alarm, but not the cause either
LONGEST_S = 1200  # of a run; torch's Gloo may wait for itself at the end
OF_ROWS = {"sample", "rare", "batch", "epoch"}  # they need a data set with indices


def hash_of(program, faults):
    return int(hashlib.sha256(f"{program}/{'+'.join(faults)}".encode()).hexdigest(), 16)


def is_kept_back(program, faults):
    return hash_of(program, faults) % 3 == 0


def share_for(program, fault):
    """30 to 60 % of all time, fixed by the names."""
    return 0.3 + int(hashlib.sha256(f"{fault} in {program}".encode()).hexdigest(), 16) % 31 / 100


def combinations(options):
    for name in options.only:
        possible = [
            fault
            for fault, (_, when) in inject.FAULTS.items()
            if when not in OF_ROWS or programs.PROGRAMS[name].get("rows")
        ]
        if not programs.PROGRAMS[name].get("epochs"):
            possible = [f for f in possible if f != "worker-start"]
        single = [(f,) for f in possible]
        double = [(a, b) for a in possible for b in possible if a < b]
        double = sorted(double, key=lambda both: hash_of(name, both))[: options.pairs]
        for faults in single + double:
            if set(faults) <= set(options.faults):
                yield name, faults


def seconds_of(program, fault, plain):
    """How long the fault has to take each time it acts, so that it takes its share of all time."""
    share = share_for(program, fault)
    step = plain["step_s"] * share / (1 - share)
    if fault == "slowing":
        step *= inject.SLOWING / plain["steps"]
    batch = plain["batch"] or 1
    return {
        "sample": step / batch,
        "rare": step / batch * inject.RARE,
        "batch": step,
        "step": step,
        "every": step * inject.EVERY,
        "epoch": step * plain["steps"] / programs.PROGRAMS[program].get("epochs", 1),
        "once": 0,
    }[inject.FAULTS[fault][1]]


class Failed(Exception):
    """A run that is not counted."""


def run(program, source, faults, folder):
    """Runs the program with {fault: seconds} under `unidle run`. Returns the times and the diagnosis. Raises
    Failed."""
    copy, out, record = programs.copy_of(program, source, folder), folder / "times.json", folder / "record"
    planted = ",".join(f"{name}={seconds:.9f}" for name, seconds in faults.items())
    script = Path(programs.PROGRAMS[program]["script"]).name
    command = [str(UNIDLE), "run", "-o", str(record), "--"]
    command += [*programs.launcher(program), inject.__file__, str(out), planted]
    command += [script, *programs.PROGRAMS[program]["arguments"]]
    environment = dict(os.environ, HF_HUB_OFFLINE="1", CUDA_VISIBLE_DEVICES="")
    started = subprocess.Popen(
        command, cwd=copy, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=environment
    )
    try:
        _, words = started.communicate(timeout=LONGEST_S)
    except subprocess.TimeoutExpired:
        started.terminate()  # unidle passes it on
        started.communicate()
        raise Failed(f"{program} with {planted} did not end within {LONGEST_S} s") from None
    if started.returncode != 0:
        raise Failed(f"{program} with {planted} ended with {started.returncode}:\n{words[-3000:]}")
    return json.loads(out.read_text()), diagnosed(record)


def diagnosed(record):
    command = [str(UNIDLE), "diagnose", str(record), "--format", "json"]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def warnings_of(diagnosis):
    return [f["id"] for f in diagnosis["findings"] if f["severity"] != "info" and f["id"] not in MACHINE]


def wall_of(diagnosis):
    return sum(diagnosis["time"].values())


def plain_run(program, source, keep):
    folder = keep / "plain"
    folder.mkdir(parents=True)
    times, diagnosis = run(program, source, {}, folder)
    steps = times["steps"]
    samples = diagnosis["throughput"]["samples_per_s"]
    step_s = statistics.mean(steps[len(steps) // 4 :])
    return {
        "program": program,
        "wall_s": wall_of(diagnosis),
        "step_s": step_s,
        "steps": len(steps),
        "batch": round(samples * step_s) if samples else None,
        "warnings": warnings_of(diagnosis),
    }


def is_larger(first, truth, plain):
    """Whether the program as it is has this finding too, and it takes more than the fault: it may lead."""
    return first.get("id") in plain["warnings"] and (first.get("share") or 0) > truth


def truth_of(times, diagnosis, plain):
    """The fault's share of the wall time by timers in the program, and how many times as long the run is."""
    wall_s = wall_of(diagnosis)
    gain = wall_s / plain["wall_s"]
    spent_s = sum(times["spent"])
    return (spent_s / wall_s if spent_s > 0 else 1 - 1 / max(gain, 1)), gain


def judge(program, faults, truth, gain, diagnosis, plain):
    warned = warnings_of(diagnosis)
    named = set().union(*(FINDINGS[fault] for fault in faults))
    expected = named.union(*(ALSO.get(fault, ()) for fault in faults))
    first = diagnosis["findings"][0] if diagnosis["findings"] else {}
    return {
        "program": program,
        "faults": faults,
        "truth": truth,
        "gain": gain,
        "first": first.get("id"),
        "share": first.get("share"),
        "bound": first.get("speedup_bound"),
        "right": first.get("id") in named or is_larger(first, truth, plain),
        "named": [fault for fault in faults if FINDINGS[fault] & set(warned)],
        "false_alarms": [w for w in warned if w not in expected and w not in plain["warnings"]],
        "summary": diagnosis.get("summary", ""),
    }


def read_rows(options):
    """The rows of --into that this call would measure, and the plain runs there by program."""
    wanted = {both for both in combinations(options) if is_kept_back(*both) == options.kept_back}
    if not options.into or not options.into.exists():
        return [], {}
    rows = [json.loads(line) for line in options.into.read_text().splitlines()]
    plain = {row["program"]: row for row in rows if "faults" not in row}
    return [row for row in rows if (row["program"], tuple(row.get("faults", []))) in wanted], plain


def write_row(row, options):
    if options.into:
        with options.into.open("a") as file:
            file.write(json.dumps(row) + "\n")


def injected_run(program, faults, plain, work, options):
    seconds = {fault: seconds_of(program, fault, plain) for fault in faults}
    folder = work / "+".join(faults)
    folder.mkdir(parents=True)
    times, diagnosis = run(program, options.folder, seconds, folder)
    row = judge(program, faults, *truth_of(times, diagnosis, plain), diagnosis, plain)
    if options.keep:
        shutil.copytree(folder / "record", options.keep / record_name(program, faults), dirs_exist_ok=True)
    shutil.rmtree(folder)
    return row


def plain_name(program):
    return program.replace(" ", "_")


def record_name(program, faults):
    return f"{plain_name(program)}-{'+'.join(faults)}"


def judged_again(row, plain, keep):
    """The row by today's diagnosis of the records of its runs, if they were kept."""
    record, usual = keep / record_name(row["program"], row["faults"]), keep / plain_name(row["program"])
    if not record.exists() or not usual.exists():
        return row
    plain = {**plain, "warnings": warnings_of(diagnosed(usual))}
    return judge(row["program"], row["faults"], row["truth"], row["gain"], diagnosed(record), plain)


def found_alone(rows):
    """The runs with one fault that the first finding names: of two faults it is about one."""
    return [
        row
        for row in rows
        if row["first"] in FINDINGS[row["faults"][0]] and len(row["faults"]) == 1 and row["truth"] >= WEAK
    ]


def stated_gain(row):
    """How many times as fast the run would be without the fault, from the share of all time that it took."""
    return 1 / (1 - row["truth"])


def report(rows):
    print("| program | fault | its share | first finding | its share | gain | bound | false alarms |")
    print("|---|---|---|---|---|---|---|---|")
    for row in rows:
        share = "" if row["share"] is None else f"{row['share']:.0%}"
        gains = f"{row['gain']:.2f} | {row['bound'] or ''}"
        first = f"{row['first']}{'' if row['right'] else ' (weak)' if row['truth'] < WEAK else ' WRONG'}"
        print(
            f"| {row['program']} | {' + '.join(row['faults'])} | {row['truth']:.0%} "
            f"| {first} | {share} | {gains} | {', '.join(row['false_alarms'])} |"
        )
    rows = [row for row in rows if row["truth"] >= WEAK]
    if not rows:
        return
    right = sum(row["right"] for row in rows)
    recall = sum(len(row["named"]) for row in rows) / sum(len(row["faults"]) for row in rows)
    alone = found_alone(rows)
    close = [abs(row["share"] - row["truth"]) <= 0.05 for row in alone if row["share"] is not None]
    alarms = sum(bool(row["false_alarms"]) for row in rows)
    print(
        f"\nfirst finding right {right} of {len(rows)}, recall {recall:.0%}, false alarms in {alarms}, "
        f"share within 5 points {sum(close)} of {len(close)}"
    )
    bounds = [row["bound"] / stated_gain(row) for row in alone if row["bound"]]
    if bounds:
        exceeded = sum(bound < EXCEEDED for bound in bounds)
        print(
            f"gain beyond the bound in {exceeded} of {len(bounds)}, "
            f"bound / gain {statistics.median(bounds):.2f} in the median"
        )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="clones of the repositories")
    names = list(programs.PROGRAMS)
    parser.add_argument("--only", nargs="+", default=names, choices=names, metavar="PROGRAM")
    parser.add_argument("--faults", nargs="+", default=list(FINDINGS), choices=list(FINDINGS), metavar="NAME")
    parser.add_argument("--pairs", type=int, default=0, metavar="N", help="also N pairs of faults a program")
    parser.add_argument("--kept-back", action="store_true", help="only the third that is kept back")
    parser.add_argument("--keep", type=Path, help="the records stay here")
    parser.add_argument(
        "--again", action="store_true", help="diagnose the records of --keep again; run nothing"
    )
    parser.add_argument("--into", type=Path, help="add each result to this file, and skip those it holds")
    parser.add_argument("--plot", type=Path, help="draw the bounds against the gains into this SVG file")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rows, plain = read_rows(options)
    done = {(row["program"], tuple(row["faults"])) for row in rows}
    if options.again:
        rows, options.only = [judged_again(row, plain[row["program"]], options.keep) for row in rows], []
    with tempfile.TemporaryDirectory() as scratch:
        for program, faults in combinations(options):
            if not (options.folder / programs.PROGRAMS[program]["script"]).exists():
                continue
            if is_kept_back(program, faults) != options.kept_back or (program, faults) in done:
                continue
            work = Path(scratch) / plain_name(program)
            if program not in plain:
                plain[program] = plain_run(program, options.folder, work)
                write_row(plain[program], options)
                warned = ", ".join(plain[program]["warnings"]) or "no warning"
                print(f"{program}, as it is: {warned}", file=sys.stderr, flush=True)
                if options.keep:
                    shutil.copytree(work / "plain" / "record", options.keep / work.name, dirs_exist_ok=True)
            try:
                row = injected_run(program, faults, plain[program], work, options)
            except Failed as failure:
                print(f"faults: not counted: {failure}", file=sys.stderr, flush=True)
                continue
            rows.append(row)
            print(f"{program}, {'+'.join(faults)}: {row['first']}", file=sys.stderr, flush=True)
            write_row(row, options)
    if not rows:
        raise SystemExit("faults: no such combination, or none of the programs is there")
    if options.plot:
        points = [(stated_gain(row), row["bound"]) for row in found_alone(rows) if row["bound"]]
        options.plot.write_text(plot.picture(points))
    print(json.dumps(rows)) if options.json else report(rows)
    return 0 if all(row["right"] and not row["false_alarms"] for row in rows if row["truth"] >= WEAK) else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Failed as failure:  # of a program as it is
        sys.exit(f"faults: {failure}")
