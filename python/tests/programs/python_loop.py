"""Attention scores computed one by one in a Python loop, or, with "whole", by one operation."""

import sys
import time

import torch

WHOLE = "whole" in sys.argv


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


torch.manual_seed(0)
model = Attention()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
end = time.monotonic() + 8
while time.monotonic() < end:
    x = torch.randn(4096 if WHOLE else 64, 10, 64)
    loss = model(x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
