"""Warnings raised in C name the innermost Python frame; see test_patches.py. Filters by module and the list
of shown warnings use it."""

import gc
import warnings

import numpy
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

net = nn.Linear(3, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for (x,) in DataLoader(TensorDataset(torch.ones(12, 3)), 3):
    optimizer.zero_grad()
    net(x).sum().backward()
    optimizer.step()


class Leaves:
    """The collector finds it; it leaves a file open."""

    def __init__(self):
        self.itself, self.file = self, open(__file__)


def all_of_them():
    rows = numpy.zeros(3)
    rows.setflags(write=False)
    for _ in range(2):
        torch.from_numpy(rows)
        loss = net(torch.ones(1, 3)).sum()
        float(loss), int(loss), loss.item(), bool(loss), loss.tolist()
        torch.ones(1, dtype=torch.complex64).to(torch.float32)
        Leaves()
        gc.collect()


all_of_them()
print(sorted(str(key[0])[:60] for key in globals().get("__warningregistry__", {}) if key != "version"))
warnings.simplefilter("always")
all_of_them()
warnings.resetwarnings()
warnings.filterwarnings("error", module="__main__")
for attempt in (
    lambda: torch.from_numpy(numpy.frombuffer(b"1234", dtype=numpy.uint8)),
    lambda: float(net(torch.ones(1, 3)).sum()),
):
    try:
        attempt()
    except UserWarning as warning:
        print(str(warning)[:60])
