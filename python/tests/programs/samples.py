"""Trains on a dataset of the given kind; prints the losses to the last bit."""

import random
import sys
import time

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset


class Costly(Dataset):
    """A millisecond of work for a constant result."""

    def __init__(self, kind):
        self.kind, self.epoch = kind, 0

    def __len__(self):
        return 24

    def __getitem__(self, i):
        begin = time.perf_counter()
        while time.perf_counter() - begin < 0.001:
            pass
        picture = np.full((2, 3, 4), i, dtype=np.float32).transpose(2, 0, 1)
        if self.kind == "draws":
            picture = picture + random.random()
        elif self.kind == "differs":
            picture = picture + np.random.default_rng().random()
        elif self.kind == "epochs":
            picture = picture + self.epoch
        elif self.kind == "object":
            return torch.from_numpy(picture + 0.5), frozenset([i])
        return torch.from_numpy(picture + 0.5), {
            "number": i / 24,
            "name": "sample %d" % i,
            "kept": np.int64(i),
        }


def costly(i):
    begin = time.perf_counter()
    while time.perf_counter() - begin < 0.001:
        pass
    return np.full((2, 3, 4), i, dtype=np.float32)


class Cropped(Dataset):
    """The same costly picture each time, from which each epoch takes another part."""

    def __init__(self, kind):
        self.kind, self.epoch, self.drawn, self.last, self.seen = kind, 0, 0, None, []
        self.buffer = np.zeros((2, 3, 4), np.float32)

    def __len__(self):
        return 24

    def decode(self, i):
        picture = costly(i)
        return picture + random.random() if self.kind == "inner" else picture + self.epoch

    def remember(self, i):
        self.last = costly(i)
        return self.last

    def append(self, i):
        self.seen.append(i)
        return np.full((2, 3, 4), len(self.seen), dtype=np.float32) + costly(i)

    def fill(self, i):
        self.buffer[:, :, :] = costly(i)
        return 2

    def fill_another(self, i):
        picture = np.asarray(self.buffer)
        picture[0:2] = costly(i)
        return 2

    def part(self, rows):
        return self.buffer[:rows] + costly(0)

    def __getitem__(self, i):
        rng = np.random.default_rng((self.drawn, i))
        self.drawn += 1
        if self.kind in ("fills", "aliases"):
            picture = self.part(self.fill(i) if self.kind == "fills" else self.fill_another(i))
        else:
            picture = {"remembers": self.remember, "appends": self.append}.get(self.kind, self.decode)(i)
        picture *= 1 + rng.random()  # must not change the kept picture
        return torch.from_numpy(picture[:, int(rng.integers(2)) :][:, :2].copy()), i


class Table(Dataset):
    def __init__(self, kind):
        rng = np.random.default_rng(0)
        self.ids, self.x = rng.integers(0, 9, (400, 2)), rng.random((400, 3), dtype=np.float32)

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return self.ids[i, 0], self.x[i]


class Noisy(Table):
    def __getitem__(self, i):
        return self.ids[i, 0], self.x[i] + np.random.rand()


class Branches(Table):
    def __getitem__(self, i):
        return self.ids[i, 0], self.x[i] if i % 2 else -self.x[i]


class Mixes(Table):
    def __getitem__(self, i):
        return self.ids[i, 0], self.x[i] - self.x[i].mean()


class Batches(Table):
    def __getitems__(self, indices):
        return [self[i] for i in indices]


def split(dataset):
    return torch.utils.data.random_split(dataset, [300, 100])[0]


def main():
    family, kind, workers = sys.argv[1], sys.argv[2], int(sys.argv[3])
    torch.manual_seed(0)
    random.seed(0)
    np.random.seed(0)
    tables = {"noisy": Noisy, "branches": Branches, "mixes": Mixes}
    dataset = {"costly": Costly, "cropped": Cropped, "table": tables.get(kind, Table)}[family](kind)
    if kind == "split":
        dataset = split(dataset)
    elif kind == "batches":
        dataset = split(Batches(kind))
    other = Cropped("plain")
    collate = (
        (lambda rows: torch.utils.data.default_collate([row[0] for row in rows]))
        if kind == "object"
        else None
    )
    loader = DataLoader(
        dataset,
        batch_size=50 if family == "table" else 8,
        shuffle=True,
        num_workers=workers,
        collate_fn=collate,
    )
    net = torch.nn.Linear(3, 1)
    opt = torch.optim.SGD(net.parameters(), lr=0.01)
    for epoch in range(3):
        if kind in ("epochs", "inner"):
            dataset.epoch = epoch
        for i in range(24 if family == "cropped" else 0):
            other[i]  # a second dataset of that class, as for validation
        for batch in loader:
            x = batch if kind == "object" else batch[1].float() if family == "table" else batch[0]
            loss = net(x.flatten(1)[:, :3]).square().mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
        print(epoch, loss.item().hex(), x.stride(), flush=True)


main()
