"""Stack samples show attention that computes its weights, with the line of the program that calls it."""

import os
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import run_case  # noqa: E402

PROGRAM = """
import torch
from torch import nn
torch.manual_seed(0)
torch.set_num_threads(1)

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(32, 4, batch_first=True)
        self.out = nn.Linear(32, 1)

    def forward(self, x):
        y, _ = self.attention(x, x, x{options})  # here
        return self.out(y)

net = Block()
optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
x = torch.randn(4, 256, 32)
for step in range(150):
    loss = net(x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item().hex())
"""


@unittest.skipUnless(run_case.HAS_TORCH, "this Python has no torch")
class Attention(run_case.RunCase):
    def notes(self, options):
        self.observed_text(PROGRAM.format(options=options))
        return self.record.notes("attention")[-1:]

    def test_weights_are_seen_where_they_are_asked_for(self):
        (note,) = self.notes("")
        line = 1 + PROGRAM.split("\n").index("        y, _ = self.attention(x, x, x{options})  # here")
        self.assertTrue(note["where"].endswith("train.py:%d" % line), note)
        self.assertGreater(note["hits"], 0.2 * note["total"], note)

    def test_without_weights_there_is_nothing_to_say(self):
        self.assertEqual(self.notes(", need_weights=False"), [])


if __name__ == "__main__":
    unittest.main()
