#!/usr/bin/env python3
"""The C++ engine against Python PyTorch on the workload `superres`: training step alone, and end to end.

Both sides train the same model on the same pictures with their best settings. Rounds are interleaved and
their order alternates, so that what else runs on the machine hits both; the ratio is the median of the
rounds' ratios. The step is measured by the engine's and by the peer's own loop with all pictures in memory
and no validation; its figure includes cutting patches, which both do. The peer's settings are chosen first:
each of PEERS runs once, the fastest is measured.

    bench/engine_parity.py [--rounds 5] [--samples 480] [--json]
"""

import argparse
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


# malloc that keeps what it has: eager PyTorch otherwise spends much of a CPU step on page faults.
KEEP_MEMORY = {
    "GLIBC_TUNABLES": "glibc.malloc.mmap_threshold=1073741824:glibc.malloc.trim_threshold=4294967296"
}
PEERS = [  # name, options, environment
    ("eager", [], {}),
    ("eager, one loader process", ["--workers", "1"], {}),
    ("eager, memory kept", [], KEEP_MEMORY),
    ("eager, waiting threads sleep", [], {"OMP_WAIT_POLICY": "passive"}),
    ("eager, waiting threads spin", [], {"OMP_WAIT_POLICY": "active"}),
    ("eager, waiting threads spin briefly", [], {"GOMP_SPINCOUNT": "1000"}),
    ("eager, memory kept, waiting threads spin briefly", [], {"GOMP_SPINCOUNT": "1000"} | KEEP_MEMORY),
    ("compiled", ["--compile"], {}),
    ("compiled, memory kept", ["--compile"], KEEP_MEMORY),
]


def run(command, environment):
    """Summary of a training program, and the CPU seconds it used."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    finished = subprocess.run(command, env=environment, capture_output=True, text=True)
    if finished.returncode != 0:
        sys.exit(f"engine_parity: {' '.join(command)} failed:\n{finished.stderr}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    summary = json.loads(finished.stdout.strip().splitlines()[-1])
    return summary, (after.ru_utime + after.ru_stime) - (before.ru_utime + before.ru_stime)


def fastest_peer(command, environment):
    """The peer's best settings on this machine: (name, command, environment)."""
    best = None
    for name, options, extra in PEERS:
        chosen = (name, command + options, environment | extra)
        rate = run(*chosen[1:])[0]["samples_per_s"]
        print(f"peer {name}: {rate:.1f} samples/s", file=sys.stderr)
        if best is None or rate > best[0]:
            best = (rate, chosen)
    return best[1]


def row(name, unit, peer, pairs):
    return {
        "name": name,
        "unit": unit,
        "ours": statistics.median(a for a, _ in pairs),
        "peers": {f"PyTorch {peer}": statistics.median(b for _, b in pairs)},
        "ratio": statistics.median(a / b for a, b in pairs),
        "ratio_low": min(a / b for a, b in pairs),
        "ratio_high": max(a / b for a, b in pairs),
        "machine": machine(),
    }


def machine():
    with open("/proc/cpuinfo") as info:
        model = next(
            (line.split(":")[1].strip() for line in info if line.startswith("model name")), platform.machine()
        )
    return f"{model}, {len(os.sched_getaffinity(0))} CPUs"


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--samples", type=int, default=480)
    parser.add_argument("--trainer", default=os.path.join(ROOT, "build", "bin", "unidle-train"))
    parser.add_argument("--data", help="prepared pictures; made in a temporary folder when not given")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()

    environment = dict(os.environ)
    with tempfile.TemporaryDirectory() as folder:
        data = args.data or os.path.join(folder, "superres")
        config = os.path.join(ROOT, "workloads", "superres", "tuned.yaml")
        ours = [args.trainer, config, f"data.folder={data}", f"train.samples={args.samples}", "device=cpu"]
        if not args.data:
            subprocess.run(ours + ["--prepare"], env=environment, check=True, stdout=subprocess.DEVNULL)
        peer = [
            sys.executable,
            os.path.join(ROOT, "bench", "peers", "superres.py"),
            "--mode",
            "tuned",
            "--data",
            data,
            "--samples",
            str(args.samples),
        ]
        peer_name, peer, peer_environment = fastest_peer(peer, environment)
        environments = [environment, peer_environment]
        rounds = []
        for number in range(args.rounds):
            commands = [ours + ["--format", "json", "-q"], peer]
            order = [0, 1] if number % 2 == 0 else [1, 0]
            results = {side: run(commands[side], environments[side]) for side in order}
            rounds.append((results[0], results[1]))
            print(f"round {number + 1} of {args.rounds}", file=sys.stderr)
    rows = [
        row(
            "superres step",
            "samples/s",
            peer_name,
            [(a["samples_per_s"], b["samples_per_s"]) for (a, _), (b, _) in rounds],
        ),
        row(
            "superres end to end",
            "samples/s",
            peer_name,
            [(a["end_to_end_samples_per_s"], b["end_to_end_samples_per_s"]) for (a, _), (b, _) in rounds],
        ),
        row(
            "superres samples per CPU second, start-up included",
            "samples/s",
            peer_name,
            [(a["samples"] / x, b["samples"] / y) for (a, x), (b, y) in rounds],
        ),
    ]
    if args.json:
        print(json.dumps(rows))
        return
    print(f"{'':52} {'ours':>8} {'peers':>8} {'ratio':>6}  range")
    for entry in rows:
        peer = next(iter(entry["peers"].values()))
        print(
            f"{entry['name']:52} {entry['ours']:8.1f} {peer:8.1f} {entry['ratio']:6.2f}  "
            f"{entry['ratio_low']:.2f}-{entry['ratio_high']:.2f}"
        )
    print(f"peer: {next(iter(rows[0]['peers']))}; {rows[0]['machine']}")


if __name__ == "__main__":
    main()
