"""Attention scores computed one by one in a Python loop, or, with "whole", by one operation. With "loss", by
one operation, and a loss that is computed for one row after the other."""

import sys
import time

import torch

LOSS = "loss" in sys.argv
WHOLE = LOSS or "whole" in sys.argv


class Attention(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(64, 64)
        self.layers = torch.nn.ModuleList(torch.nn.Linear(64, 64) for _ in range(4))

    def forward(self, x):
        for layer in self.layers:
            x = torch.relu(layer(x))
        scored = self.layer(x)
        if WHOLE:
            return (scored * x).sum(2)
        scores = []
        with torch.no_grad():
            for row in range(x.shape[0]):
                for i in range(x.shape[1]):
                    # a single number
                    scores.append(scored[row, i].dot(x[row, i]))
        return torch.stack(scores).reshape(x.shape[:2]) * (scored * x).sum(2)


def triplet_loss(found, margin=0.1):
    losses = []
    for i in range(len(found)):
        away = (found[i] - found).square().sum(1).clamp_min(1e-6).sqrt()
        near = away[torch.arange(len(found), device=found.device) != i]
        losses.append(torch.relu(near.max() - near.min() + margin))
    return torch.stack(losses).mean()


torch.manual_seed(0)
if LOSS:
    torch.set_num_threads(1)  # two would wait for each other on a busy machine
model = Attention()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
end = time.monotonic() + (16 if LOSS else 8)  # its forward pass is a third of the step
while time.monotonic() < end:
    x = torch.randn(4096 if WHOLE and not LOSS else 64, 10, 64)
    loss = triplet_loss(model(x)) if LOSS else model(x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
