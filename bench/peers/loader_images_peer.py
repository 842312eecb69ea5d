#!/usr/bin/env python3
"""Picture pairs through torch's DataLoader and Pillow: the peer of the benchmark loader_images.

Both pictures of a pair are decoded, cropped at the same random place and mirrored half of the time, and
batched as uint8 tensors. Its best settings: crop before the copy into numpy, persistent workers,
prefetching, one thread each. Prints {"rates": {"WORKERS": pairs per second}, "versions": {...}}.

"""

import argparse
import json
import os
import time

import numpy as np
import PIL
import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset, RandomSampler

SCALE = 4


def read_part(path, box, mirrored):
    with Image.open(path) as picture:
        part = picture.crop(box)
    if part.mode != "RGB":
        part = part.convert("RGB")
    if mirrored:
        part = part.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    return torch.from_numpy(np.array(part))


class Pairs(Dataset):
    def __init__(self, folder, crop):
        self.crop = crop
        self.files = []
        for name in sorted(os.listdir(os.path.join(folder, "high"))):
            paths = [os.path.join(folder, kind, name) for kind in ("low", "high")]
            with Image.open(paths[0]) as low:
                self.files.append((*paths, *low.size))

    def __len__(self):
        return len(self.files)

    def __getitem__(self, index):
        low, high, width, height = self.files[index]
        side = self.crop // SCALE
        draw = torch.randint(0, 1 << 30, (3,)).tolist()
        x, y = draw[0] % (width - side + 1), draw[1] % (height - side + 1)
        mirrored = draw[2] % 2 == 1
        return (
            read_part(low, (x, y, x + side, y + side), mirrored),
            read_part(high, tuple(SCALE * edge for edge in (x, y, x + side, y + side)), mirrored),
        )


def measure(dataset, workers, args):
    options = {"persistent_workers": True, "prefetch_factor": args.prefetch} if workers else {}
    endless = RandomSampler(dataset, replacement=True, num_samples=1 << 40)
    loader = DataLoader(dataset, batch_size=args.batch, sampler=endless, num_workers=workers, **options)
    batches = iter(loader)
    for _ in range(2 * max(1, workers)):  # warm-up: all workers are running
        next(batches)
    pairs = 0
    start = time.perf_counter()
    while time.perf_counter() - start < args.seconds:
        low, high = next(batches)
        pairs += len(high)
    rate = pairs / (time.perf_counter() - start)
    assert high.shape[1:] == (args.crop, args.crop, 3) and low.shape[1] == args.crop // SCALE
    return rate


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder")
    parser.add_argument("--crop", type=int, default=128)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--prefetch", type=int, default=4)
    parser.add_argument("--workers", type=int, nargs="+", default=[0, 1, 2, 4])
    args = parser.parse_args()
    torch.set_num_threads(1)
    dataset = Pairs(args.folder, args.crop)
    rates = {str(workers): measure(dataset, workers, args) for workers in args.workers}
    print(json.dumps({"rates": rates, "versions": {"torch": torch.__version__, "pillow": PIL.__version__}}))


if __name__ == "__main__":
    main()
