"""Shows when the shim requests rows of a dataset, or collates some; see test_whole_batches.py."""

import sys

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, SubsetRandomSampler, TensorDataset
from torch.utils.data._utils.collate import default_collate_fn_map


class Scaled(Dataset):
    """Some rows are all zero: they cannot be scaled, and the sampler leaves them out."""

    def __init__(self):
        self.x = np.random.RandomState(0).rand(200, 10).astype("f")
        self.x[::7] = 0

    def __len__(self):
        return len(self.x)

    def __getitem__(self, index):
        row = self.x[index]
        return row / row.sum()


def noisy(batch, *, collate_fn_map=None):
    global collated
    collated += 1
    return torch.stack(batch) + 0.01 * torch.randn(())


torch.manual_seed(0)
collated = 0
if sys.argv[1] == "zeros":
    dataset = Scaled()
    sampler = SubsetRandomSampler([row for row in range(200) if dataset.x[row].any()])
    loader = DataLoader(dataset, 8, sampler=sampler)
else:
    default_collate_fn_map[torch.Tensor] = noisy
    loader = DataLoader(TensorDataset(torch.randn(256, 10)), 16, shuffle=True)
net = nn.Linear(10, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.01)
for batch in loader:
    batch = batch if torch.is_tensor(batch) else batch[0]
    opt.zero_grad()
    loss = (net(batch) ** 2).mean()
    loss.backward()
    opt.step()
print(collated, loss.item().hex())
