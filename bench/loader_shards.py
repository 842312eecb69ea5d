#!/usr/bin/env python3
"""An epoch of .npy shards that are not in memory: fully shuffled, compared with shuffling within a window of
shards (`shuffle_shards`), which are read ahead.

Before each epoch the files are dropped from the page cache (posix_fadvise, DONTNEED). Two baselines are
printed as well: in sequential order, the least that reading costs, and from memory, the cost without the
disk.

"""

import argparse
import json
import os
import platform
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "build" / "share" / "unidle" / "python"))

import numpy as np
from common.cold import forget

from unidle.data import Loader, npy


def make_shards(folder, shards, rows, floats):
    rng = np.random.default_rng(0)
    for number in range(shards):
        np.save(folder / f"x_{number}.npy", rng.normal(size=(rows, floats)).astype(np.float32))


def epoch_s(source, batch, options):
    with Loader(source, batch, tensors="numpy", **options) as loader:
        start = time.perf_counter()
        samples = sum(len(rows) for (rows,) in loader)
        assert samples == len(source)
        return time.perf_counter() - start


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--folder", help="on the disk to be measured; one of its own is made there")
    parser.add_argument("--shards", type=int, default=64)
    parser.add_argument("--rows", type=int, default=512, help="of a shard")
    parser.add_argument("--floats", type=int, default=2048, help="of a row")
    parser.add_argument("--window", type=int, default=8, help="shards that are shuffled at a time")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    kinds = {
        "cold, shuffled whole": (True, {}),
        f"cold, {args.window} shards at a time": (True, {"shuffle_shards": args.window}),
        "cold, in order": (True, {"shuffle": False}),
        "from memory, shuffled whole": (False, {}),
    }
    seconds = {kind: [] for kind in kinds}
    with tempfile.TemporaryDirectory(dir=args.folder) as temporary:
        folder = Path(temporary)
        make_shards(folder, args.shards, args.rows, args.floats)
        source = npy(folder, ["x"])
        for repetition in range(args.repetitions):
            for kind, (cold, options) in kinds.items():
                if cold:
                    forget(folder)
                seconds[kind].append(epoch_s(source, args.batch, {**options, "seed": repetition}))
    samples = args.shards * args.rows
    rates = {kind: [samples / s for s in several] for kind, several in seconds.items()}
    whole, window = list(rates.values())[:2]
    ratios = [ours / theirs for ours, theirs in zip(window, whole)]
    result = {
        "name": "loader_shards",
        "unit": "samples/s",
        "ours": median(window),
        "peers": {kind: median(several) for kind, several in rates.items() if several is not window},
        "ratio": median(ratios),
        "ratio_range": [min(ratios), max(ratios)],
        "bytes": samples * args.floats * 4,
        "machine": f"{platform.processor() or platform.machine()}, "
        f"{len(os.sched_getaffinity(0))} CPUs, load {os.getloadavg()[0]:.1f}",
    }
    if args.json:
        print(json.dumps(result, indent=2))
        return
    print(
        f"{args.shards} shards of {args.rows} rows of {args.floats * 4 // 1024} KiB, "
        f"batches of {args.batch}: samples a second, median (range) of {args.repetitions}"
    )
    for kind, several in rates.items():
        print(f"  {kind:<28} {median(several):10,.0f}   ({min(several):,.0f} .. {max(several):,.0f})")
    print(f"  window / whole {median(ratios):.2f} ({min(ratios):.2f} .. {max(ratios):.2f})")


if __name__ == "__main__":
    main()
