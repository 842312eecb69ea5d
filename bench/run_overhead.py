"""What observing a Python program costs it, and whether it changes anything.

Pairs of the same PyTorch loop, bare and under `unidle run`, in alternating order, at steps of about 1, 10 and 100 ms. Each
process times its own steps after a warm-up, by the wall clock and by its CPU time. Reported: how much longer a step takes
(median of the pairs with its bootstrap interval), what `unidle run` itself uses beside it, what the record says of the
cost, and whether the losses are equal to the bit.
"""

import argparse
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

PROGRAM = """
import json, sys, time, torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
width, layers, steps = (int(text) for text in sys.argv[1:4])
torch.manual_seed(0)
torch.set_num_threads(1)
data = TensorDataset(torch.randn(2048, 64), torch.randn(2048, 1))
hidden = [part for _ in range(layers) for part in (nn.Linear(width, width), nn.ReLU())]
net = nn.Sequential(nn.Linear(64, width), nn.ReLU(), *hidden, nn.Linear(width, 1))
opt = torch.optim.SGD(net.parameters(), lr=1e-3)
loader = DataLoader(data, batch_size=32, shuffle=True)
wall, cpu, losses = [], [], []
w, c = time.perf_counter(), time.process_time()
while len(wall) < steps:
    for x, y in loader:
        opt.zero_grad()
        loss = nn.functional.mse_loss(net(x), y)
        loss.backward()
        opt.step()
        if len(wall) % 50 == 0:
            losses.append(loss.item())
        w1, c1 = time.perf_counter(), time.process_time()
        wall.append(w1 - w)
        cpu.append(c1 - c)
        w, c = w1, c1
def middle(times):
    times = sorted(times[len(times) // 5:])
    times = times[len(times) // 10:len(times) - len(times) // 10]
    return sum(times) / len(times)
print(json.dumps({"wall_s": middle(wall), "cpu_s": middle(cpu), "all_cpu_s": time.process_time(),
                  "losses": [x.hex() for x in losses]}))
"""


def run(shape, record):
    command = [sys.executable, "-c", PROGRAM, *map(str, shape)]
    if record is not None:
        command = [str(BIN / "unidle"), "run", "-o", str(record), "--"] + command
    before = os.times()
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    after = os.times()
    result = json.loads(done.stdout)
    result["beside_s"] = after.children_user - before.children_user + after.children_system - before.children_system - result["all_cpu_s"]
    result["elapsed_s"] = after.elapsed - before.elapsed
    if record is not None:
        database = sqlite3.connect(record / "record.db")
        notes = [json.loads(row[0]) for row in database.execute("select body from notes")]
        result["said"] = [note for note in notes if note["type"] == "shim"][-1]
        result["steps"] = database.execute("select count(*) from steps").fetchone()[0]
    return result


def shape_for(step_s, seconds):
    """Width, layers and steps of a model whose steps take about so long here."""
    width, layers = 64, 1
    while True:
        took = run((width, layers, 60), None)["wall_s"]
        if took >= 0.7 * step_s:
            break
        if width < 2048 and took < 0.35 * step_s:
            width = min(2048, int(width * min(4.0, max(1.2, (step_s / took) ** 0.5))))
        else:
            layers = max(layers + 1, int(layers * min(4.0, step_s / took)))
    return width, layers, max(100, int(seconds / took))


def interval(values, rounds=4000):
    draw = random.Random(1)
    medians = sorted(statistics.median(draw.choices(values, k=len(values))) for _ in range(rounds))
    return medians[int(0.025 * rounds)], medians[int(0.975 * rounds)]


def spread(values):
    low, high = interval(values)
    return {"median": statistics.median(values), "low": low, "high": high}


def measure(name, step_s, pairs, seconds):
    shape = shape_for(step_s, seconds)
    wall, cpu, added, beside, said, bare_s, equal, counted = [], [], [], [], [], [], True, True
    with tempfile.TemporaryDirectory() as folder:
        for pair in range(pairs):
            runs = {}
            for observed in ([False, True] if pair % 2 == 0 else [True, False]):
                runs[observed] = run(shape, Path(folder) / f"record-{pair}" if observed else None)
            bare, seen = runs[False], runs[True]
            wall.append(seen["wall_s"] / bare["wall_s"] - 1)
            cpu.append(seen["cpu_s"] / bare["cpu_s"] - 1)
            added.append((seen["cpu_s"] - bare["cpu_s"]) * 1e6)
            beside.append((seen["beside_s"] - bare["beside_s"]) / seen["elapsed_s"])
            bare_s.append(bare["wall_s"])
            said.append(seen["said"].get("step_cost_us") or 0)
            equal &= seen["losses"] == bare["losses"]
            counted &= seen["steps"] >= shape[2]
            print(f"{name} pair {pair + 1}/{pairs}: wall {wall[-1]:+.2%}  cpu {cpu[-1]:+.2%}", file=sys.stderr)
    return {"step_s": statistics.median(bare_s), "wall": spread(wall), "cpu": spread(cpu), "added_us": spread(added),
            "beside": spread(beside), "said_us": statistics.median(said), "losses_equal": equal, "steps_counted": counted}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=4, help="length of a run at each step length")
    parser.add_argument("--steps", default="1,10,100", help="step lengths in ms")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    cases = {f"{ms} ms": measure(f"{ms} ms", float(ms) * 1e-3, options.pairs, options.seconds) for ms in options.steps.split(",")}
    first = next(iter(cases.values()))
    result = {
        "name": "run_overhead", "unit": "CPU time of a step, observed / bare", "ours": 1 + first["cpu"]["median"], "peers": {"bare": 1.0},
        "ratio": 1 + first["cpu"]["median"], "cases": cases, "pairs": options.pairs,
        "machine": f"{platform.processor() or platform.machine()}, {os.cpu_count()} CPUs",
    }
    if options.json:
        print(json.dumps(result))
    else:
        print("step ms   CPU time of a step (95 %)            wall time of a step (95 %)           us a step  it says  unidle run itself")
        for case in cases.values():
            cpu, wall = case["cpu"], case["wall"]
            print(f"{case['step_s'] * 1e3:7.2f}   {cpu['median']:+7.2%} ({cpu['low']:+.2%} to {cpu['high']:+.2%})".ljust(48)
                  + f"{wall['median']:+7.2%} ({wall['low']:+.2%} to {wall['high']:+.2%})".ljust(37)
                  + f"{case['added_us']['median']:9.1f}  {case['said_us']:7.1f}  {case['beside']['median']:.2%} of a CPU")
        good = all(case["losses_equal"] and case["steps_counted"] for case in cases.values())
        print("losses equal to the bit, every step counted" if good else "LOSSES DIFFER OR STEPS ARE MISSING")
    return 0 if all(case["losses_equal"] and case["steps_counted"] for case in cases.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
