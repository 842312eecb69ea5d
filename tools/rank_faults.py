#!/usr/bin/env python3
"""Measures how often the diagnosis is right about several ranks and about time.

    tools/rank_faults.py [--only NAME ...] [--kept-back] [--into FILE] [--keep FOLDER] [--list]

Each case is a training of 1, 2 or 4 ranks (Gloo) of tools/faults/rank_program.py, healthy or with one fault.
It runs under `unidle run` and is diagnosed. If the fault takes time, it also runs bare: the timers of the
program say what the fault takes, or, where no timer can tell, a second bare run without it. A fault given as
a share takes that part of a step, of which a healthy bare run gives the length, so the truth does not depend
on the machine. What other processes used of the CPUs is measured; a case that they disturbed runs again.

A diagnosis is right if its first finding names the fault; a healthy run must have no warning. A third of the
cases, chosen by a hash of their names, is kept back: it runs with --kept-back only.
"""

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import faults
import rank_program  # from tools/faults, as faults.py finds it
from faults import UNIDLE, warnings_of

STEPS = 80  # at least
DISTURBED = 0.25  # CPUs that other processes use: a case is run again, once
LINK_S = 40e-6  # what one link of slow-graph takes, about

# Fault, amount (a share where the fault has share_of), model, ranks, way to exchange.
CASES = """
exchange 8 mlp 2, exchange 12 mlp 4, exchange 16 cnn 2, exchange 8 transformer 2
exchange-unused 8 cnn 2, exchange 8 mlp 2 by-hand, exchange 12 transformer 2 by-hand
late-loader 0.35 mlp 2, late-loader 0.5 mlp 4, late-loader 0.5 cnn 2, late-disk 0.35 cnn 4
late-disk 0.6 transformer 2
late-compute 0.35 mlp 4, late-compute 0.35 cnn 2, late-compute 0.5 transformer 2
late-compute 0.6 transformer 4, late-validation 0.4 mlp 2, late-validation 0.5 cnn 2
late-validation 0.35 transformer 4, uneven-lengths 0.9 mlp 2, uneven-lengths 0.9 transformer 2
uneven-lengths 0.9 mlp 4, uneven-lengths 0.9 transformer 4
kept-graph 0 mlp 1, kept-graph 0 cnn 2, kept-graph 0 transformer 4
kept-arrays 600 mlp 2, kept-arrays 900 cnn 1, kept-arrays 1200 transformer 2
slow-history 0.4 mlp 1, slow-history 0.5 cnn 2, slow-history 0.4 transformer 4, slow-graph 0.5 mlp 1
slow-graph 0.4 transformer 2
stall 0.35 mlp 1, stall 0.5 cnn 2, stall 0.45 transformer 4, stall 0.4 mlp 2
nan-loss 0.3 mlp 1, nan-loss 0.5 mlp 2, nan-loss 0.8 transformer 2
resume 0.5 cnn 1, resume 0.4 transformer 1, resume 0.4 mlp 2, resume 0.35 cnn 4
healthy 0 mlp 1, healthy 0 mlp 2, healthy 0 mlp 4, healthy 0 cnn 1, healthy 0 cnn 2, healthy 0 cnn 4
healthy 0 transformer 1, healthy 0 transformer 2, healthy 0 transformer 4
healthy 0 mlp 2 by-hand, healthy 0 mlp 2 fsdp, healthy 0 transformer 4 by-hand
slow-first-step 3 mlp 1, slow-first-step 4 cnn 2, slow-first-step 3 transformer 4
filling-up 500 mlp 2, filling-up 400 transformer 4
slow-start 5 mlp 1, slow-start 8 transformer 2, slow-start 6 cnn 4, curriculum 0 transformer 1
"""


class Case:
    def __init__(self, words):
        self.fault, amount, self.model, ranks, *way = words.split()
        self.kind = rank_program.FAULTS[self.fault]
        self.amount, self.ranks, self.way = float(amount), int(ranks), way[0] if way else "ddp"
        self.name = "-".join(words.split())
        self.base = f"{self.model}, {self.ranks} x {self.way}"
        self.kept_back = faults.hash_of(self.name, []) % 3 == 0

    def sizes(self, plain):
        """The steps of the run, and the fault's amount as the program wants it."""
        share = self.amount if self.kind.share_of else 0 if self.kind.timed else 0.4
        steps = max(STEPS, round(self.kind.seconds * (1 - share) / plain["step_s"]))
        part_s = plain["step_s"] * share / (1 - share)
        amounts = {
            "step": part_s,
            "sample": part_s / rank_program.MODELS[self.model].batch,
            "every": part_s * rank_program.EVERY,
            "links": part_s / (steps / 2) / LINK_S,
            "batches": part_s * steps // plain["batch_s"],
        }
        return steps, amounts.get(self.kind.share_of, self.amount)


CASES = [Case(words.strip()) for words in CASES.replace("\n", ",").split(",") if words.strip()]


def others_s():
    """CPU seconds of all processes but our children that have ended, and what the hypervisor withheld."""
    user, nice, system, _, _, *rest = map(int, Path("/proc/stat").read_text().split("\n")[0].split()[1:9])
    own = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (user + nice + system + sum(rest)) / os.sysconf("SC_CLK_TCK") - own.ru_utime - own.ru_stime


def run(case, steps, amount, folder, observe=False, without=False, fault=None):
    """Runs the training in `folder`. Returns its wall time, what each rank measured, and the CPUs that other
    processes used."""
    launcher = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={case.ranks}"]
    command = [str(UNIDLE), "run", "-o", "record", "--"] if observe else []
    command += [sys.executable, *(launcher if case.ranks > 1 else []), rank_program.__file__, "times"]
    command += ["--model", case.model, "--steps", str(steps), "--exchange", case.way]
    command += ["--fault", fault or case.fault, "--amount", repr(amount), *["--without"] * without]
    environment = dict(os.environ, CUDA_VISIBLE_DEVICES="", GLOO_SOCKET_IFNAME="lo")
    begin, others = time.monotonic(), others_s()
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=environment)
    wall_s = time.monotonic() - begin
    others_cpus = (others_s() - others) / wall_s
    if done.returncode != 0:
        raise SystemExit(f"rank_faults: {case.name} ended with {done.returncode}:\n{done.stderr[-3000:]}")
    ranks = [json.loads((folder / f"times.{rank}").read_text()) for rank in range(case.ranks)]
    return wall_s, ranks, others_cpus


def plain_run(case, folder):
    """The length of a healthy step of the case's model, and of making a batch."""
    steps = STEPS // 2
    _, ranks, others_cpus = run(case, steps, 0, folder, fault="healthy")
    return {
        "base": case.base,
        "step_s": ranks[0]["train_s"] / steps,
        "batch_s": ranks[0]["input_s"] / steps,
        "others_cpus": others_cpus,
    }


def judge(case, plain, keep, folder):
    steps, amount = case.sizes(plain)
    wall_s, ranks, others_cpus = run(case, steps, amount, folder, observe=True)
    truth_s = 0
    if case.kind.share_of or not case.kind.timed:  # from bare runs
        wall_s, bare, others = run(case, steps, amount, folder)
        truth_s, others_cpus = max(rank["fault_s"] for rank in bare), max(others_cpus, others)
    if not case.kind.timed:
        _, without, others = run(case, steps, amount, folder, without=True)
        others_cpus = max(others_cpus, others)
        truth_s = max(0, bare[0]["train_s"] - without[0]["train_s"])
    command = [str(UNIDLE), "diagnose", "record", "--format", "json"]
    diagnosis = json.loads(subprocess.run(command, cwd=folder, capture_output=True, check=True).stdout)
    findings = diagnosis["findings"]
    first = findings[0] if findings else {}
    named, explained = case.kind.named, case.kind.explained
    alarms = [warning for warning in warnings_of(diagnosis) if warning not in named + explained]
    right = first.get("id") in named if named else not alarms
    if keep and not (right and not alarms):
        shutil.copytree(folder / "record", keep / case.name, dirs_exist_ok=True)
    return {
        "name": case.name,
        "program": case.base,
        "faults": [f"{case.fault} {case.amount:g}"],
        "truth": truth_s / wall_s,
        "gain": wall_s / (wall_s - truth_s),
        "grown_mb": sum(rank["grown_mb"] for rank in ranks),
        "others_cpus": others_cpus,
        "first": first.get("id"),
        "share": first.get("share"),
        "bound": first.get("speedup_bound"),
        "right": right,
        "named": [case.fault] if any(finding["id"] in named for finding in findings) else [],
        "false_alarms": alarms,
        "all": [(f["id"], f["severity"], f["share"]) for f in findings],
    }


def undisturbed(measure, *arguments):
    """Returns what `measure` returns. Measures a second time if other processes used the CPUs."""
    for _ in range(2):
        with tempfile.TemporaryDirectory() as scratch:
            row = measure(*arguments, Path(scratch))
        if row["others_cpus"] < DISTURBED:
            break
    return row


def read(path):
    return [json.loads(line) for line in path.read_text().splitlines()] if path and path.exists() else []


def write(row, path):
    if path:
        with path.open("a") as file:
            file.write(json.dumps(row) + "\n")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    names = [case.name for case in CASES]
    parser.add_argument("--only", nargs="+", default=names, choices=names, metavar="NAME")
    parser.add_argument("--kept-back", action="store_true", help="only the third that is kept back")
    parser.add_argument("--into", type=Path, help="add each result to this file, and skip those it holds")
    parser.add_argument("--keep", type=Path, help="records of wrong diagnoses stay here")
    parser.add_argument("--list", action="store_true", help="print the names of the cases")
    options = parser.parse_args()
    wanted = [c for c in CASES if c.name in options.only and c.kept_back == options.kept_back]
    if options.list:
        print("\n".join(case.name for case in wanted))
        return 0
    plain = {row["base"]: row for row in read(options.into) if "base" in row}
    rows = {row["name"]: row for row in read(options.into) if "name" in row}
    for case in wanted:
        if case.name in rows:
            continue
        if case.base not in plain:
            plain[case.base] = undisturbed(plain_run, case)
            write(plain[case.base], options.into)
        row = rows[case.name] = undisturbed(judge, case, plain[case.base], options.keep)
        write(row, options.into)
        print(
            f"{case.name}: {row['first']}, {'right' if row['right'] else 'WRONG'}",
            file=sys.stderr,
            flush=True,
        )
    judged = [rows[case.name] for case in wanted]
    faulty = [rows[case.name] for case in wanted if case.kind.named]
    healthy = [rows[case.name] for case in wanted if not case.kind.named]
    if faulty:
        faults.report(faulty)
    alarmed = [f"{row['name']} ({', '.join(row['false_alarms'])})" for row in healthy if row["false_alarms"]]
    print(f"healthy runs {len(healthy)}, with a warning {len(alarmed)}: {', '.join(alarmed) or 'none'}")
    return 0 if all(row["right"] and not row["false_alarms"] for row in judged) else 1


if __name__ == "__main__":
    sys.exit(main())
