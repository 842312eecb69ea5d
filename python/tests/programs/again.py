"""Samples that are costly and made in every epoch, always the same or not; see test_samples.py."""

import random
import sys
import zlib

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

# From Python 3.14 on workers would run this file again.
torch.multiprocessing.set_start_method("fork")

CONTENT = bytes(range(256)) * 1200


def decode(number):
    """Always the same for a number, and so slow that a worker of one epoch is sampled in it a few times."""
    found = np.zeros(64, np.float32)
    for turn in range(12):
        found[(number + turn) % 64] = zlib.crc32(zlib.compress(CONTENT, 6)) % 97
    return found


def noise():
    made = 0.0
    for _ in range(12000):
        made += random.random()
    return np.full(64, made, np.float32)


class Samples(Dataset):
    def __init__(self, kind):
        self.kind = kind

    def __len__(self):
        return 96

    def __getitem__(self, index):
        if self.kind == "noise":
            return noise()
        found = decode(index)
        return found if self.kind == "same" else np.roll(found, random.randrange(64))


kind, workers = sys.argv[1], int(sys.argv[2])
torch.manual_seed(0)
torch.set_num_threads(1)
net = nn.Linear(64, 1)
opt = torch.optim.SGD(net.parameters(), lr=1e-3)
for _epoch in range(4):
    for x in DataLoader(Samples(kind), batch_size=8, shuffle=True, num_workers=workers):
        opt.zero_grad()
        net(x).square().mean().backward()
        opt.step()
