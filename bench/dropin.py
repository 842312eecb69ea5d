#!/usr/bin/env python3
"""Whole training scripts with torch's DataLoader and with unidle.data.Loader instead: samples per second.

Pictures: ResNet-18 (the standard one, defined below) with crops of 224, limited by arithmetic, and with
crops of 64; and a residual network of 3 blocks and 16 channels with crops of 64, limited by the loader.
The script decodes with Pillow, as in loader_photographs.py. Tables: a perceptron on 157 features from CSV
parts, small and large; the script reads them with pandas, once as a TensorDataset and once as a Dataset
that returns one row.

Each script is measured at each number of workers, and with Loader at its defaults, alternately; the ratio
of a round is Loader's rate relative to the script's best. Only the loader differs: model, optimiser, batch
size and torch threads are the same. Samples per processor second, including workers, are printed as well:
load from other programs affects them less, and when all processors are busy the gain approaches their
ratio.

    bench/dropin.py [--seconds 8] [--rounds 3] [--count 600] [--only NAME]

"""

import argparse
import json
import multiprocessing
import os
import platform
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "build" / "share" / "unidle" / "python"))

import numpy as np
import pandas
import torch
from loader_photographs import Photographs, collate, make_photographs
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset, RandomSampler, TensorDataset

from unidle.data import Loader, images, table

FEATURES = [f"f{number}" for number in range(157)]


class Block(nn.Module):
    def __init__(self, inside, outside, stride):
        super().__init__()
        self.first = nn.Conv2d(inside, outside, 3, stride, 1, bias=False)
        self.first_norm = nn.BatchNorm2d(outside)
        self.second = nn.Conv2d(outside, outside, 3, 1, 1, bias=False)
        self.second_norm = nn.BatchNorm2d(outside)
        self.shortcut = nn.Sequential()
        if stride != 1 or inside != outside:
            self.shortcut = nn.Sequential(
                nn.Conv2d(inside, outside, 1, stride, bias=False), nn.BatchNorm2d(outside)
            )

    def forward(self, x):
        out = functional.relu(self.first_norm(self.first(x)))
        return functional.relu(self.second_norm(self.second(out)) + self.shortcut(x))


def residual_network(width=64, blocks=(2, 2, 2, 2), classes=10):
    """A residual network (He et al. 2016); with its defaults ResNet-18."""
    layers = [
        nn.Conv2d(3, width, 7, 2, 3, bias=False),
        nn.BatchNorm2d(width),
        nn.ReLU(),
        nn.MaxPool2d(3, 2, 1),
    ]
    inside = width
    for stage, count in enumerate(blocks):
        for number in range(count):
            outside = width << stage
            layers.append(Block(inside, outside, 2 if stage and not number else 1))
            inside = outside
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inside, classes))


def perceptron(hidden):
    return nn.Sequential(
        nn.Linear(len(FEATURES), hidden),
        nn.ReLU(),
        nn.Linear(hidden, hidden),
        nn.ReLU(),
        nn.Linear(hidden, 2),
    )


def write_parts(folder, rows, parts=4):
    rng = np.random.default_rng(0)
    for part in range(parts):
        values = rng.normal(size=(rows // parts, len(FEATURES))).astype(np.float32)
        labels = rng.integers(0, 2, rows // parts)
        frame = pandas.DataFrame(values, columns=FEATURES).round(4)
        frame.assign(label=labels).to_csv(folder / f"log_part{part + 1}.csv", index=False)


class Rows(Dataset):
    """The Dataset of the guides: returns one row at a time."""

    def __init__(self, features, labels):
        self.features, self.labels = features, labels

    def __len__(self):
        return len(self.features)

    def __getitem__(self, index):
        return torch.tensor(self.features[index]), torch.tensor(self.labels[index])


def endless(loader):
    while True:
        yield from loader


def data_loader(data, batch, workers, **options):
    sampler = RandomSampler(data, replacement=True, num_samples=1 << 40)
    if workers:
        options.update(persistent_workers=True, prefetch_factor=4)
    return endless(DataLoader(data, batch, sampler=sampler, num_workers=workers, **options))


def processor_seconds():
    """Returns the ticks of this process and its live workers."""
    ticks = 0
    for pid in [os.getpid(), *(child.pid for child in multiprocessing.active_children())]:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def train(model, batches, seconds, warm):
    """Returns the samples of a plain training loop per second and per processor second."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)

    def step():
        inputs, labels = next(batches)
        optimizer.zero_grad()
        loss = functional.cross_entropy(model(inputs), labels.reshape(-1).long())
        loss.backward()
        optimizer.step()
        return len(inputs)

    for _ in range(warm):
        step()
    samples, start, used = 0, time.perf_counter(), processor_seconds()
    while time.perf_counter() - start < seconds:
        samples += step()
    return samples / (time.perf_counter() - start), samples / (processor_seconds() - used)


class Pictures:
    goal_of = {"loader": 1.5, "compute": 1.0}

    def __init__(self, name, limit, model, size, batch):
        self.name, self.goal, self.batch = name, self.goal_of[limit], batch
        self.limit, self.model, self.size = limit, model, size

    def prepare(self, folder, args):
        self.folder = folder / "photographs"
        if not self.folder.exists():
            self.folder.mkdir()
            make_photographs(self.folder, args.count)
        self.peers = {
            "DataLoader": lambda workers: data_loader(self.data, self.batch, workers, collate_fn=collate)
        }
        self.data = Photographs(self.folder, self.size)

    def ours(self):
        return Loader(images(self.folder, self.size), self.batch)


class Table:
    goal_of = Pictures.goal_of

    def __init__(self, name, limit, model, batch):
        self.name, self.goal, self.batch = name, self.goal_of[limit], batch
        self.limit, self.model = limit, model

    def prepare(self, folder, args):
        self.folder = folder / "log"
        if not self.folder.exists():
            self.folder.mkdir()
            write_parts(self.folder, args.rows)
        frame = pandas.concat([pandas.read_csv(path) for path in sorted(self.folder.glob("*.csv"))])
        features, labels = frame[FEATURES].to_numpy(np.float32, copy=True), frame["label"].to_numpy(copy=True)
        tensors = TensorDataset(torch.from_numpy(features), torch.from_numpy(labels))
        rows = Rows(features, labels)
        self.peers = {
            "TensorDataset": lambda workers: data_loader(tensors, self.batch, workers),
            "rows": lambda workers: data_loader(rows, self.batch, workers),
        }

    def ours(self):
        source = table(self.folder / "log.csv", FEATURES, ["label"], cache=self.folder / "built")
        return Loader(source, self.batch)


CASES = (
    Pictures("ResNet-18, crops of 224", "compute", residual_network, 224, 16),
    Pictures("ResNet-18, crops of 64", "compute", residual_network, 64, 32),
    Pictures(
        "small residual network, crops of 64", "loader", lambda: residual_network(16, (1, 1, 1)), 64, 64
    ),
    Table("perceptron 157-256-256-2", "loader", lambda: perceptron(256), 1024),
    Table("perceptron 157-4096-4096-2", "compute", lambda: perceptron(4096), 1024),
)


def measure(case, args, cpus):
    rates = {}
    warm = 2 if case.limit == "compute" else 6

    def run(name, batches):
        torch.manual_seed(0)
        rates.setdefault(name, []).append(train(case.model(), batches, args.seconds, warm))

    for _ in range(args.rounds):
        for name, batches in case.peers.items():
            for workers in sorted({0, 1, cpus}):
                run(f"{name}, {workers} workers", batches(workers))
        with case.ours() as loader:
            run("unidle", endless(loader))
    found = {"limit": case.limit, "goal": case.goal}
    for key, which in (("", 0), ("_of_processor", 1)):
        ratios = [
            rates["unidle"][turn][which]
            / max(values[turn][which] for name, values in rates.items() if name != "unidle")
            for turn in range(args.rounds)
        ]
        found["rates" + key] = {
            name: spread([value[which] for value in values]) for name, values in rates.items()
        }
        found["ratio" + key] = spread(ratios)
    return found


def spread(values):
    return {"median": median(values), "least": min(values), "most": max(values)}


def show(name, found):
    print(f"{name} (the {'loader' if found['limit'] == 'loader' else 'arithmetic'} is the limit): samples/s")
    for one, value in found["rates"].items():
        wall = "{median:10.1f}   ({least:.1f} to {most:.1f})".format(**value)
        of_processor = found["rates_of_processor"][one]["median"]
        print(f"  {one:<26} {wall}; {of_processor:.1f} for each processor second")
    for key in ("ratio", "ratio_of_processor"):
        text = "  {} {median:.2f} ({least:.2f} to {most:.2f})".format(key, **found[key])
        print(text + (f", goal {found['goal']}" if key == "ratio" else ""))


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=8.0, help="of one measurement")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--count", type=int, default=600, help="photographs to make")
    parser.add_argument("--rows", type=int, default=100_000, help="of the table")
    parser.add_argument("--only", default="", help="cases whose name has this in it")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    cpus = len(os.sched_getaffinity(0))
    result = {"name": "dropin", "unit": "samples/s", "cases": {}}
    with tempfile.TemporaryDirectory() as folder:
        for case in CASES:
            if args.only in case.name:
                case.prepare(Path(folder), args)
                found = result["cases"][case.name] = measure(case, args, cpus)
                if not args.json:
                    show(case.name, found)
    result["machine"] = (
        f"{platform.processor() or platform.machine()}, {cpus} CPUs, load {os.getloadavg()[0]:.1f}"
    )
    result["versions"] = {"torch": torch.__version__, "pandas": pandas.__version__}
    print(json.dumps(result, indent=2) if args.json else result["machine"])


if __name__ == "__main__":
    main()
