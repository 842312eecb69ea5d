"""A small training program that can behave in several ways; see test_run.py."""

import os
import signal
import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def main():
    mode = sys.argv[1]
    torch.manual_seed(0)
    torch.set_num_threads(1)
    x, y = torch.randn(256, 16), torch.randn(256, 1)
    net = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 1))
    opt = torch.optim.Adam(net.parameters(), lr=1e-3)
    train = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)
    held_out = DataLoader(TensorDataset(x, y), batch_size=64)

    def step(a, b):
        opt.zero_grad()
        loss = ((net(a) - b) ** 2).mean()
        loss.backward()
        opt.step()
        return loss

    if mode == "plain":
        for epoch in range(4):
            net.train()
            for a, b in train:
                loss = step(a, b)
            net.eval()
            with torch.no_grad():
                for a, b in held_out:
                    net(a)
            print(epoch, loss.item().hex())
        torch.save(net.state_dict(), os.devnull)
    elif mode == "workers":
        loader = DataLoader(TensorDataset(x, y), 32, num_workers=2, multiprocessing_context=sys.argv[2])
        for epoch in range(2):
            for a, b in loader:
                step(a, b)
    elif mode == "error":
        for a, b in train:
            step(a[:, :3], b)
    elif mode == "warning":
        for a, b in train:
            torch.optim.lr_scheduler.StepLR(opt, 1).step()
            step(a, b)
            break
        torch.nn.functional.l1_loss(torch.zeros(2), torch.zeros(2, 1))
    elif mode == "closed":
        os.closerange(3, 256)
        for a, b in train:
            step(a, b)
        with open(os.devnull) as file:
            print(file.fileno())
    elif mode == "killed":
        for epoch in range(3):
            for a, b in train:
                step(a, b)
        os.kill(os.getpid(), signal.SIGKILL)
    elif mode == "many":
        for epoch in range(1000):
            for a, b in train:
                step(a, b)


if __name__ == "__main__":
    main()
