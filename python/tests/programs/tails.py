"""A loader whose samples take a while now and then: see test_run_delay.py."""

import sys
import time

import torch
from torch.utils.data import DataLoader, Dataset

kind = sys.argv[1]
torch.set_num_threads(1)


def compute(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


class Samples(Dataset):
    def __len__(self):
        return 800 if kind != "light" else 8000

    def __getitem__(self, index):
        if kind == "light" or index % 50:
            compute(0.0003)
        elif kind == "heavy":
            compute(0.2)
        elif kind == "waits":
            time.sleep(0.2)
        return torch.full((16,), float(index))


net = torch.nn.Linear(16, 1)
opt = torch.optim.SGD(net.parameters(), lr=1e-6)
for batch in DataLoader(Samples(), batch_size=16):
    opt.zero_grad()
    net(batch).square().mean().backward()
    opt.step()
