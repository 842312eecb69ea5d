#!/usr/bin/env python3
"""Texts into padded batches of token ids: unidle's Loader over `sequences`, compared with the usual Dataset
(a dictionary of letters, one tensor per text, pad_sequence over each batch) with torch's DataLoader at its
best number of workers.

The texts are peptides of random letters and lengths in a column of a CSV file, which both have read
completely before. A batch of the peer has as many texts as ours has on average. The share of padding is
printed for both.

"""

import argparse
import csv
import json
import os
import platform
import random
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "build" / "share" / "unidle" / "python"))

import torch
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset

from unidle.data import Loader, sequences

LETTERS = "ACDEFGHIKLMNPQRSTVWY"


def write_peptides(path, count, longest):
    draw = random.Random(0)
    with open(path, "w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["id", "sequence"])
        for number in range(count):
            rows.writerow([number, "".join(draw.choices(LETTERS, k=draw.randint(5, longest)))])


class Peptides(Dataset):
    def __init__(self, path):
        with open(path, newline="") as file:
            self.texts = [row["sequence"] for row in csv.DictReader(file)]
        self.number_of = {letter: number for number, letter in enumerate(LETTERS, 1)}

    def __len__(self):
        return len(self.texts)

    def __getitem__(self, index):
        return torch.tensor([self.number_of[letter] for letter in self.texts[index]])


def collate(texts):
    return pad_sequence(texts, batch_first=True), torch.tensor([len(text) for text in texts])


def endless(loader):
    while True:
        yield from loader


def rate(batches, seconds):
    """Returns the texts per second, and the share of padding in the batches."""
    next(batches)
    texts = places = letters = 0
    start = time.perf_counter()
    while (passed := time.perf_counter() - start) < seconds:
        tokens, lengths = next(batches)
        texts += len(lengths)
        places += tokens.numel()
        letters += int(lengths.sum())
    return texts / passed, 1 - letters / places


def measure(source, dataset, args, cpus):
    batch = max(1, len(dataset) // len(source))
    found = {}
    for _ in range(args.repetitions):
        for workers in sorted({1, cpus}):
            with Loader(source, workers=workers) as loader:
                found.setdefault(f"unidle, {workers} workers", []).append(rate(endless(loader), args.seconds))
        for workers in sorted({0, cpus}):
            kept = {"persistent_workers": True} if workers else {}
            loader = DataLoader(dataset, batch, shuffle=True, num_workers=workers, collate_fn=collate, **kept)
            found.setdefault(f"DataLoader, {workers} workers", []).append(rate(endless(loader), args.seconds))
    return found


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--texts", type=int, default=100_000)
    parser.add_argument("--longest", type=int, default=50, help="letters of a text; the shortest has 5")
    parser.add_argument("--tokens", type=int, default=4096, help="of a batch")
    parser.add_argument("--seconds", type=float, default=2.0, help="of one measurement")
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    cpus = len(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "peptides.csv")
        write_peptides(path, args.texts, args.longest)
        source = sequences(path, args.tokens, column="sequence")
        found = measure(source, Peptides(path), args, cpus)
    best = {
        kind: max(median(texts for texts, _ in several) for name, several in found.items() if kind in name)
        for kind in ("unidle", "DataLoader")
    }
    result = {
        "name": "loader_sequences",
        "unit": "texts/s",
        "ours": best["unidle"],
        "peers": {
            name: median(texts for texts, _ in several)
            for name, several in found.items()
            if "unidle" not in name
        },
        "ratio": best["unidle"] / best["DataLoader"],
        "padding": source.facts["padding"],
        "padding_of_peer": median(
            padding for name, several in found.items() if "unidle" not in name for _, padding in several
        ),
        "machine": f"{platform.processor() or platform.machine()}, {cpus} CPUs, "
        f"load {os.getloadavg()[0]:.1f}",
    }
    if args.json:
        print(json.dumps(result, indent=2))
        return
    print(
        f"{args.texts} texts of 5 to {args.longest} letters: texts a second, median (range) of"
        f" {args.repetitions}"
    )
    for name, several in found.items():
        rates = [texts for texts, _ in several]
        print(f"  {name:<26} {median(rates):12,.0f}   ({min(rates):,.0f} .. {max(rates):,.0f})")
    print(f"  ratio {result['ratio']:.1f}")
    print("  padding {padding:.1%}, of the peer {padding_of_peer:.1%}; {machine}".format(**result))


if __name__ == "__main__":
    main()
