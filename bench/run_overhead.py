"""What observing a Python program costs it, and whether it changes anything.

Pairs of the same PyTorch loop, bare and under `unidle run`, in alternating order, at steps of about 1 ms and 10 ms. Each
process times its own steps after a warm-up. Reported: the ratio of the times of a step (median of the pairs, with its
bootstrap interval) and whether the losses are equal to the bit.
"""

import argparse
import json
import os
import platform
import random
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(os.environ.get("UNIDLE_BIN", ROOT / "build" / "bin"))

PROGRAM = """
import json, sys, time, torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
width, steps = int(sys.argv[1]), int(sys.argv[2])
torch.manual_seed(0)
torch.set_num_threads(1)
data = TensorDataset(torch.randn(2048, 64), torch.randn(2048, 1))
net = nn.Sequential(nn.Linear(64, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 1))
opt = torch.optim.SGD(net.parameters(), lr=1e-3)
loader = DataLoader(data, batch_size=32, shuffle=True)
done, times, losses = 0, [], []
while done < steps:
    t = time.perf_counter()
    for x, y in loader:
        opt.zero_grad()
        loss = nn.functional.mse_loss(net(x), y)
        loss.backward()
        opt.step()
        if done % 50 == 0:
            losses.append(loss.item())
        now = time.perf_counter()
        times.append(now - t)
        t = now
        done += 1
times = sorted(times[len(times) // 5:])
print(json.dumps({"median_s": times[len(times) // 2], "mean_s": sum(times) / len(times), "losses": [x.hex() for x in losses]}))
"""


def run(width, steps, record):
    command = [sys.executable, "-c", PROGRAM, str(width), str(steps)]
    if record is not None:
        command = [str(BIN / "unidle"), "run", "-o", str(record), "--"] + command
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def interval(values, rounds=4000):
    draw = random.Random(1)
    medians = sorted(statistics.median(draw.choices(values, k=len(values))) for _ in range(rounds))
    return medians[int(0.025 * rounds)], medians[int(0.975 * rounds)]


def measure(name, width, steps, pairs):
    ratios, bare_s, equal = [], [], True
    with tempfile.TemporaryDirectory() as folder:
        for pair in range(pairs):
            runs = {}
            for observed in ([False, True] if pair % 2 == 0 else [True, False]):
                runs[observed] = run(width, steps, Path(folder) / f"record-{pair}" if observed else None)
            ratios.append(runs[True]["median_s"] / runs[False]["median_s"])
            bare_s.append(runs[False]["median_s"])
            equal &= runs[True]["losses"] == runs[False]["losses"]
            print(f"{name} pair {pair + 1}/{pairs}: time x{ratios[-1]:.4f}", file=sys.stderr)
    low, high = interval(ratios)
    return {"step_s": statistics.median(bare_s), "ratio": statistics.median(ratios), "interval": [low, high], "losses_equal": equal}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    cases = {"1 ms": measure("1 ms", 384, 3000, options.pairs), "10 ms": measure("10 ms", 2048, 400, options.pairs)}
    result = {
        "name": "run_overhead", "unit": "time of a step, observed / bare", "ours": cases["1 ms"]["ratio"], "peers": {"bare": 1.0},
        "ratio": cases["1 ms"]["ratio"], "cases": cases, "pairs": options.pairs,
        "machine": f"{platform.processor() or platform.machine()}, {os.cpu_count()} CPUs",
    }
    if options.json:
        print(json.dumps(result))
    else:
        for name, case in cases.items():
            print(f"steps of {case['step_s'] * 1e3:6.2f} ms   x{case['ratio']:.4f}   95 % {case['interval'][0]:.4f} to {case['interval'][1]:.4f}"
                  f"   losses {'equal to the bit' if case['losses_equal'] else 'DIFFER'}")
    return 0 if all(case["losses_equal"] for case in cases.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
