"""Sums the gradients of several batches into each step. `python accumulates.py HOW SIZE COUNT [SAMPLES]`

Prints each step's parameters to the bit, so that two runs can be compared.
"""

import sys

import torch
from torch.utils.data import BatchSampler, DataLoader, RandomSampler, TensorDataset

how, GIVEN_SIZE, GIVEN = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
SIZE, COUNT, TOP = GIVEN_SIZE, GIVEN, GIVEN
SAMPLES = int(sys.argv[4]) if len(sys.argv) > 4 else 192

torch.manual_seed(0)
data = TensorDataset(torch.randn(SAMPLES, 4), torch.randn(SAMPLES, 1))
model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
criterion = torch.nn.functional.mse_loss


def made(size=None):
    return DataLoader(data, batch_size=size or SIZE, shuffle=True)


def tell():
    optimizer.zero_grad()
    print(model[2].bias.item().hex())


def validate():
    with torch.no_grad():
        print("validation", len([None for x, y in validation if model(x) is not None]))


def of_module(loader):
    for i, (x, y) in enumerate(loader):
        loss = criterion(model(x), y) / COUNT
        loss.backward()
        if (i + 1) % COUNT == 0:
            optimizer.step()
            tell()


def of_argument(loader, count):
    for i, (x, y) in enumerate(loader):
        loss = criterion(model(x), y) / count
        loss.backward()
        if (i + 1) % count == 0:
            optimizer.step()
            tell()


def of_local():
    count = int(sys.argv[3])
    loader = made()
    for epoch in range(4):
        for i, (x, y) in enumerate(loader):
            loss = criterion(model(x), y) / count
            loss.backward()
            if (i + 1) % count == 0:
                optimizer.step()
                tell()
        validate()


def of_cell():
    count = int(sys.argv[3])

    def counted():
        return count

    for epoch in range(4):
        loader = made()
        for i, (x, y) in enumerate(loader):
            loss = criterion(model(x), y) / count
            loss.backward()
            if (i + 1) % count == 0:
                optimizer.step()
                tell()
    assert counted() == count


def of_outer(count):
    def train(loader):
        for i, (x, y) in enumerate(loader):
            loss = criterion(model(x), y) / count
            loss.backward()
            if (i + 1) % count == 0:
                optimizer.step()
                tell()

    train(made())


def of_zeroed(loader, count):
    optimizer.zero_grad()
    for i, (x, y) in enumerate(loader):
        loss = criterion(model(x), y) / count
        loss.backward()
        if (i + 1) % count == 0:
            optimizer.step()
            tell()


def of_flushed(feed, count):
    for i, (x, y) in enumerate(feed):
        loss = criterion(model(x), y) / count
        loss.backward()
        if (i + 1) % count == 0 or i + 1 == len(feed):
            optimizer.step()
            tell()


class Trainer:
    def __init__(self, batches):
        self.accumulated = batches

    def of_attribute(self, feed):
        for i, (x, y) in enumerate(feed):
            loss = criterion(model(x), y) / self.accumulated
            loss.backward()
            if (i + 1) % self.accumulated == 0:
                optimizer.step()
                tell()


validation = made(5)
if how == "module":
    loader = made()
    for epoch in range(4):
        of_module(loader)
        validate()
elif how == "top":
    for epoch in range(4):
        loader = made()
        for i, (x, y) in enumerate(loader):
            loss = criterion(model(x), y) / TOP
            loss.backward()
            if (i + 1) % TOP == 0:
                optimizer.step()
                tell()
        validate()
elif how == "argument":
    for loader in (made(), made(), made()):
        of_argument(loader, GIVEN)
elif how == "zeroed":
    loader = made()
    for epoch in range(4):
        of_zeroed(loader, GIVEN)
elif how == "local":
    of_local()
elif how == "cell":
    of_cell()
elif how == "outer":
    of_outer(GIVEN)
elif how == "flushed":
    feed = made()
    for epoch in range(4):
        of_flushed(feed, GIVEN)
elif how == "attribute":
    Trainer(GIVEN).of_attribute(made())
elif how == "kept":
    loader = DataLoader(data, batch_size=GIVEN_SIZE, shuffle=True, num_workers=1, persistent_workers=True)
    for epoch in range(4):
        of_zeroed(loader, GIVEN)
elif how == "two":
    of_argument(made(), GIVEN)
    of_argument(made(), 1)
    of_argument(made(GIVEN_SIZE * 4), GIVEN)
elif how == "shared":
    loader = made()
    for epoch in range(3):
        for x, y in loader:
            print("seen", len(x))
        of_module(loader)
elif how == "grows":
    for epoch in range(4):
        of_argument(made(GIVEN_SIZE if epoch < 2 else GIVEN_SIZE * 3), GIVEN)
elif how == "grows_module":
    for epoch in range(4):
        of_module(made(GIVEN_SIZE if epoch < 2 else GIVEN_SIZE * 3))
elif how == "sampler":
    of_module(DataLoader(data, batch_sampler=BatchSampler(RandomSampler(data), GIVEN_SIZE, False)))
