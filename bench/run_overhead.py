"""What observing a Python program costs it, and whether it changes anything.

One process under `unidle run` trains alternately with the shim's patches in place and with torch's own
functions restored, at steps of about 1, 10 and 100 ms. Neighbouring turns are compared, so that load from
other programs affects both; their order is random, so that nothing periodic, such as garbage collection,
favours one. Turns are short because the noise grows with their length. Reported: the additional CPU and
wall time per step (median of the pairs with its bootstrap interval), what the record says about it, the
CPU time of the shim's own thread, and what `unidle run` itself uses. A bare and an observed run of the
same program must have equal losses to the bit.

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
TURN_S = 0.02
SKIPPED = 4  # steps of a turn that refill the interpreter's caches after classes change
WARM_S = 4.0  # at first every step is observed in full

PROGRAM = """
import json, random, sys, time, torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data import dataloader
from torch.utils.data._utils import fetch
width, layers, each, turns, warm, skipped = (int(text) for text in sys.argv[1:7])
asleep_s, batch = float(sys.argv[7]), int(sys.argv[8])
torch.manual_seed(0)
torch.set_num_threads(1)
rows = batch * (turns * (each + skipped) + 1)  # one epoch: its end would be seen in full whoever's turn it is
data = TensorDataset(torch.randn(rows + 63).unfold(0, 64, 1), torch.randn(rows, 1))
hidden = [part for _ in range(layers) for part in (nn.Linear(width, width), nn.ReLU())]
net = nn.Sequential(nn.Linear(64, width), nn.ReLU(), *hidden, nn.Linear(width, 1))
opt = torch.optim.SGD(net.parameters(), lr=1e-3)
loader = DataLoader(data, batch_size=batch)
shim = sys.modules.get("_unidle_shim.session")
places = [(nn.Module, "__call__"), (type(net), "__call__"), (torch.autograd, "backward"), (type(opt), "step"),
          (dataloader._BaseDataLoaderIter, "__next__"), (fetch._MapDatasetFetcher, "fetch")]
bare, patched = {}, {}
for owner, name in places if shim else ():
    if name in owner.__dict__:
        bare[owner, name] = getattr(owner.__dict__[name], "__wrapped__", None)
parameter, version = next(net.parameters()), 0
def observe(on):
    global version
    if on:
        for (owner, name), ours in patched.items():
            setattr(owner, name, ours)
        patched.clear()
        marked = shim.state.loop.marked_steps
        unseen = parameter._version - version  # the shim counts steps by that
        if marked.rhythm is not None:
            marked.rhythm.version += unseen
        if marked.versions is not None:
            seen = marked.versions.versions
            marked.versions.versions = [(reference, before + unseen) for reference, before in seen]
        return
    version = parameter._version
    for owner, name in places:
        ours = owner.__dict__.get(name)
        if owner is type(net):
            if ours is not None:
                patched[owner, name] = ours
                delattr(owner, name)
        elif ours is not None and ours is not bare[owner, name] and bare[owner, name] is not None:
            patched[owner, name] = ours
            setattr(owner, name, bare[owner, name])
def steps(count):
    for _ in range(count):
        x, y = next(source)
        opt.zero_grad()
        loss = nn.functional.mse_loss(net(x), y)
        loss.backward()
        opt.step()
        if asleep_s:
            time.sleep(asleep_s)
    return loss
source, coin = iter(loader), random.Random(1)
times, losses = {False: [], True: []}, []
by_turns = "turns" in sys.argv and shim
for turn in range(turns):
    first = coin.random() < 0.5 if turn % 2 == 0 else first
    on = first == (turn % 2 == 0)
    by_turn = by_turns and turn >= warm
    if by_turn and not on:
        observe(False)
    steps(skipped)
    w, c = time.perf_counter(), time.thread_time()
    loss = steps(each)
    if turn >= warm:
        times[on].append(((time.perf_counter() - w) / each, (time.thread_time() - c) / each))
    if by_turn and not on:
        observe(True)
    losses.append(loss.item().hex())
background = shim.state.background if shim else None
print(json.dumps({"off": times[False], "on": times[True], "all_cpu_s": time.process_time(), "losses": losses,
                  "thread_s": background.busy_s if background else 0.0}))
"""


def run(shape, asleep_s, rows, record, *more):
    command = [sys.executable, "-c", PROGRAM, *map(str, (*shape, SKIPPED, asleep_s, rows)), *more]
    if record is not None:
        command = [str(BIN / "unidle"), "run", "-o", str(record), "--"] + command
    before = os.times()
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    after = os.times()
    result = json.loads(done.stdout)
    spent = after.children_user - before.children_user + after.children_system - before.children_system
    result["beside"] = max(0.0, spent - result["all_cpu_s"]) / (after.elapsed - before.elapsed)
    if record is not None:
        database = sqlite3.connect(record / "record.db")
        notes = [json.loads(row[0]) for row in database.execute("select body from notes")]
        result["said"] = [note for note in notes if note["type"] == "shim"][-1]
        result["steps"] = database.execute("select count(*) from steps").fetchone()[0]
    return result


def shape_for(step_s, asleep_s, rows, seconds):
    """Returns width, layers, steps per turn, turns and warm-up turns, for steps of about `step_s` here."""
    width, layers = 64, 1
    for _ in range(12):
        took = statistics.median(wall for wall, _ in run((width, layers, 16, 8, 4), 0, rows, None)["on"])
        if took >= 0.7 * step_s:
            break
        if width < 2048:
            width = min(2048, int(width * min(4.0, max(1.2, (step_s / took) ** 0.5))))
        else:
            layers = max(layers + 1, int(layers * min(4.0, step_s / took)))
    took += asleep_s
    each = max(8, int(TURN_S / took))
    warm = 2 * (1 + int(WARM_S / ((each + SKIPPED) * took) / 2))
    return width, layers, each, warm + 4 * max(4, int(seconds / took / (each + SKIPPED) / 4)), warm


def interval(values, rounds=4000):
    draw = random.Random(1)
    medians = sorted(statistics.median(draw.choices(values, k=len(values))) for _ in range(rounds))
    return medians[int(0.025 * rounds)], medians[int(0.975 * rounds)]


def spread(values):
    low, high = interval(values)
    return {"median": statistics.median(values), "low": low, "high": high}


def measure(name, step_s, asleep, rows, seconds):
    asleep_s = asleep * step_s
    shape = shape_for(step_s - asleep_s, asleep_s, rows, seconds)
    with tempfile.TemporaryDirectory() as folder:
        turns = run(shape, asleep_s, rows, Path(folder) / "turns", "turns")
        short = (*shape[:3], 3 * shape[4], 1)
        bare, seen = run(short, asleep_s, rows, None), run(short, asleep_s, rows, Path(folder) / "observed")
    off, on = turns["off"], turns["on"]
    cpu = [1e6 * (b[1] - a[1]) for a, b in zip(off, on)]
    wall = [1e6 * (b[0] - a[0]) for a, b in zip(off, on)]
    step_us = 1e6 * statistics.median(a[0] for a in off)
    print(f"{name}: {len(cpu)} pairs of turns of {shape[2]} steps", file=sys.stderr)
    return {
        "step_us": step_us,
        "cpu_us": spread(cpu),
        "wall_us": spread(wall),
        "said_us": turns["said"].get("step_cost_us"),
        "in_full": turns["said"].get("steps_in_full"),
        "beside": seen["beside"] - bare["beside"],
        "pairs": len(cpu),
        "losses_equal": seen["losses"] == bare["losses"],
        "steps_counted": seen["steps"] == (short[2] + SKIPPED) * short[3],
        "thread": turns["thread_s"] / turns["all_cpu_s"],
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--seconds", type=float, default=12, help="length of the run by turns at each step length"
    )
    parser.add_argument("--steps", default="1,10,100", help="step lengths in ms")
    parser.add_argument(
        "--asleep",
        type=float,
        default=0,
        help="share of a step in which the host sleeps, as while a device computes",
    )
    parser.add_argument("--rows", default="32", help="rows that the loader reads for each step")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    cases = {
        f"{ms} ms, {rows} rows": measure(
            f"{ms} ms, {rows} rows", float(ms) * 1e-3, options.asleep, int(rows), options.seconds
        )
        for ms in options.steps.split(",")
        for rows in options.rows.split(",")
    }
    first = next(iter(cases.values()))
    ratio = 1 + first["cpu_us"]["median"] / first["step_us"]
    result = {
        "name": "run_overhead",
        "unit": "CPU time of a step, observed / bare",
        "ours": ratio,
        "peers": {"bare": 1.0},
        "ratio": ratio,
        "cases": cases,
        "machine": f"{platform.processor() or platform.machine()}, {os.cpu_count()} CPUs",
    }
    good = all(case["losses_equal"] and case["steps_counted"] for case in cases.values())
    if options.json:
        print(json.dumps(result))
    else:
        print(
            "             step   step ms   CPU us a step more (95 %)      of a step   "
            "wall us a step more (95 %)     it says   its thread   unidle run beside it"
        )
        for name, case in cases.items():
            cpu, wall = case["cpu_us"], case["wall_us"]
            print(
                f"{name:>17}   {case['step_us'] * 1e-3:7.2f}   "
                + f"{cpu['median']:.1f} ({cpu['low']:.1f} to {cpu['high']:.1f})".ljust(31)
                + f"{cpu['median'] / case['step_us']:8.2%}    "
                + f"{wall['median']:.1f} ({wall['low']:.1f} to {wall['high']:.1f})".ljust(31)
                + f"{case['said_us'] or 0:6.1f}    {case['thread']:8.2%}     {case['beside']:.2%} of a CPU"
            )
        print("losses equal to the bit, every step counted" if good else "LOSSES DIFFER OR STEPS ARE MISSING")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
