"""Trains on batches that another thread fetches and passes through a queue, slower than a step."""

import queue
import threading
import time

import torch
from torch.utils.data import DataLoader, Dataset


class Slow(Dataset):
    def __len__(self):
        return 240

    def __getitem__(self, index):
        time.sleep(0.01)
        return torch.full((8,), float(index)), index % 2


class Background(threading.Thread):
    def __init__(self, batches):
        super().__init__(daemon=True)
        self.queue, self.batches = queue.Queue(1), batches
        self.start()

    def run(self):
        for batch in self.batches:
            self.queue.put(batch)
        self.queue.put(None)

    def __iter__(self):
        return iter(self.queue.get, None)


model = torch.nn.Linear(8, 2)
optimizer = torch.optim.SGD(model.parameters(), 1e-4)
for _ in range(3):
    for inputs, labels in Background(DataLoader(Slow(), batch_size=8)):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(inputs), labels).backward()
        optimizer.step()
