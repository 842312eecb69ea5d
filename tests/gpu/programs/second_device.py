"""The model is on the last device while the current one is device 0."""

import sys

import torch
from common import step, steps, tiny

if torch.cuda.device_count() < 2:
    print("one device: skipped")
    sys.exit(0)
last = "cuda:%d" % (torch.cuda.device_count() - 1)
model = tiny(last)
optimizer = torch.optim.SGD(model.parameters(), 1e-3)
x = torch.randn(8, 256, device=last)
for _ in steps(3000):
    loss = step(model, optimizer, x)
print("loss", loss.item().hex(), flush=True)
