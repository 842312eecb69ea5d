"""A program that catches its errors, prints them and claims success at the end; see test_program_forms.py."""

import sys
import traceback

import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
x, y = torch.randn(64, 8), torch.randn(64, 1)
net = nn.Linear(8, 1)
opt = torch.optim.SGD(net.parameters(), lr=1e-3)


def epoch(steps):
    for _ in range(steps):
        opt.zero_grad()
        ((net(x) - y) ** 2).mean().backward()
        opt.step()


def score(number):
    raise ValueError("no score for %d" % number)


def guarded(function, *words):
    try:
        function(*words)
    except Exception:
        traceback.print_exc(file=sys.stdout)


mode = sys.argv[1]
if mode == "last":  # training continues after each error except the last one
    for number in range(60):
        epoch(2)
        guarded(score, number)
        print("epoch %d done" % (number + 1), flush=True)
elif mode == "middle":  # and here after all of them
    for number in range(3):
        guarded(score, number)
        epoch(10)
elif mode == "summary":  # an error is repeated at the end
    kept = []
    for number in range(3):
        try:
            score(number)
        except ValueError as error:
            kept.append(error)
            traceback.print_exception(type(error), error, error.__traceback__)
        epoch(10)
    for error in kept:
        traceback.print_exception(type(error), error, error.__traceback__)
print("Training finished successfully")
