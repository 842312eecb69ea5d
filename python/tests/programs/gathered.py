"""Trains on rows in memory; prints all losses to the last bit, and what the dataset was asked. Each kind is a
program for which taking a batch of rows at once could go wrong. See test_gathered.py."""

import contextlib
import sys
import warnings

import numpy as np
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.data import ConcatDataset, DataLoader, Dataset, Subset, TensorDataset, random_split

ROWS, BATCH = 256, 16


class Table(Dataset):
    def __init__(self):
        rng = np.random.default_rng(0)
        self.x, self.t = rng.random((ROWS, 3), dtype=np.float32), torch.from_numpy(rng.random((ROWS, 3)))
        self.y, self.whole = rng.random(ROWS), rng.integers(0, 9, ROWS)
        self.y[: 8 * BATCH] += 1  # the rows of the first batches are alike
        self.y[8 * BATCH :: 2] += 1
        self.transform = None

    def __len__(self):
        return ROWS

    def __getitem__(self, i):
        x, y = self.x[i], self.y[i]
        if self.transform is not None:
            x = self.transform(x)
        return x, y


class Twice(Table):
    def __getitem__(self, i):
        x = self.t[i]
        return x, x


class View(Table):
    def __getitem__(self, i):
        return torch.as_tensor(self.x[i]), self.x[i, :2], self.t[i], self.t[i].double()


class Branch(Table):
    def __getitem__(self, i):
        return (self.x[i], self.y[i]) if self.y[i] > 1 else (-self.x[i], self.y[i])


class Late(Table):
    def __getitem__(self, i):
        return self.x[i] if self.y[i].min() > 1 else -self.x[i], self.y[i]


class Clipped(Table):
    def __getitem__(self, i):
        return self.x[i], min(self.y[i], 1.5)


class Kinds(Table):
    """Depends on what it is asked with."""

    def __getitem__(self, i):
        seen.add(type(i).__name__)
        return self.x[i] * (2 if torch.is_tensor(i) else 1), self.y[i]


class Tensor(Table):
    def __getitem__(self, i):
        if torch.is_tensor(i):
            return -self.x[i], self.y[i]
        return self.x[i], self.y[i]


class Draws(Table):
    def __getitem__(self, i):
        return self.x[i] + np.random.rand(), self.y[i] + torch.rand(())


class Together(Table):
    def __getitems__(self, indices):
        seen.add("together %s" % type(indices).__name__)
        return [(self.x[i] + 1, self.y[i]) for i in indices]


class Named(Table):
    def __getitem__(self, i):
        item = {key: value[i] for key, value in self.named.items()}
        item["y"] = torch.tensor(self.y[i], dtype=torch.float)
        return item


class Rounded(Table):
    def __getitem__(self, i):
        return self.x[i], torch.tensor(self.whole[i], dtype=torch.float32)


class Warns(Table):
    """One row late in an epoch has no number."""

    def __getitem__(self, i):
        return self.x[i], self.y[i].astype(np.int64)


class Inherited(TensorDataset):
    pass


class Odd:
    """A sampler of batches: the first ones are usual."""

    def __init__(self, batches):
        self.batches = [list(range(8)), list(range(8, 16)), list(range(16, 24)), *batches]

    def __iter__(self):
        return iter(self.batches)

    def __len__(self):
        return len(self.batches)


def odd(kind):
    return {
        "negative": [[-1, -2, 3], [np.int64(5), np.int32(-7), 2], (3, 4), range(5), np.arange(4)],
        "bools": [[True, True, True], [np.bool_(True), np.bool_(True)], [True, True]],
        "tensors": [list(torch.arange(5)), torch.arange(6), [torch.tensor(3), 4]],
        "repeated": [[3, 3, 3], [2], [5, 5], [np.uint8(7), np.uint8(9)]],
    }[kind]


def made(kind):
    kinds = {"twice": Twice, "view": View, "branch": Branch, "clipped": Clipped, "kinds": Kinds}
    kinds.update(together=Together, named=Named, rounded=Rounded, tensors=Tensor)
    kinds.update(inference=View, draws=Draws, late=Late, warns=Warns)
    data = kinds.get(kind.split("-")[0], Table)()
    if kind == "rounded":
        data.whole[:] = 2**60 + 2**36 + 1  # rounded twice, it is another number
    if kind == "warns":
        data.y[200:204] = np.nan
    if kind == "named":
        data.named = {"x": data.x, "t": data.t}
    if kind == "split" or kind.endswith("-split"):
        data = random_split(data, [200, 56])[0]
    elif kind in ("plain-array", "kinds-array"):
        data = Subset(data, np.random.permutation(ROWS)[:200])
    elif kind.endswith("-tensor"):
        data = Subset(data, torch.randperm(ROWS)[:200])
    elif kind == "joined":
        data = ConcatDataset([Table(), Table()])
    elif kind == "inherited":
        data = Inherited(data.t, torch.from_numpy(data.y))
    return data


def changed(data, step, kind):
    """What the program does to its data set while it trains."""
    if step == 5:
        if kind == "change-array":
            data.x = data.x * 2
        elif kind == "change-class":
            data.__class__ = Branch
        elif kind == "change-together":
            Table.__getitems__ = Together.__getitems__
        elif kind == "change-function":
            data.transform = lambda x: x if x.sum() > 1.5 else -x
    if kind == "change-values":
        data.x[:] += step


class Counts(TorchDispatchMode):
    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        seen.add(str(function))
        return function(*args, **(kwargs or {}))


def numbers(batch):
    parts = list(batch.values()) if isinstance(batch, dict) else batch
    return parts, [part.float().reshape(len(part), -1).mean(1, keepdim=True) for part in parts]


def main():
    kind, workers = sys.argv[1], int(sys.argv[2])
    warnings.simplefilter("always")
    torch.manual_seed(0)
    np.random.seed(0)
    data = made(kind)
    if kind == "device":
        torch.set_default_device("cpu")
    options = dict(batch_size=BATCH, shuffle=kind not in ("branch", "clipped", "late", "warns"))
    if "odd" in kind:
        options = dict(batch_sampler=Odd(odd(kind.replace("odd", "").strip("-"))))
    if kind == "inference":
        with torch.inference_mode():
            data.t = data.t * 2
    loader = DataLoader(data, num_workers=workers, generator=torch.Generator(), **options)
    net = torch.nn.Linear(1, 1)
    opt = torch.optim.SGD(net.parameters(), lr=0.01)
    modes = contextlib.ExitStack()
    for epoch in range(2):
        for step, batch in enumerate(loader):
            if kind == "mode" and step == 5:
                modes.enter_context(Counts())
            parts, columns = numbers(batch)
            loss = sum((net(column) ** 2).mean() for column in columns)
            opt.zero_grad()
            loss.backward()
            opt.step()
            for part in parts[:1]:  # as programs do that normalise in place
                part.mul_(2)
            sums = [(part.double().sum().item().hex(), part.data_ptr() % 64) for part in parts]
            print(loss.item().hex(), sums, parts[0].stride())
            changed(data, step, kind)
        modes.close()
    print(sorted(seen), torch.rand(()).item().hex(), np.random.rand().hex())


seen = set()
main()
