"""How much of the time lost to a fault `unidle optimize -- python train.py` recovers without changing the
program.

    bench/removed_waste.py CASES [--only 01 03 04 superres] [--rounds 3] [--json]

CASES holds the cases, each a folder with train.py. Known ones are run unchanged, with their fault fixed by
hand (the edits below), and under `unidle run` with the settings that `unidle optimize` found, alternately.
Whole runs are reported, including start-up and first epoch: the share of the removable time that is gone,
(bare - ours) / (bare - mended), and the trials and seconds of the search. Another program is
bench/peers/superres.py, as in its guide (--mode naive) and as written by a careful person (--mode tuned).

"""

import argparse
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(os.environ.get("UNIDLE_BIN", ROOT / "build" / "bin"))

# What a person would change: texts of train.py and their replacements.
MENDED = {
    "01-photo-upscaler": [("batch_size=4, shuffle=True)", "batch_size=4, shuffle=True, num_workers=2)")],
    "02-forecast-grid": [
        ("worker_init_fn=start_worker)", "worker_init_fn=start_worker, persistent_workers=True)")
    ],
    "03-ratings-towers": [
        ("import DataLoader, Dataset", "import BatchSampler, DataLoader, Dataset, RandomSampler"),
        (
            "    loader = "
            "DataLoader(RatingRows(ratings(args.rows)), args.batch, shuffle=True, drop_last=True)",
            "    rows = RatingRows(ratings(args.rows))\n"
            "    batches = BatchSampler(RandomSampler(rows), args.batch, True)\n"
            "    loader = DataLoader(rows, sampler=batches, batch_size=None)",
        ),
    ],
    "04-pitch-net": [
        (
            "        self.n = n\n",
            "        self.n = n\n        self.made = [self.make(i) for i in range(n)]\n",
        ),
        (
            "    def __getitem__(self, i):\n",
            "    def __getitem__(self, i):\n        return self.made[i]\n\n    def make(self, i):\n",
        ),
    ],
    "05-playtime-mlp": [("if step % self.validate_every == 0:", "if step % 118 == 0:")],
    "06-nested-config": [
        ('num_workers=cfg["data"].get("num_workers", 0)', 'num_workers=cfg["data"]["loader"]["workers"]')
    ],
}
PEER = "superres"


class Case:
    """A script, and the same with its fault fixed, each in a separate folder."""

    def __init__(self, case, folder):
        self.name, self.bare, self.mended = case.name, folder / "bare", folder / "mended"
        self.program = self.mended_program = [sys.executable, "train.py"]
        shutil.copytree(case, self.bare, ignore=shutil.ignore_patterns("expect.json"))
        shutil.copytree(self.bare, self.mended)
        text = (self.mended / "train.py").read_text()
        for old, new in MENDED[self.name]:
            if old not in text:
                raise SystemExit("%s: train.py has no %r" % (self.name, old))
            text = text.replace(old, new)
        (self.mended / "train.py").write_text(text)


class Peer:
    """The workload in Python, with pictures prepared in a separate folder."""

    def __init__(self, _, folder):
        self.name = PEER
        self.bare = self.mended = folder / "peer"
        self.bare.mkdir()
        shutil.copy(ROOT / "bench" / "peers" / "superres.py", self.bare)
        subprocess.run(
            [BIN / "unidle", "train", ROOT / "workloads" / "superres" / "naive.yaml", "--prepare"],
            check=True,
            capture_output=True,
        )
        data = os.path.join(os.environ["UNIDLE_HOME"], "data", "superres")
        self.program, self.mended_program = (
            [sys.executable, "superres.py", "--mode", mode, "--data", data] for mode in ("naive", "tuned")
        )


def wall(command, folder):
    begin = time.monotonic()
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return time.monotonic() - begin


def searched(program, folder):
    begin = time.monotonic()
    done = subprocess.run(
        [BIN / "unidle", "optimize", "--benchmark", "--yes", "--format", "json", "--", *program],
        cwd=folder,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
    )
    if done.returncode != 0:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout), time.monotonic() - begin


def measure(folder, rounds):
    with tempfile.TemporaryDirectory() as scratch:
        os.environ["UNIDLE_HOME"] = str(Path(scratch) / "home")
        case = (Peer if folder.name == PEER else Case)(folder, Path(scratch))
        document, search_s = searched(case.program, case.bare)
        apply = [
            word
            for change in document["changes"]
            for word in ("--apply", "%s=%s" % (change["knob"], change["to"]))
        ]
        times = {"bare": [], "mended": [], "ours": []}
        for number in range(rounds):
            times["bare"].append(wall(case.program, case.bare))
            times["mended"].append(wall(case.mended_program, case.mended))
            times["ours"].append(
                wall(
                    [BIN / "unidle", "run", "-o", Path(scratch) / str(number), *apply, "--", *case.program],
                    case.bare,
                )
            )
    middle = {kind: statistics.median(found) for kind, found in times.items()}
    removed = (middle["bare"] - middle["ours"]) / (middle["bare"] - middle["mended"])
    candidates = [t for t in document["trials"] if t["stage"] in ("diagnosis", "step", "removal")]
    return {
        "case": case.name,
        "removed": removed,
        "seconds": middle,
        "changes": apply[1::2],
        "steady_ratio": (document["verification"] or {}).get("ratio"),
        "trials": len(candidates),
        "runs": len(document["trials"]),
        "search_s": search_s,
        "conclusion": document["conclusion"],
    }


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "cases", nargs="?", default=os.path.join(os.environ.get("UNIDLE_SHARED", ""), "cases")
    )
    parser.add_argument("--only", nargs="+", default=[])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    folders = [each for each in sorted(Path(arguments.cases).glob("*")) if each.name in MENDED] + [Path(PEER)]
    chosen = [
        each
        for each in folders
        if not arguments.only or each.name[:2] in arguments.only or each.name in arguments.only
    ]
    if not chosen:
        print("removed_waste: no cases in %s; name their folder" % arguments.cases, file=sys.stderr)
        return 0
    found = []
    for case in chosen:
        found.append(measure(case, arguments.rounds))
        if not arguments.json:
            last = found[-1]
            print(
                "%-20s removed %3.0f %%  bare %.1f s, mended %.1f s, ours %.1f s; "
                "%d trials, %d runs, %.0f s; %s"
                % (
                    last["case"],
                    100 * last["removed"],
                    last["seconds"]["bare"],
                    last["seconds"]["mended"],
                    last["seconds"]["ours"],
                    last["trials"],
                    last["runs"],
                    last["search_s"],
                    " ".join(last["changes"]) or last["conclusion"],
                ),
                flush=True,
            )
    if arguments.json:
        print(
            json.dumps(
                {
                    "name": "removed_waste",
                    "unit": "share of removable time",
                    "ours": {f["case"]: f["removed"] for f in found},
                    "peers": {"mended by hand": 1.0},
                    "ratio": min(f["removed"] for f in found),
                    "cases": found,
                    "machine": "%s, %d CPUs" % (platform.processor() or platform.machine(), os.cpu_count()),
                }
            )
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
