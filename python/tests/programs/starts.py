"""Spends most of its time before it trains: starts.py KIND."""

import sys
import time

KIND, BEGIN = sys.argv[1], time.monotonic()


def at_least_half():
    """So long that it is at least half of the time up to now."""
    return max(4, time.monotonic() - BEGIN)


def read_all(seconds):
    end, count = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        with open(__file__) as file:
            count += len(file.read().split())
    return count


def prepare(seconds):
    return [read_all(seconds / 8) for _ in range(8)]


def fork():
    import os

    for _ in range(3):
        child = os.fork()
        if not child:
            os._exit(0)
        os.waitpid(child, 0)


def main():
    if KIND == "before":
        read_all(4)
    import torch

    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    if KIND == "forks":
        fork()
    if KIND in ("after", "forks"):
        prepare(at_least_half())
    if KIND == "import":
        import slowly  # noqa: F401
    for _ in range(40):
        optimizer.zero_grad()
        model(torch.ones(8, 4)).sum().backward()
        optimizer.step()
    print("trained")


main()
