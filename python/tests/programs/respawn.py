"""Trains short epochs whose loader restarts its workers for each: opening their files takes a while."""

import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

EPOCHS = 10


def open_files(worker):
    time.sleep(0.4)


data = TensorDataset(torch.randn(64, 8), torch.randn(64, 1))
net = nn.Linear(8, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
loader = DataLoader(data, batch_size=8, num_workers=2, worker_init_fn=open_files)
for _ in range(EPOCHS):
    for x, y in loader:
        optimizer.zero_grad()
        nn.functional.mse_loss(net(x), y).backward()
        optimizer.step()
