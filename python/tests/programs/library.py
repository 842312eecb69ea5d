"""A library does all work of a sample (see test_samples.py), and the loop that requests samples is in
main()."""

import sys

import shelf
import torch
from torch import nn
from torch.utils.data import DataLoader

# From Python 3.14 on workers would run this file again.
torch.multiprocessing.set_start_method("fork")


def main():
    torch.set_num_threads(1)
    net = nn.Linear(64, 1)
    opt = torch.optim.SGD(net.parameters(), lr=1e-3)
    for _epoch in range(3):
        for x in DataLoader(shelf.Pictures(), batch_size=8, shuffle=True, num_workers=int(sys.argv[1])):
            opt.zero_grad()
            net(x).square().mean().backward()
            opt.step()


main()
