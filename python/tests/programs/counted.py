"""Trains in short steps until it is killed, and counts the steps in a file that outlives it.

The file has words of 64 bits: finished steps, its pid and whether its steps are only marked. `torch`: a real
training. `shim`: the ring, loop and stretch of the shim without torch, so that a run begins at once. Steps
that are only marked are then a loop of batches, and events are written as in short_steps.py.
"""

import mmap
import os
import random
import sys
import time

MODE, PATH, SECONDS = sys.argv[1], sys.argv[2], float(sys.argv[3])
with open(PATH, "r+b") as file:
    told = memoryview(mmap.mmap(file.fileno(), 24)).cast("Q")
told[1] = os.getpid()
began = time.monotonic()


def by_torch():
    import torch
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset

    torch.set_num_threads(1)
    rows = 4_000_000
    data = TensorDataset(torch.zeros(1, 8).expand(rows, 8), torch.zeros(1, 1).expand(rows, 1))
    net = nn.Linear(8, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
    shim = sys.modules.get("_unidle_shim.session")
    for x, y in DataLoader(data, 4):
        optimizer.zero_grad()
        nn.functional.mse_loss(net(x), y).backward()
        optimizer.step()
        told[0] += 1
        told[2] = shim is not None and shim.state.marking is not None
        if time.monotonic() - began > SECONDS:
            return


def by_shim():
    from _unidle_shim.host import probe
    from _unidle_shim.loop import marks_file, short_steps
    from _unidle_shim.loop.loop import Loop, now
    from _unidle_shim.loop.step_parts import Parts

    class Model:
        training = True

    class Loader:
        use, proven, epochs = "train", True, 1

    draw, model, loader, optimizer = random.Random(os.getpid()), Model(), Loader(), Model()
    loop = Loop(probe.open_ring("train"), 1, now())
    loop.own_cost.next_step = 1 << 60
    writer, marks = short_steps.MarkedSteps.__new__(short_steps.MarkedSteps), marks_file.Stretch()
    writer.each = 1

    def in_full():
        t = now()
        loop.fetch_begins(loader, t)
        loop.fetch_ends(loader, t, now(), 10, 4, True)
        loop.forward_begins(model, now(), True, 4)
        loop.forward_ends(True, now(), 20, 4)
        t = now()
        loop.backward_begins(t)
        loop.backward_ends(t, now(), 30, None)
        loop.optimizer_begins(optimizer)
        loop.optimizer_ends(optimizer, t, now(), 5)

    def marked_only(count):
        """Begins like a stretch: in a step whose batch was received and whose optimiser has stepped."""
        parts = loop.parts
        marks.begin(loop.steps, parts, 1, 4, 4, 1, 0)
        asked, got = [], []
        told[2] = 1
        for number in range(count):
            t0 = now()
            t1 = now()
            marks.mark(number, t0, t1)
            asked.append(t0)
            got.append(t1)
            time.sleep(0.0002)
            told[0] += 1
        stepped = short_steps.regular_steps.marks(asked, parts.fetches, 1, parts.fetches + count - 1, now())
        steps, begin, waited, samples, fetches, _ = writer._cut(parts, (asked, got, [4] * count, stepped), 0)
        loop.micro.setdefault(1, 1)
        writer._write(loop, parts, steps)
        loop.parts = parts = Parts(begin)
        parts.input, parts.samples, parts.fetches, parts.incomplete = waited, samples, fetches, True
        parts.optimizers, loop.stepped_at = (id(optimizer),), now()
        marks.end()
        told[2] = 0

    while time.monotonic() - began < SECONDS:
        for _ in range(draw.randrange(5, 60)):
            in_full()
            told[0] += 1
            time.sleep(0.0002)
        marked_only(draw.randrange(2, 600))


by_torch() if MODE == "torch" else by_shim()
