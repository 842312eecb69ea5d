"""Shared by tests of `unidle run --tracker`: runs a program, and returns what is said of its diagnosis."""

import importlib.util
import os
import re
import sys
import unittest

import run_case
from run_case import HAS_TORCH, UNIDLE

TRAINING = """
import time, torch
model = torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
def train(tell):
    for step in range(40):
        optimizer.zero_grad()
        loss = model(torch.ones(2, 4)).pow(2).sum()
        loss.backward()
        optimizer.step()
        time.sleep(0.01)
        tell(float(loss), step)
"""


def has(name):
    return unittest.skipUnless(importlib.util.find_spec(name), "this Python has no %s" % name)


@unittest.skipUnless(HAS_TORCH, "this Python has no torch")
@unittest.skipUnless(os.path.exists(UNIDLE), "UNIDLE_BIN is not set: there is no unidle to run")
class TrackedCase(run_case.RunCase):
    fresh = True  # the interpreter that sends is the program's

    def told(self, tracker, program, code=0, **environment):
        """Runs it observed, and returns the lines that say where its diagnosis is."""
        path = os.path.join(self.folder, "train.py")
        with open(path, "w") as file:
            file.write(TRAINING + program)
        options = ("--tracker", tracker) if tracker else ()
        done = self.observed(sys.executable, path, options=options, **environment)
        self.assertEqual(done.returncode, code, done.stderr)
        self.printed = done.stderr
        # The diagnosis itself has a capital.
        return re.findall("(?m)^unidle: (?!sending to)[a-z].*", done.stderr)

    def sent(self, tracker, program, code=0, **environment):
        (line,) = self.told(tracker, program, code, **environment)
        self.assertTrue(line.startswith("unidle: sent to %s: " % tracker), line)
        return line

    def stand_in(self, name, text):
        """A package of that name, which the program and the sender import."""
        path = os.path.join(self.folder, "packages", *name.split(".")) + ".py"
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as file:
            file.write(text)
        return {"PYTHONPATH": os.path.join(self.folder, "packages")}
