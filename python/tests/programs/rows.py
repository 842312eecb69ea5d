"""Rows of a table in memory, fetched one by one; see test_samples.py."""

import sys

import numpy as np
import torch
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader, Dataset, TensorDataset

ROWS = 16384


class Table(Dataset):
    def __init__(self):
        rng = np.random.default_rng(0)
        self.x, self.y = rng.normal(size=(ROWS, 64)).astype(np.float32), rng.integers(0, 10, ROWS)
        self.asked = 0

    def __len__(self):
        return ROWS

    def __getitem__(self, index):
        return self.x[index], self.y[index]


class Counts(Table):
    """Requests leave a trace: only the program may make them."""

    def __getitem__(self, index):
        self.asked += 1
        return self.x[index], self.y[index]


class Single(Table):
    def __getitem__(self, index):
        return self.x[index], int(self.y[index])


class Digits(Table):
    """Like torchvision's MNIST."""

    def __init__(self):
        super().__init__()
        self.data, self.targets = (
            torch.randint(0, 255, (ROWS, 8, 8), dtype=torch.uint8),
            torch.from_numpy(self.y),
        )

    def __getitem__(self, index):
        picture, target = self.data[index], int(self.targets[index])
        picture = Image.fromarray(picture.numpy())
        return torch.from_numpy(np.array(picture, dtype=np.float32)).reshape(-1), target


torch.manual_seed(0)
torch.set_num_threads(1)
kind = sys.argv[1]
if kind == "tensors":
    dataset = TensorDataset(torch.randn(ROWS, 64), torch.randint(0, 10, (ROWS,)))
else:
    dataset = {"table": Table, "counts": Counts, "single": Single, "digits": Digits}[kind]()
net = nn.Linear(64, 10)
opt = torch.optim.SGD(net.parameters(), lr=1e-3)
for epoch in range(20):  # outweighs start-up, which is long on a busy machine
    for x, y in DataLoader(dataset, batch_size=256, shuffle=True):
        opt.zero_grad()
        nn.functional.cross_entropy(net(x), y).backward()
        opt.step()
    print(epoch, net.weight.sum().item().hex(), getattr(dataset, "asked", None))
