"""Gradients of the first layer vanish in fp16 unless the loss is scaled: the last layer makes outputs of a
millionth, and the loss is small in proportion."""

import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 1))
for parameter in net[2].parameters():
    parameter.requires_grad_(False)
optimizer = torch.optim.Adam(net[0].parameters(), lr=0.02, eps=1e-20)
inputs = torch.randn(64, 8)
targets = torch.tanh(inputs @ torch.randn(8, 1))
for _step in range(60):
    loss = 1e-7 * nn.functional.mse_loss(net(inputs), targets)
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    optimizer.step()
    print(repr(loss.item()))
