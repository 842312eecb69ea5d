"""How far the result of `unidle optimize` is from the best of all settings.

    bench/tuner_regret.py [--only pictures table superres] [--pairs 8] [--steps N] [--json]

Two Python programs, one with pictures decoded in __getitem__ and a convolutional net, one with rows of a
table and a small net, and the workload superres from its naive configuration. After the search every
combination of the settings in GRID is measured once, in random order, and the best few twice more. The
best of these and the search's choice (which may include other settings, all exact or rounding only) then
run alternately, because the best of many single measurements is biased. The figure is the median of the
ratios of neighbours.

"""

import argparse
import itertools
import json
import os
import platform
import random
import sqlite3
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(os.environ.get("UNIDLE_BIN", ROOT / "build" / "bin"))

PICTURES = """
import io
import numpy as np, torch
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader, Dataset
torch.manual_seed(0)
rng = np.random.default_rng(0)
def encoded():
    target = io.BytesIO()
    Image.fromarray(rng.integers(0, 255, (160, 160, 3), dtype=np.uint8)).save(target, "JPEG", quality=90)
    return target.getvalue()
files = [encoded() for _ in range(256)]
class Pictures(Dataset):
    def __len__(self):
        return len(files)
    def __getitem__(self, i):
        picture = Image.open(io.BytesIO(files[i])).convert("RGB").resize((64, 64))
        picture = np.asarray(picture, dtype=np.float32) / 255
        return torch.from_numpy(picture).permute(2, 0, 1), torch.tensor(float(i % 7))
net = nn.Sequential(nn.Conv2d(3, 24, 3), nn.ReLU(), nn.Conv2d(24, 24, 3), nn.ReLU(),
                    nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(24, 1))
opt = torch.optim.AdamW(net.parameters())
loader = DataLoader(Pictures(), batch_size=16, shuffle=True)
for epoch in range(1000):
    for x, y in loader:
        loss = nn.functional.mse_loss(net(x).squeeze(1), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
"""

TABLE = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
torch.manual_seed(0)
data = TensorDataset(torch.randn(20000, 64), torch.randn(20000, 1))
net = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 1))
opt = torch.optim.Adam(net.parameters())
loader = DataLoader(data, batch_size=1000, shuffle=True)
for epoch in range(1000):
    for x, y in loader:
        loss = nn.functional.mse_loss(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
"""

# Program text, steps per run, settings.
GRID = {
    "pictures": (
        PICTURES,
        160,
        {
            "loader.workers": ["0", "1", "2"],
            "cache.features": ["off", "memory"],
            "layout.channels_last": ["false", "true"],
            "optimizer.fused": ["false", "true"],
        },
    ),
    "table": (
        TABLE,
        800,
        {
            "loader.workers": ["0", "1", "2"],
            "loader.gather": ["false", "true"],
            "optimizer.fused": ["false", "true"],
            "cpu.threads": ["1", "2"],
        },
    ),
}


# The validation interval is left out: the search changes it only when validation takes most of the time, and
# never validating is always fastest.
SUPERRES = {
    "loader.workers": ["0", "1", "2"],
    "cache.features": ["off", "memory"],
    "layout.channels_last": ["false", "true"],
    "optimizer.fused": ["false", "true"],
}
SAMPLES = 240
AMP = {"precision.amp": ["off", "bf16"]}  # when the CPU has bf16 units: without them it is far slower
FINALISTS = 4  # best candidates of the grid that are measured again
NAIVE = ROOT / "workloads" / "superres" / "naive.yaml"


def output(command, folder):
    done = subprocess.run(
        list(map(str, command)), cwd=folder, capture_output=True, text=True, stdin=subprocess.DEVNULL
    )
    if done.returncode != 0:
        raise SystemExit(done.stderr)
    return done.stdout


class Program:
    """A Python program without configuration."""

    def __init__(self, text, steps, folder):
        self.folder, self.steps, self.count = folder, steps, 0
        (folder / "train.py").write_text(text)

    def search(self):
        return [
            BIN / "unidle",
            "optimize",
            "--benchmark",
            "--yes",
            "--format",
            "json",
            "--",
            sys.executable,
            "train.py",
        ]

    def rate(self, settings):
        """Returns samples/s after the first half of the steps."""
        self.count += 1
        record = self.folder / ("record%d" % self.count)
        apply = [word for knob, value in settings.items() for word in ("--apply", "%s=%s" % (knob, value))]
        output(
            [
                BIN / "unidle",
                "run",
                "-o",
                record,
                "--steps",
                self.steps,
                *apply,
                "--",
                sys.executable,
                "train.py",
            ],
            self.folder,
        )
        rows = (
            sqlite3.connect(record / "record.db")
            .execute("select t_ns, duration_ns, samples from steps order by t_ns")
            .fetchall()
        )
        rows = rows[len(rows) // 2 :]
        return sum(row[2] for row in rows) / (rows[-1][0] + rows[-1][1] - rows[0][0]) * 1e9


class Workload:
    """A workload of the C++ engine, with pictures prepared in a separate folder."""

    def __init__(self, folder):
        self.folder = folder
        output([BIN / "unidle", "train", NAIVE, "--prepare"], folder)

    def search(self):
        return [BIN / "unidle", "optimize", NAIVE, "--benchmark", "--dry-run", "--format", "json"]

    def rate(self, settings):
        """Returns samples/s of the whole training, including validation."""
        words = ["%s=%s" % setting for setting in settings.items()]
        said = json.loads(
            output(
                [BIN / "unidle", "train", NAIVE, *words, "train.samples=%d" % SAMPLES, "--format", "json"],
                self.folder,
            )
        )
        return said["samples"] / said["seconds"]


def has_bf16():
    flags = Path("/proc/cpuinfo").read_text().split()
    return "amx_bf16" in flags or "avx512_bf16" in flags


def measure(name, pairs, steps):
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / name
        folder.mkdir()
        os.environ["UNIDLE_HOME"] = str(Path(scratch) / "home")
        subject, grid = (
            (Workload(folder), SUPERRES)
            if name == "superres"
            else (Program(GRID[name][0], steps or GRID[name][1], folder), GRID[name][2])
        )
        grid = {**grid, **AMP} if has_bf16() else grid
        document = json.loads(output(subject.search(), folder))
        chosen = {change["knob"]: change["to"] for change in document["changes"]}
        points = [dict(zip(grid, values)) for values in itertools.product(*grid.values())]
        rates = {at: [subject.rate(points[at])] for at in shuffled(range(len(points)), 0)}
        finalists = sorted(rates, key=lambda at: rates[at][0])[-FINALISTS:]
        for number in (1, 2):
            for at in shuffled(finalists, number):
                rates[at].append(subject.rate(points[at]))
        best = max(finalists, key=lambda at: statistics.median(rates[at]))
        turns = {True: [], False: []}
        for number in range(pairs):
            for ours in ((True, False), (False, True))[number % 2]:
                turns[ours].append(subject.rate(chosen if ours else points[best]))
    ratios = [ours / theirs for ours, theirs in zip(turns[True], turns[False])]
    trials = [t for t in document["trials"] if t["stage"] in ("baseline", "diagnosis", "step", "removal")]
    return {
        "program": name,
        "share_of_best": statistics.median(ratios),
        "interval": interval(ratios),
        "chosen": chosen,
        "best": points[best],
        "rate": statistics.median(turns[True]),
        "best_rate": statistics.median(turns[False]),
        "as_it_is": rates[0][0],
        "trials": len(trials),
        "runs": len(document["trials"]),
        "points": len(points),
        "pairs": pairs,
    }


def interval(ratios, rounds=4000):
    draw = random.Random(1)
    medians = sorted(statistics.median(draw.choices(ratios, k=len(ratios))) for _ in range(rounds))
    return medians[int(0.025 * rounds)], medians[int(0.975 * rounds)]


def shuffled(items, seed):
    items = list(items)
    random.Random(seed).shuffle(items)
    return items


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="+", choices=[*GRID, "superres"], default=[*GRID, "superres"])
    parser.add_argument("--pairs", type=int, default=8, help="of the choice and the best of the grid")
    parser.add_argument(
        "--steps",
        type=int,
        help="of a run of a Python program; what makes it some seconds long where not given",
    )
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    found = [measure(name, arguments.pairs, arguments.steps) for name in arguments.only]
    if arguments.json:
        print(
            json.dumps(
                {
                    "name": "tuner_regret",
                    "unit": "share of the best rate",
                    "ours": {f["program"]: f["share_of_best"] for f in found},
                    "peers": {"exhaustive grid": 1.0},
                    "ratio": min(f["share_of_best"] for f in found),
                    "programs": found,
                    "machine": "%s, %d CPUs" % (platform.processor() or platform.machine(), os.cpu_count()),
                }
            )
        )
        return
    for f in found:
        print(
            "%-9s %.0f %% of the best (%.0f to %.0f, %d pairs): %.0f samples/s against %.0f, as it is %.0f; "
            "%d trials, %d runs, grid of %d"
            % (
                f["program"],
                100 * f["share_of_best"],
                100 * f["interval"][0],
                100 * f["interval"][1],
                f["pairs"],
                f["rate"],
                f["best_rate"],
                f["as_it_is"],
                f["trials"],
                f["runs"],
                f["points"],
            )
        )
        print("          chosen %s; best %s" % (f["chosen"], f["best"]))


if __name__ == "__main__":
    main()
