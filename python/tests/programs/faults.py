"""A training program to which faults happen; see test_faults.py."""

import os
import signal
import subprocess
import sys
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, TensorDataset


class Stream(IterableDataset):
    def __iter__(self):
        info = torch.utils.data.get_worker_info()
        first, each = (info.id, info.num_workers) if info else (0, 1)
        for number in range(first, 128, each):
            yield torch.full((16,), float(number)), torch.zeros(1)


def trainer(model=None):
    net = model or nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 1))
    opt = torch.optim.SGD(net.parameters(), lr=1e-3)

    def step(a, b):
        opt.zero_grad()
        loss = ((net(a) - b) ** 2).mean()
        loss.backward()
        opt.step()
        return loss

    return step


def distributed():
    torch.distributed.init_process_group("gloo")
    net = nn.parallel.DistributedDataParallel(nn.Linear(16, 1))
    step = trainer(net)
    for a, b in DataLoader(TensorDataset(torch.randn(128, 16), torch.randn(128, 1)), batch_size=32):
        step(a, b)
    torch.distributed.destroy_process_group()


def main():
    mode = sys.argv[1]
    torch.manual_seed(0)
    torch.set_num_threads(1)
    if mode == "distributed":
        return distributed()
    step = trainer()
    data = TensorDataset(torch.randn(256, 16), torch.randn(256, 1))
    if mode == "wait":  # trains, says so, and waits for a signal
        for a, b in DataLoader(data, batch_size=32):
            step(a, b)
        print("ready", os.getpid(), flush=True)
        while True:
            time.sleep(0.01)
    elif mode == "raise":
        for number, (a, b) in enumerate(DataLoader(data, batch_size=32)):
            step(a, b)
            if number == 5:
                raise RuntimeError("it diverged")
    elif mode == "exit":
        for a, b in DataLoader(data, batch_size=32):
            step(a, b)
        sys.exit(3)
    elif mode == "unread":  # the reader of the ring is stopped meanwhile
        a, b = data[:32]
        step(a, b)
        os.kill(os.getppid(), signal.SIGSTOP)
        for _ in range(20000):  # more than a ring holds, even with one event each
            loss = step(a, b)
        os.kill(os.getppid(), signal.SIGCONT)
        print(loss.item().hex())
    elif mode in ("stream", "streams"):
        for a, b in DataLoader(Stream(), batch_size=8, num_workers=2 if mode == "streams" else 0):
            loss = step(a, b)
        print(loss.item().hex())
    elif mode == "crowd":
        for a, b in DataLoader(data, batch_size=1, num_workers=int(sys.argv[2])):
            loss = step(a, b)
        print(loss.item().hex())
    elif mode == "children":
        for number in range(int(sys.argv[2])):
            child = os.fork()
            if child == 0:
                os._exit(number % 7)
            os.waitpid(child, 0)
            subprocess.run(["true"])
        for a, b in DataLoader(data, batch_size=32):
            loss = step(a, b)
        print(loss.item().hex())


if __name__ == "__main__":
    main()
