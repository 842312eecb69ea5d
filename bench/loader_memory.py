#!/usr/bin/env python3
"""Memory of programs that read photographs from a loader: whether it grows over many epochs, and its peak
compared with torch's DataLoader with workers.

Each loader runs in a separate program, which decodes the same photographs to crops of 224. The figure is
the proportional set size (PSS) of the program and its workers: pages shared by several of them count once.
It is read every 50 ms and at the end of each epoch; all figures include the memory of importing torch,
which is also printed separately.

"""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "build" / "share" / "unidle" / "python"))

from loader_photographs import Photographs, collate, make_photographs


def family(pid):
    """Returns a process and all its descendants."""
    found = [pid]
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in task.read_text().split():
            found += family(int(child))
    return found


def pss_mb(pid):
    """Returns the PSS of a process and its descendants; those that end meanwhile do not count."""
    kib = 0
    try:
        for one in family(pid):
            for line in Path(f"/proc/{one}/smaps_rollup").read_text().splitlines():
                kib += int(line.split()[1]) if line.startswith("Pss:") else 0
    except (FileNotFoundError, ProcessLookupError):
        pass
    return kib / 1024


def take(way, folder, epochs, batch):
    """Prints the memory before the loader is created, and after each epoch."""
    import torch
    from torch.utils.data import DataLoader

    from unidle.data import Loader, images

    torch.set_num_threads(1)
    print(pss_mb(os.getpid()), flush=True)
    if way == "unidle":
        loader = Loader(images(folder), batch)
    else:
        workers = int(way)
        kept = {"persistent_workers": True} if workers else {}
        loader = DataLoader(
            Photographs(folder), batch, shuffle=True, num_workers=workers, collate_fn=collate, **kept
        )
    for _ in range(epochs):
        for _pixels, _labels in loader:
            pass
        print(pss_mb(os.getpid()), flush=True)


def measure(way, folder, epochs, batch):
    command = [sys.executable, __file__, "--way", way, "--folder", str(folder), "--epochs", str(epochs)]
    child = subprocess.Popen([*command, "--batch", str(batch)], stdout=subprocess.PIPE, text=True)
    peak, ended = [0.0], threading.Event()

    def watch():
        while not ended.wait(0.05):
            peak[0] = max(peak[0], pss_mb(child.pid))

    watcher = threading.Thread(target=watch)
    watcher.start()
    lines = [float(line) for line in child.stdout]
    ended.set()
    watcher.join()
    if child.wait() != 0:
        raise SystemExit(f"loader_memory: {way} ended with {child.returncode}")
    before, after = lines[0], lines[1:]
    early = min(5, epochs)  # the memory for batches is allocated by then
    return {
        "before_mb": before,
        "peak_mb": max(peak[0], *lines),
        "epochs": [early, epochs],
        "after_epochs_mb": [after[early - 1], after[-1]],
        "growth_mb": after[-1] - after[early - 1],
    }


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, default=256, help="photographs to make")
    parser.add_argument("--epochs", type=int, default=50)
    parser.add_argument("--peer-epochs", type=int, default=5)
    parser.add_argument("--workers", type=int, nargs="+", default=[2, 8], help="of the peer")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--way", help=argparse.SUPPRESS)
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.way:
        take(args.way, Path(args.folder), args.epochs, args.batch)
        return
    with tempfile.TemporaryDirectory() as folder:
        make_photographs(Path(folder), args.count)
        found = {"unidle": measure("unidle", folder, args.epochs, args.batch)}
        for workers in args.workers:
            name = f"DataLoader, {workers} workers"
            found[name] = measure(str(workers), folder, args.peer_epochs, args.batch)
    added = {name: one["peak_mb"] - one["before_mb"] for name, one in found.items()}
    peers = {name: one["peak_mb"] for name, one in found.items() if name != "unidle"}
    result = {
        "name": "loader_memory",
        "unit": "MB",
        "ours": found["unidle"]["peak_mb"],
        "peers": peers,
        "ratio": max(peers.values()) / found["unidle"]["peak_mb"],
        "programs": found,
        "machine": f"{platform.machine()}, {len(os.sched_getaffinity(0))} CPUs, "
        f"load {os.getloadavg()[0]:.1f}",
    }
    if args.json:
        print(json.dumps(result, indent=2))
        return
    print(f"memory of programs with batches of {args.batch} crops, MB (PSS, workers included)")
    for name, one in found.items():
        print(
            f"  {name:<24} peak {one['peak_mb']:.0f}, of which {added[name]:.0f} since torch was imported; "
            "after epoch {} and {}: {:.0f} and {:.0f}".format(*one["epochs"], *one["after_epochs_mb"])
            + f" ({one['growth_mb']:+.1f})"
        )
    print(f"  {result['machine']}")


if __name__ == "__main__":
    main()
