"""A sample costs milliseconds of NumPy, and there are no workers."""

import numpy as np
import torch
from common import say, step, steps, tiny
from torch.utils.data import DataLoader, Dataset


class Slow(Dataset):
    def __len__(self):
        return 8 * len(steps(200))

    def __getitem__(self, i):
        rng = np.random.default_rng(i)
        x = rng.standard_normal((192, 192), dtype=np.float32)
        for _ in range(3):
            x = np.tanh(x @ x.T / 32)
        return torch.from_numpy(np.resize(x[0], 256))


def train():
    model = tiny()
    optimizer = torch.optim.AdamW(model.parameters())
    for x in DataLoader(Slow(), 8):
        loss = step(model, optimizer, x.cuda())
    return loss


if __name__ == "__main__":
    say(train())
