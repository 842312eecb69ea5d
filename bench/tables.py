#!/usr/bin/env python3
"""CSV into batches: unidle.data.table compared with pyarrow, polars and pandas, whichever are installed.

Four files (numbers, integers, numbers with texts, quoted texts) are parsed by all of them alternately,
with all CPUs; prints MB per second of wall time, and of processor time, which load from other programs
affects less. unidle writes a file of rows with statistics, in --folder; the others create columns in
memory. Then the second opening of the largest table, and shuffled batches of it compared with torch's
DataLoader over a TensorDataset and a loop over index_select, with the tensors in memory.

    bench/tables.py [--megabytes 64] [--rounds 5] [--seconds 2] [--folder /dev/shm]

"""

import argparse
import json
import os
import platform
import shutil
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "build" / "share" / "unidle" / "python"))

import numpy as np
import torch
from loader_rows import by_index, copied, endless, rate
from torch.utils.data import DataLoader, TensorDataset

from unidle.data import Loader, table

WIDTH = 159  # 157 features and two labels


def numbers(rng):
    values = rng.normal(size=(4000, WIDTH))
    return [",".join(f"{value:.6f}" for value in row) for row in values], WIDTH, []


def whole_numbers(rng):
    values = rng.integers(0, 1000, size=(4000, WIDTH)) * (rng.random((4000, WIDTH)) < 0.5)
    return [",".join(map(str, row)) for row in values], WIDTH, []


def mixed(rng, cell=lambda word: f"word {word % 50}"):
    rows = []
    for row in range(20000):
        a, b, c = rng.random(3)
        k = rng.integers(0, 10**6, 3)
        gap = "" if row % 7 == 0 else row % 5
        rows.append(f"{k[0]},{cell(k[1])},{a:.4f},{b:.8f},{k[2]},{cell(k[2])},{c:.12f},{gap}")
    return rows, 8, ["c1", "c5"]


def quoted(rng):
    ends = ["a, b", 'say ""x""', "two words", "x"]
    return mixed(rng, lambda word: f'"{ends[word % 4]} {word % 50}"')


def write(path, make, megabytes):
    """Returns the categorical columns."""
    rows, width, texts = make(np.random.default_rng(0))
    block = "\n".join(rows) + "\n"
    with open(path, "w") as file:
        file.write(",".join(f"c{column}" for column in range(width)) + "\n")
        for _ in range(max(1, round(megabytes * 1e6 / len(block.encode())))):
            file.write(block)
    return texts


def peers():
    found = {}
    try:
        from pyarrow import csv

        found["pyarrow"] = csv.read_csv
    except ImportError:
        pass
    try:
        import polars

        found["polars"] = polars.read_csv
    except ImportError:
        pass
    try:
        import pandas

        found["pandas"] = pandas.read_csv
    except ImportError:
        pass
    return found


def timed(call):
    """Returns seconds of wall time and of all processors."""
    wall, cpu = time.perf_counter(), time.process_time()
    result = call()
    seconds = time.perf_counter() - wall, time.process_time() - cpu
    del result
    return seconds


def parse(path, texts, folder, rounds):
    def ours():
        shutil.rmtree(folder, ignore_errors=True)
        return table(path, categorical=texts, cache=folder)

    calls = {"unidle": ours, **{name: (lambda read=read: read(path)) for name, read in peers().items()}}
    times = {name: [] for name in calls}
    for turn in range(rounds):
        order = list(calls)
        for name in order if turn % 2 == 0 else reversed(order):
            times[name].append(timed(calls[name]))
    megabytes = path.stat().st_size / 1e6
    rates = {
        name: {
            "mb_s": megabytes / median(wall for wall, _ in taken),
            "mb_s_of_processor": megabytes / median(cpu for _, cpu in taken),
        }
        for name, taken in times.items()
    }
    result = {"rates": rates}
    fastest = [name for name in ("pyarrow", "polars") if name in rates] or list(peers())
    for key, which in (("ratio", 0), ("ratio_of_processor", 1)):
        if not fastest:
            continue
        pairs = sorted(
            min(times[name][turn][which] for name in fastest) / times["unidle"][turn][which]
            for turn in range(rounds)
        )
        result[key] = {"median": median(pairs), "least": pairs[0], "most": pairs[-1]}
    return result


def gather(path, folder, seconds, rounds, batch=1024):
    opened = []
    for _ in range(rounds):
        opened.append(timed(lambda: table(path, targets=["c157", "c158"], cache=folder))[0])
    source = table(path, targets=["c157", "c158"], cache=folder)
    whole = Loader(source, len(source), shuffle=False)
    tensors = next(iter(whole))
    whole.close()
    cpus = len(os.sched_getaffinity(0))
    rates = {}
    for _ in range(rounds):
        for workers in sorted({1, cpus}):
            with Loader(source, batch, workers=workers) as loader:
                rates.setdefault(f"unidle, {workers} workers", []).append(rate(endless(loader), seconds))
        for workers in sorted({0, cpus}):
            kept = {"persistent_workers": True} if workers else {}
            loader = DataLoader(TensorDataset(*tensors), batch, shuffle=True, num_workers=workers, **kept)
            rates.setdefault(f"DataLoader, {workers} workers", []).append(rate(endless(loader), seconds))
        for threads in sorted({1, cpus}):
            torch.set_num_threads(threads)
            rates.setdefault(f"index_select, {threads} threads", []).append(
                rate(by_index(tensors, batch), seconds)
            )
            rates.setdefault(f"copy in order, {threads} threads", []).append(copied(tensors, batch, seconds))
    rates = {name: median(values) for name, values in rates.items()}
    best = {
        kind: max(value for name, value in rates.items() if name.startswith(kind))
        for kind in ("unidle", "DataLoader", "index_select", "copy in order")
    }
    return {
        "rows": len(source),
        "csv_megabytes": path.stat().st_size / 1e6,
        "second_open_s": {"median": median(opened[1:]), "most": max(opened[1:])},
        "rates": rates,
        "ratio_to_data_loader": best["unidle"] / best["DataLoader"],
        "ratio_to_index_select": best["unidle"] / best["index_select"],
        "share_of_copy": best["unidle"] / best["copy in order"],
    }


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--megabytes", type=float, default=64, help="of each CSV file")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2.0, help="of one measurement of batches")
    parser.add_argument("--folder", default="/dev/shm", help="for the files and what is made of them")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    args.rounds = max(2, args.rounds)
    result = {"name": "tables", "unit": "MB/s", "files": {}}
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        folder = Path(folder)
        for make in (numbers, whole_numbers, mixed, quoted):
            path = folder / f"{make.__name__}.csv"
            texts = write(path, make, args.megabytes)
            found = parse(path, texts, folder / "built", args.rounds)
            result["files"][make.__name__] = found
            if not args.json:
                print(f"{make.__name__}: MB/s, and MB for each second of a processor")
                for name, one in found["rates"].items():
                    print(f"  {name:<10} {one['mb_s']:8.0f} {one['mb_s_of_processor']:8.0f}")
                for key in ("ratio", "ratio_of_processor"):
                    if key in found:
                        spread = "{median:.2f} ({least:.2f} to {most:.2f})".format(**found[key])
                        print(f"  {key} to the faster peer {spread}")
            if make is not numbers:
                path.unlink()
        result["batches"] = gather(folder / "numbers.csv", folder / "built", args.seconds, args.rounds)
    first = result["files"]["numbers"]
    result.update(
        ours=first["rates"]["unidle"]["mb_s"],
        peers={name: one["mb_s"] for name, one in first["rates"].items() if name != "unidle"},
        ratio=first.get("ratio", {}).get("median"),
        machine=f"{platform.processor() or platform.machine()}, {len(os.sched_getaffinity(0))} CPUs, "
        f"load {os.getloadavg()[0]:.1f}",
    )
    if args.json:
        print(json.dumps(result, indent=2))
        return
    batches = result["batches"]
    second = batches["second_open_s"]
    print(
        f"second opening of {batches['csv_megabytes']:.0f} MB: {second['median'] * 1e3:.1f} ms"
        f" (at most {second['most'] * 1e3:.1f})"
    )
    print(f"shuffled batches of 1024 out of {batches['rows']} rows: rows a second")
    for name, value in batches["rates"].items():
        print(f"  {name:<26} {value:12,.0f}")
    for name in ("ratio_to_data_loader", "ratio_to_index_select", "share_of_copy"):
        print(f"  {name} {batches[name]:.2f}")


if __name__ == "__main__":
    main()
