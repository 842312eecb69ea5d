"""A program that computes on one CPU of several; see test_causes.py."""

import os
import sys

mode = sys.argv[1]
if mode == "mask":  # as a launcher does before it starts the program
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
elif mode == "variable":
    os.environ["OMP_NUM_THREADS"] = "1"
import torch  # noqa: E402
from torch import nn  # noqa: E402

if mode in ("call", "small"):
    torch.set_num_threads(1)
torch.manual_seed(0)
if mode == "small":  # many tensors, so that each takes little time even on a slow machine
    batch, net = 8, nn.Sequential(*[nn.LayerNorm(256) for _ in range(16)])
else:
    batch, net = 512, nn.Sequential(nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 256))
opt = torch.optim.SGD(net.parameters(), lr=1e-4)
x = torch.randn(batch, 256)
for _ in range(2000 if mode == "small" else 120):
    opt.zero_grad()
    net(x).square().mean().backward()
    opt.step()
