"""All output of Python's traceback module about an exception that came through a loader, and about the stack;
see test_run.py."""

import io
import logging
import sys
import traceback

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Rows(Dataset):
    def __len__(self):
        return 32

    def __getitem__(self, index):
        if index == 9:
            say_stack()
        if index == 13:
            raise ValueError("no row %d" % index)
        return torch.full((3,), float(index))


def say_stack():
    here = sys._getframe()
    traceback.print_stack()
    print(traceback.format_stack(), traceback.extract_stack(here, 3), names(traceback.walk_stack(here)))
    print(traceback.StackSummary.extract(traceback.walk_stack(None)).format())
    logging.warning("here", stack_info=True)


def names(frames):
    return [(frame.f_code.co_name, line) for frame, line in frames]


def say(error):
    trace = error.__traceback__
    traceback.print_tb(trace)
    traceback.print_tb(trace, -1)
    print(traceback.format_tb(trace, limit=2), traceback.extract_tb(trace), names(traceback.walk_tb(trace)))
    print(traceback.StackSummary.extract(traceback.walk_tb(trace), limit=3).format())
    traceback.print_exception(type(error), error, trace)
    traceback.print_exc()
    print(traceback.format_exception(type(error), error, trace))
    kept = io.StringIO()
    traceback.TracebackException.from_exception(error).stack.format()
    traceback.print_tb(None, file=kept)
    logging.exception("caught")


net = nn.Linear(3, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
try:
    for batch in DataLoader(Rows(), 4):
        net(batch).sum().backward()
        opt.step()
except ValueError as error:
    say(error)
