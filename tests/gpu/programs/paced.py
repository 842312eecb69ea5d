"""A training loop of a usual shape that prints how long it took, start-up left out."""

import time

import torch
from common import large, step, steps

model = large(width=2048, layers=4)
optimizer = torch.optim.SGD(model.parameters(), 1e-9)
x = torch.zeros(256, 2048, device="cuda")
for _ in steps(40):
    step(model, optimizer, x)
torch.cuda.synchronize()
begin = time.perf_counter()
for _ in steps(400):
    step(model, optimizer, x)
torch.cuda.synchronize()
print("seconds", time.perf_counter() - begin, flush=True)
