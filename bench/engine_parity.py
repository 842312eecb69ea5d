#!/usr/bin/env python3
"""The C++ engine compared with Python PyTorch on the workloads: the training loop alone, and end to end.

Both sides train the same model on the same data with their best settings. Rounds are interleaved and their
order alternates, so that load from other programs affects both; the ratio is the median of the rounds'
ratios. Each side reports the rate of its own loop: waiting for data is included, start-up, warm-up and
validation are not. Settings are chosen first: each candidate runs once, and the fastest of a side is
measured. With --naive the guide's original program runs in each round too; with --cold the data is dropped
from the page cache before each measured run. The second command below is an epoch of recsys over 2.1
million rows, the third keypoint from 64 shards on disk.

With --device cuda the sizes load a GPU, each way of either side is measured for --seconds, and the best of
both sides are compared; each figure is printed at once (common/gpu_parity.py).

    bench/engine_parity.py [WORKLOAD ...] [--rounds 5] [--samples N] [--quick] [--naive] [--json]
    bench/engine_parity.py recsys --prepared 2100000 --samples 2100000 --batch 1024
    bench/engine_parity.py keypoint --cold --prepared 4096 --samples 128
    bench/engine_parity.py [WORKLOAD ...] --device cuda [--seconds 1.5] [--precisions 2] [--naive] [--json]

"""

import json
import os
import resource
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field

from common import gpu_parity
from common.cold import forget
from common.workload_runs import (
    ROOT,
    TRAINER,
    alternate,
    arguments,
    config_of,
    prepare,
    row,
    training,
)

# Keeps freed memory in malloc: eager PyTorch otherwise spends much of a CPU step on page faults.
KEEP_MEMORY = {
    "GLIBC_TUNABLES": "glibc.malloc.mmap_threshold=1073741824:glibc.malloc.trim_threshold=4294967296"
}
SPIN_BRIEFLY = {"GOMP_SPINCOUNT": "1000"}
WAYS = [  # name, options, environment
    ("eager", [], {}),
    ("eager, memory kept, waiting threads spin briefly", [], SPIN_BRIEFLY | KEEP_MEMORY),
    ("eager, one loader process", ["--workers", "1"], {}),
    ("eager, memory kept", [], KEEP_MEMORY),
    ("eager, waiting threads sleep", [], {"OMP_WAIT_POLICY": "passive"}),
    ("eager, waiting threads spin", [], {"OMP_WAIT_POLICY": "active"}),
    ("eager, waiting threads spin briefly", [], SPIN_BRIEFLY),
    ("compiled", ["--compile"], {}),
    ("compiled, memory kept", ["--compile"], KEEP_MEMORY),
]
QUICK_WAYS = 2  # number of ways with --quick
NAIVE_OPTIONS = {"keypoint": ["--workers", "28"]}  # as in its guide


def bf16_where_it_pays():
    """Returns whether the CPU has bf16 units: without, bf16 is slower, and torch's LSTM rejects it."""
    with open("/proc/cpuinfo") as info:
        flags = info.read()
    there = "avx512_bf16" in flags or "amx_bf16" in flags
    return [("bf16", ["precision.amp=bf16"], ["--amp", "bf16"])] if there else []


BF16 = bf16_where_it_pays()


@dataclass
class Case:
    """The parameters of a workload's comparison."""

    samples: int  # per run
    loader: bool = False  # the tuned peer has a DataLoader, for which worker processes may help
    # Settings that may help either side: name, those of the engine, those of the peer.
    variants: list = field(default_factory=lambda: [("fp32", ["precision.amp=off"], [])])


CASES = {
    "superres": Case(480, loader=True),
    "timeseries": Case(12800, variants=[("fp32", ["precision.amp=off"], []), *BF16]),
    "recsys": Case(
        80000,
        variants=[
            ("one thread", ["cpu.threads=1"], ["--threads", "1"]),
            ("all threads", ["cpu.threads=0"], []),
        ],
    ),
    "keypoint": Case(64, loader=True, variants=[("fp32", ["precision.amp=off"], []), *BF16]),
    "protein": Case(384, variants=[("fp32", ["precision.amp=off"], []), *BF16]),
}


@dataclass
class Side:
    name: str
    command: list
    environment: dict


def run(side):
    """Returns the summary of a training program, and the CPU seconds it used."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    finished = subprocess.run(side.command, env=os.environ | side.environment, capture_output=True, text=True)
    if finished.returncode != 0:
        sys.exit(f"engine_parity: {' '.join(side.command)} failed:\n{finished.stderr}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    summary = json.loads(finished.stdout.strip().splitlines()[-1])
    return summary, (after.ru_utime + after.ru_stime) - (before.ru_utime + before.ru_stime)


def fastest(sides):
    """Returns the fastest side; the first run of each workload also warms the page cache."""
    if len(sides) == 1:
        return sides[0]
    rated = []
    for side in sides:
        rated.append((run(side)[0]["samples_per_s"], side))
        print(f"  {side.name}: {rated[-1][0]:.1f} samples/s", file=sys.stderr)
    return max(rated, key=lambda each: each[0])[1]


def our_sides(case, config, common, trainer):
    return [
        Side(name, training(config, *common, *settings, trainer=trainer), {})
        for name, settings, _ in case.variants
    ]


def peer_command(workload, mode, data, samples):
    program = os.path.join(ROOT, "bench", "peers", workload + ".py")
    return [sys.executable, program, "--mode", mode, "--data", data, "--samples", str(samples)]


def peer_sides(workload, case, data, samples, batch, ways):
    command = peer_command(workload, "tuned", data, samples)
    if workload == "protein":  # as in tuned.yaml: the same effective batch
        command += ["--batch", "16", "--accumulation", "1"]
    if batch:
        command += ["--batch", str(batch)]
    several = len(case.variants) > 1
    return [
        Side(name + (f", {variant}" if several else ""), command + options + settings, extra)
        for variant, _, settings in case.variants
        for name, options, extra in ways
        if case.loader or "--workers" not in options
    ]


def compare(workload, args, folder):
    """Returns the rows of one workload."""
    case = CASES[workload]
    samples = args.samples or case.samples
    data = args.data or os.path.join(folder, workload)
    config = config_of(workload)
    common = [f"data.folder={data}", f"cache.folder={folder}/cache", f"train.samples={samples}", "device=cpu"]
    if args.batch:
        common.append(f"batch.size={args.batch}")
    if not args.data:
        size = [f"prepare.samples={args.prepared}"] if args.prepared else []
        prepare(config, *common, *size, trainer=args.trainer)
    print(f"{workload}:", file=sys.stderr)
    ours = fastest(our_sides(case, config, common, args.trainer))
    ways = WAYS[: QUICK_WAYS if args.quick else None]
    peer = fastest(peer_sides(workload, case, data, samples, args.batch, ways))
    sides = [ours, peer]
    if args.naive:
        naive = peer_command(workload, "naive", data, samples) + NAIVE_OPTIONS.get(workload, [])
        sides.append(Side("as the guide found it", naive, {}))

    def measured(side):
        if args.cold:
            forget(data)
        return run(side)

    rounds = alternate(args.rounds, sides, measured)
    figures = {
        "loop": lambda summary, _: summary["samples_per_s"],
        "end to end": lambda summary, _: summary["end_to_end_samples_per_s"],
        "for each CPU second, start-up included": lambda summary, cpu: summary["samples"] / cpu,
    }
    return [
        row(
            f"{workload}, {name}",
            "samples/s",
            [(of(*round[0]), of(*round[index])) for round in rounds],
            f"PyTorch {side.name}",
        )
        for index, side in enumerate(sides[1:], start=1)
        for name, of in figures.items()
    ]


def told(row, as_json):
    """Prints a figure of a GPU at once."""
    if as_json:
        print(json.dumps(row), flush=True)
        return
    name = " ".join(row[key] for key in ("workload", "side", "way", "precision") if key in row)
    if "ratio" in row:
        figure = f"{row['ratio']:.2f} times: {row['ours']} against {row['theirs']}"
    elif "samples_per_s" in row:
        figure = f"{row['samples_per_s']:.0f} samples/s, {row['step_ms']:.3f} ms a step"
    else:
        figure = row["error"]
    print(f"{name:48} {figure}", flush=True)


def compare_on_gpu(args, folder):
    plan = gpu_parity.Plan(folder, args.trainer, args.device, args.prepared)
    workloads = args.workloads or list(gpu_parity.CASES)
    comparison = gpu_parity.Comparison(
        plan,
        workloads,
        lambda row: told(row, args.json),
        args.seconds,
        args.ways,
        args.modes,
        args.precisions,
    )
    try:
        comparison.prepare()
        comparison.warm_up(args.warm_seconds)
        if args.pause:
            print("ready", flush=True)
            sys.stdin.readline()
        for workload in comparison.workloads:
            comparison.measure(workload)
        # protein last: its naive features take longest.
        for workload in sorted(comparison.workloads, key="protein".__eq__) if args.naive else ():
            comparison.naive(workload)
        if args.pause:
            print("over", flush=True)
    finally:
        comparison.end()


def add_gpu_options(parser):
    options = parser.add_argument_group("with --device cuda")
    options.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    options.add_argument("--seconds", type=float, default=1.5, help="of each way of PyTorch")
    options.add_argument(
        "--warm-seconds", type=float, default=gpu_parity.WARM_S, help="ways that need longer are left out"
    )
    options.add_argument("--precisions", type=int, help="how many of them; both when not given")
    options.add_argument("--ways", nargs="+", default=gpu_parity.WAYS, help="of PyTorch")
    options.add_argument("--modes", nargs="+", default=gpu_parity.MODES, help="of the engine")
    options.add_argument("--pause", action="store_true", help="print `ready` when warm, and wait for a line")


def main():
    parser = arguments(__doc__)
    add_gpu_options(parser)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--samples", type=int, help="of a run; each workload has its own number")
    parser.add_argument(
        "--prepared", type=int, help="samples of the data set; each workload has its own number"
    )
    parser.add_argument("--batch", type=int, help="of both sides, where it is not that of tuned.yaml")
    parser.add_argument("--quick", action="store_true", help="choose the peer among fewer settings")
    parser.add_argument("--naive", action="store_true", help="also against the naive Python program")
    parser.add_argument("--cold", action="store_true", help="data comes from the disk")
    parser.add_argument("--trainer", default=TRAINER)
    parser.add_argument(
        "--data", help="prepared data of one workload; made in a temporary folder when not given"
    )
    args = parser.parse_args()
    if unknown := [name for name in args.workloads if name not in CASES]:
        parser.error(f"no workload {unknown[0]}; there are: {', '.join(CASES)}")
    if args.data and len(args.workloads) != 1:
        parser.error("--data is of one workload: name it")

    rows = []
    with tempfile.TemporaryDirectory() as folder:
        if args.device == "cuda":
            compare_on_gpu(args, folder)
            return
        for workload in args.workloads or CASES:
            rows += compare(workload, args, folder)
    if args.json:
        print(json.dumps(rows))
        return
    print(f"{'':55} {'ours':>9} {'peers':>9} {'ratio':>6}  range")
    for entry in rows:
        (peer, theirs), *_ = entry["peers"].items()
        print(
            f"{entry['name']:55} {entry['ours']:9.1f} {theirs:9.1f} {entry['ratio']:6.2f}  "
            f"{entry['ratio_low']:.2f}-{entry['ratio_high']:.2f}  {peer}"
        )
    print(rows[0]["machine"])


if __name__ == "__main__":
    main()
