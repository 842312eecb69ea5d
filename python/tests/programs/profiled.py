"""A training loop with its own profiler; see test_trace.py."""

import sys

import torch
from torch import nn


def main():
    mode, steps = sys.argv[1], int(sys.argv[2])
    torch.manual_seed(0)
    torch.set_num_threads(1)
    net = nn.Linear(8, 1)
    opt = torch.optim.SGD(net.parameters(), lr=0.1)

    def train(count):
        for _ in range(count):
            opt.zero_grad()
            loss = net(torch.randn(4, 8)).pow(2).mean()
            loss.backward()
            opt.step()
        return loss.item().hex()

    if mode == "never":
        print(train(steps))
    elif mode == "before":
        with torch.profiler.profile(schedule=torch.profiler.schedule(wait=1, warmup=1, active=2)) as profiler:
            print(train(1))
            profiler.step()
        print(train(steps))
    elif mode == "during":  # begins inside our window
        print(train(steps))
        with torch.autograd.profiler.profile() as profiler:
            print(train(3))
        print(any(event.key == "aten::linear" for event in profiler.key_averages()))
        print(train(steps))
    elif mode == "disabled":
        with torch.autograd.profiler.profile(enabled=False):
            print(train(steps))


main()
