"""Shared by the programs: nets, a step, and a loss that is printed with all its digits.
`UNIDLE_PROGRAM_LENGTH` shortens them (0.1: a tenth of the steps).
"""

import os

import torch
from torch import nn

assert torch.cuda.is_available(), "needs a CUDA device"
torch.manual_seed(0)


def steps(usual):
    return range(max(20, int(usual * float(os.environ.get("UNIDLE_PROGRAM_LENGTH", 1)))))


def tiny(device="cuda"):
    return nn.Linear(256, 256).to(device)


def large(width=8192, layers=4, device="cuda"):
    return nn.Sequential(*[nn.Linear(width, width, device=device) for _ in range(layers)])


def step(model, optimizer, x):
    optimizer.zero_grad(set_to_none=True)
    loss = model(x).square().mean()
    loss.backward()
    optimizer.step()
    return loss


def say(loss):
    torch.cuda.synchronize()
    print("loss", loss.item().hex(), flush=True)
