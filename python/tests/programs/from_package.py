"""Trains on batches of unidle.data.Loader: from_package.py FOLDER_OF_THE_PACKAGE KIND WORKERS EPOCHS. The
kinds: pictures that cost more than the step, a step that costs more than its rows, and an own data set."""

import hashlib
import os
import sys
import tempfile

sys.path.insert(0, sys.argv[1])
import numpy
import torch
from torch import nn

from unidle import data


class Hashed:
    """Each sample uses the processor for a while."""

    def __len__(self):
        return 64

    def __getitem__(self, index):
        digest = hashlib.pbkdf2_hmac("sha256", b"%d" % index, b"", 2000, 64)
        return numpy.frombuffer(digest, numpy.uint8)[:4] / numpy.float32(256), numpy.float32([index % 2])


def pictures(folder):
    from PIL import Image

    random = numpy.random.default_rng(0)
    for name in ("cats", "dogs"):
        os.mkdir(os.path.join(folder, name))
        for number in range(16):
            blocks = random.integers(0, 255, (60, 60, 3), dtype=numpy.uint8)
            large = numpy.kron(blocks, numpy.ones((10, 10, 1), numpy.uint8))
            Image.fromarray(large).save(os.path.join(folder, name, "%d.jpg" % number))
    return data.images(folder, size=32)


def rows():
    random = numpy.random.default_rng(0)
    x = random.random((256, 4), dtype=numpy.float32)
    return data.arrays(x, x[:, :1].copy())


def main(kind, workers, epochs):
    torch.manual_seed(0)
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        source = {
            "pictures": lambda: pictures(folder),
            "rows": rows,
            "wrapped": lambda: data.wrap(Hashed()),
        }[kind]()
        loader = data.Loader(source, batch_size=8, workers=workers)
        width, hidden = (3 * 32 * 32, 1) if kind == "pictures" else (4, 4000 if kind == "rows" else 1)
        net = nn.Sequential(
            nn.Flatten(), nn.Linear(width, hidden), nn.Linear(hidden, hidden), nn.Linear(hidden, 1)
        )
        optimizer = torch.optim.SGD(net.parameters(), lr=1e-4)
        for epoch in range(epochs):
            for x, y in loader:
                loss = nn.functional.mse_loss(net(x).flatten(), y.flatten().float())
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            print(epoch, loss.item().hex(), type(x).__name__, len(x))
        loader.close()
        print(loader.state_dict())


main(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
