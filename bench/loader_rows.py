#!/usr/bin/env python3
"""Batches of shuffled rows of arrays, and of windows of a series: unidle's Loader and common alternatives.

The peers are torch's DataLoader over a TensorDataset or a Dataset of windows (at its best number of
workers), and a loop that gathers each batch with index_select. Batches of 16 rows of 16 bytes show the
overhead per batch.

"""

import argparse
import json
import os
import platform
import sys
import time
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "build" / "share" / "unidle" / "python"))

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset, TensorDataset

from unidle.data import Loader, arrays, windows


class Windows(Dataset):
    def __init__(self, series, length):
        self.series, self.length = torch.from_numpy(series), length

    def __len__(self):
        return len(self.series) - self.length

    def __getitem__(self, start):
        end = start + self.length
        return self.series[start:end], self.series[end : end + 1]


def by_index(tensors, batch):
    while True:
        order = torch.randperm(len(tensors[0]))
        for start in range(0, len(order), batch):
            chosen = order[start : start + batch]
            yield [tensor.index_select(0, chosen) for tensor in tensors]


def endless(loader):
    while True:
        yield from loader


def rate(batches, seconds):
    """Returns samples per second."""
    next(batches)
    samples, start = 0, time.perf_counter()
    while time.perf_counter() - start < seconds:
        samples += len(next(batches)[0])
    return samples / (time.perf_counter() - start)


def copied(tensors, batch, seconds):
    """Returns the samples per second of a sequential copy."""
    places = [torch.empty_like(tensor[:batch]) for tensor in tensors]
    samples, start = 0, time.perf_counter()
    while time.perf_counter() - start < seconds:
        for tensor, place in zip(tensors, places):
            begin = samples % (len(tensor) - batch)
            place.copy_(tensor[begin : begin + batch])
        samples += batch
    return samples / (time.perf_counter() - start)


def cases(rows):
    rng = np.random.default_rng(0)
    table = rng.normal(size=(rows, 157)).astype(np.float32)
    goals = rng.normal(size=(rows, 2)).astype(np.float32)
    tensors = [torch.from_numpy(table), torch.from_numpy(goals)]
    yield "rows of 157 + 2 floats", 1024, arrays(table, goals), TensorDataset(*tensors), tensors
    series = rng.normal(size=(rows // 10, 38)).astype(np.float32)
    yield "windows of 30 x 38 floats", 128, windows(series, 30), Windows(series, 30), None
    small = rng.normal(size=(rows, 4)).astype(np.float32)
    tensors = [torch.from_numpy(small)]
    yield "16 rows of 4 floats", 16, arrays(small), TensorDataset(*tensors), tensors


def measure(batch, source, dataset, tensors, args, cpus):
    rates = {}
    for _ in range(args.repetitions):
        for workers in sorted({1, cpus}):
            with Loader(source, batch, workers=workers) as loader:
                rates.setdefault(f"unidle, {workers} workers", []).append(rate(endless(loader), args.seconds))
        for workers in sorted({0, cpus}):
            kept = {"persistent_workers": True} if workers else {}
            loader = DataLoader(dataset, batch, shuffle=True, num_workers=workers, **kept)
            rates.setdefault(f"DataLoader, {workers} workers", []).append(rate(endless(loader), args.seconds))
        for threads in sorted({1, cpus}) if tensors is not None else ():
            torch.set_num_threads(threads)
            name = f"index_select, {threads} threads"
            rates.setdefault(name, []).append(rate(by_index(tensors, batch), args.seconds))
            name = f"copy in order, {threads} threads"
            rates.setdefault(name, []).append(copied(tensors, batch, args.seconds))
    return {name: median(values) for name, values in rates.items()}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--seconds", type=float, default=2.0, help="of one measurement")
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    cpus = len(os.sched_getaffinity(0))
    result = {"name": "loader_rows", "unit": "samples/s", "cases": {}}
    for name, batch, source, dataset, tensors in cases(args.rows):
        rates = measure(batch, source, dataset, tensors, args, cpus)
        ours = max(value for kind, value in rates.items() if kind.startswith("unidle"))
        peer = max(value for kind, value in rates.items() if kind.startswith("DataLoader"))
        result["cases"][name] = {
            "batch": batch,
            "ours": ours,
            "us_a_batch": batch / ours * 1e6,
            "peers": {kind: value for kind, value in rates.items() if not kind.startswith("unidle")},
            "ratio": ours / peer,
        }
        if tensors is not None:
            for key, kind in (("ratio_to_index_select", "index_select"), ("share_of_copy", "copy in order")):
                best = max(value for peer_name, value in rates.items() if peer_name.startswith(kind))
                result["cases"][name][key] = ours / best
        if not args.json:
            print(f"{name}, batch {batch}: samples a second, median of {args.repetitions}")
            for kind, value in rates.items():
                print(f"  {kind:<26} {value:12,.0f}")
            print(f"  ratio {ours / peer:.1f}; a batch takes {batch / ours * 1e6:.1f} us")
    first = next(iter(result["cases"].values()))
    result.update(
        ours=first["ours"],
        peers=first["peers"],
        ratio=first["ratio"],
        machine=f"{platform.processor() or platform.machine()}, {cpus} CPUs, load {os.getloadavg()[0]:.1f}",
    )
    if args.json:
        print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
