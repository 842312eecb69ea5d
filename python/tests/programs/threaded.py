"""Trains in a thread for which the main thread waits, as servers and notebooks do."""

import threading

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
torch.set_num_threads(1)
dataset = TensorDataset(torch.randn(64, 8), torch.randn(64, 1))
next(iter(DataLoader(dataset, 8)))  # reads the shapes


def train():
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(4):
        for x, y in DataLoader(dataset, 8, shuffle=True):
            loss = nn.functional.mse_loss(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(loss.item().hex())


thread = threading.Thread(target=train)
thread.start()
thread.join()
