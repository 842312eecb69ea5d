"""busy.py SECONDS FILE: creates the file once it computes; runs until it is removed or SECONDS are over."""

import os
import sys
import time

import torch
from common import large, step

model = large(width=2048, layers=4)
optimizer = torch.optim.SGD(model.parameters(), 1e-9)
x = torch.zeros(256, 2048, device="cuda")
step(model, optimizer, x)
torch.cuda.synchronize()
open(sys.argv[2], "w").close()
end = time.monotonic() + float(sys.argv[1])
while time.monotonic() < end and os.path.exists(sys.argv[2]):
    for _ in range(20):
        step(model, optimizer, x)
    torch.cuda.synchronize()
