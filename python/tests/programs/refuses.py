"""Trains on tensors, data sets, models and exceptions that reject unusual queries. Any warning is an error,
also one from an attribute that only an observer would read."""

import warnings

import torch
from torch.utils.data import DataLoader, Dataset

warnings.filterwarnings("ignore", message="The PyTorch API of nested tensors")
done = 0


class Rows(Dataset):
    def __init__(self):
        self.columns = {"x": torch.ones(48, 8)}

    def __getattr__(self, name):
        if name.startswith("__") or name == "columns":
            raise AttributeError(name)
        return self.columns[name]  # a KeyError

    def __len__(self):
        return 48

    def __getitem__(self, index):
        return self.x[index]


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(8, 2)

    def __getattr__(self, name):
        try:
            return super().__getattr__(name)
        except AttributeError:
            warnings.warn("asked for " + name, FutureWarning, stacklevel=2)
            raise

    def forward(self, x):
        return self.layer(torch.cat(list(x.unbind())) if x.is_nested else x)


class Wordless(Exception):
    def __str__(self):
        raise ValueError("no words")


class Fails(torch.nn.Module):
    def forward(self, x):
        raise Wordless


def with_mask(rows):
    return {"x": torch.stack(rows), "lengths": torch.zeros(0, dtype=torch.long), "attention_mask": None}


model = Model()
optimizer = torch.optim.SGD(model.parameters(), 1e-3)


def step(batch, gradient=None):
    global done
    optimizer.zero_grad()
    loss = model(batch).sum()
    (loss if gradient is None else loss.to(gradient.dtype)).backward(gradient)
    optimizer.step()
    done += 1


warnings.filterwarnings("error", category=FutureWarning)
for batch in DataLoader(Rows(), 4, collate_fn=with_mask):
    step(batch["x"])
try:
    Fails()(torch.ones(1, 8))
except Wordless:
    pass
for _ in range(12):
    step(torch.ones(4, 8), torch.ones((), dtype=torch.complex64))
for _ in range(12):
    step(torch.nested.nested_tensor([torch.ones(2, 8), torch.ones(3, 8)]))
print("steps", done)
