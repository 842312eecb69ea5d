"""Trains on the CPU of a machine that has a GPU."""

import torch
from common import step, steps, tiny

model = tiny("cpu")
optimizer = torch.optim.SGD(model.parameters(), 1e-3)
x = torch.randn(64, 256)
for _ in steps(1000):
    loss = step(model, optimizer, x)
print("loss", loss.item().hex(), flush=True)
