"""Trains on rows in a data set's memory: held_rows.py KIND WORKERS. Prints which samples it saw."""

import json
import sys

import numpy
import torch
from torch.utils.data import BatchSampler, DataLoader, Dataset, SubsetRandomSampler, TensorDataset


class Windows(Dataset):
    def __init__(self):
        self.values = numpy.arange(100, dtype=numpy.float32).reshape(50, 2)

    def __len__(self):
        return 38

    def __getitem__(self, i):
        return self.values[i : i + 12], self.values[i + 12, 0]


class Drawn(Windows):
    def __getitem__(self, i):
        return self.values[i : i + 12] + numpy.random.rand(), self.values[i + 12, 0]


def main(kind, workers):
    torch.manual_seed(0)
    torch.set_num_threads(1)
    if kind in ("tensors", "batches"):
        dataset = TensorDataset(torch.arange(76.0).reshape(38, 2), torch.arange(38.0))
    else:
        dataset = Windows() if kind == "windows" else Drawn()
    if kind == "batches":
        chosen = BatchSampler(SubsetRandomSampler(range(20)), 7, False)
        loader = DataLoader(dataset, batch_sampler=chosen, num_workers=workers)
    else:
        loader = DataLoader(dataset, batch_size=7, shuffle=True, num_workers=workers)
    net = torch.nn.LazyLinear(1)
    net(torch.as_tensor(dataset[0][0]).flatten()[None])
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-6)
    order, form = [], []
    for epoch in range(3):
        for batch in loader:
            x, y = batch
            optimizer.zero_grad()
            torch.nn.functional.mse_loss(net(x.flatten(1)).flatten(), y).backward()
            optimizer.step()
            order.append(y.tolist())
            form.append([type(batch).__name__, str(x.dtype), list(x.shape), str(y.dtype), list(y.shape)])
    samples = sorted(sum(order, []))
    print(json.dumps({"order": order, "form": form, "samples": samples, "batches": len(loader)}))


main(sys.argv[1], int(sys.argv[2]))
