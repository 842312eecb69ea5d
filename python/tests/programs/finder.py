"""Halves its batch until it fits into memory, and trains. The first argument says where memory runs out:
within a model, or between its calls, as an error of torch's own or as its text."""

import gc
import sys

import torch
from torch.utils.data import DataLoader, TensorDataset

BATCH_SIZE = 256
where = sys.argv[1]
data = TensorDataset(torch.randn(512, 8))
model = torch.nn.Linear(8, 2)
optimizer = torch.optim.SGD(model.parameters(), 1e-4)
tried = steps = samples = 0


def run_out():
    kind = RuntimeError if where == "words" else torch.OutOfMemoryError
    raise kind("CUDA out of memory. Tried to allocate 20.00 GiB.")


class Hungry(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.model = model

    def forward(self, x):
        if where == "forward" and len(x) > 60 and tried % 2:
            run_out()
        return self.model(x)


hungry = Hungry()


def train(size):
    global tried, steps, samples
    tried = 0
    for (x,) in DataLoader(data, batch_size=size):
        if where != "forward" and size > 60 and tried % 2:
            run_out()
        optimizer.zero_grad()
        hungry(x).sum().backward()
        optimizer.step()
        tried, steps, samples = tried + 1, steps + 1, samples + len(x)


while True:
    try:
        train(BATCH_SIZE)
        break
    except RuntimeError:
        gc.collect()
        BATCH_SIZE //= 2
        print("halved to", BATCH_SIZE)
print(steps, samples)
