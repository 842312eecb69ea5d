"""Sixty tiny layers and a batch of four."""

import torch
from common import say, step, steps
from torch import nn

model = nn.Sequential(
    *[nn.Sequential(nn.Linear(64, 64), nn.LayerNorm(64), nn.GELU()) for _ in range(60)]
).cuda()
optimizer = torch.optim.AdamW(model.parameters(), foreach=False)
x = torch.randn(4, 64, device="cuda")
for _ in steps(300):
    loss = step(model, optimizer, x)
say(loss)
