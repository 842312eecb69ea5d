"""Trains on CUDA and forks new workers in each epoch."""

import torch
from common import say, step, steps, tiny
from torch.utils.data import DataLoader, TensorDataset

model = tiny()
optimizer = torch.optim.AdamW(model.parameters())
data = TensorDataset(torch.randn(8 * len(steps(64)), 256))
for _ in range(3):
    for (x,) in DataLoader(data, 8, num_workers=2):
        loss = step(model, optimizer, x.cuda())
    with torch.no_grad():
        for (x,) in DataLoader(data, 64, num_workers=1):
            model(x.cuda())
say(loss)
