"""Counts everything that torch's modes see of a training run; see test_run.py."""

import collections
import time

import torch
from torch import nn
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.data import DataLoader, Dataset, TensorDataset

functions, operations = collections.Counter(), collections.Counter()


class Functions(TorchFunctionMode):
    def __torch_function__(self, function, types, args=(), kwargs=None):
        functions[getattr(function, "__name__", str(function))] += 1
        return function(*args, **(kwargs or {}))


class Operations(TorchDispatchMode):
    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        operations[str(function)] += 1
        return function(*args, **(kwargs or {}))


class Texts(Dataset):
    """Costly enough to be inspected when they are made again."""

    def __init__(self):
        self.x = torch.randn(64, 10)

    def __len__(self):
        return self.x.size(0)

    def __getitem__(self, index):
        time.sleep(0.0005)
        return {"x": self.x[index], "attention_mask": torch.arange(10) < index % 10}


torch.manual_seed(0)
net = nn.Sequential(nn.Conv2d(1, 2, 1), nn.Flatten(), nn.Linear(20, 32), nn.ReLU(), nn.Linear(32, 1))
opt = torch.optim.AdamW(net.parameters(), lr=0.01)
with Functions(), Operations():
    for epoch in range(3):
        for loader in (DataLoader(Texts(), 8, shuffle=True), DataLoader(TensorDataset(Texts().x), 16)):
            for batch in loader:
                x = batch["x"] if isinstance(batch, dict) else batch[0]
                opt.zero_grad()
                loss = (net(x.to("cpu").reshape(-1, 1, 1, 10)) ** 2).mean()
                loss.backward()
                nn.utils.clip_grad_norm_(net.parameters(), 1.0)
                opt.step()
print(sorted(functions.items()), sorted(operations.items()), loss.item().hex())
