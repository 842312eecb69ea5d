"""busy.py SECONDS: computes until so long after the line that it prints when it has begun."""

import sys
import time

import torch
from common import large, step

model = large(width=2048, layers=4)
optimizer = torch.optim.SGD(model.parameters(), 1e-9)
x = torch.zeros(256, 2048, device="cuda")
step(model, optimizer, x)
torch.cuda.synchronize()
print("computing", flush=True)
end = time.monotonic() + float(sys.argv[1]) + 1
while time.monotonic() < end:
    for _ in range(20):
        step(model, optimizer, x)
    torch.cuda.synchronize()
