"""A program that restricts itself to one CPU after it has started, and computes with more threads than that;
see test_causes.py."""

import os
import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

mode = sys.argv[1]
one = {min(os.sched_getaffinity(0))}
torch.manual_seed(0)
torch.set_num_threads(1 if mode == "workers" else 2)
if mode == "self":
    os.sched_setaffinity(0, one)
elif mode == "pool":  # each thread of the pool on its own CPU, as with OMP_PROC_BIND
    torch.randn(512, 512) @ torch.randn(512, 512)
    os.sched_setaffinity(0, one)


def narrow(_):
    os.sched_setaffinity(0, one)


class Slow(TensorDataset):
    def __getitem__(self, index):
        if mode == "workers":
            sum(number * number for number in range(100000))
        return super().__getitem__(index)


net = nn.Sequential(nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 256))
opt = torch.optim.SGD(net.parameters(), lr=1e-4)
options = dict(num_workers=3, worker_init_fn=narrow, persistent_workers=True) if mode == "workers" else {}
loader = DataLoader(Slow(torch.randn(640, 256)), batch_size=16 if mode == "workers" else 320, **options)
for _epoch in range(3 if mode == "workers" else 80):
    for (x,) in loader:
        opt.zero_grad()
        net(x).square().mean().backward()
        opt.step()
