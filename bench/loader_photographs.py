#!/usr/bin/env python3
"""JPEG photographs of 500 x 375 to normalised random crops of 224: unidle's Loader and torch's DataLoader.

The peer decodes with Pillow, crops and resizes in one call, mirrors and batches uint8, and normalises
whole batches in its workers: the fastest form for the same pixels. Both are measured at each number of
workers, alternately, and the best of each are compared. The ceiling is the number of CPUs times the rate
of one thread without workers.

When SPDL is installed (spdl_core), its threads do the same with Pillow; with FFmpeg too (spdl_io and
FFmpeg's libraries), FFmpeg decodes, crops, mirrors and resizes (bilinear).

"""

import argparse
import json
import os
import platform
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "build" / "share" / "unidle" / "python"))

import numpy as np
import PIL
import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset, RandomSampler

from unidle.data import Loader, images

PHOTOS = (
    "astronaut.png",
    "chelsea.png",
    "coffee.png",
    "hubble_deep_field.jpg",
    "ihc.png",
    "motorcycle_left.png",
)
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def make_photographs(folder, count):
    """Creates parts of scikit-image's photographs with the size and quality of most ImageNet pictures."""
    import skimage

    source = Path(skimage.__file__).parent / "data"
    photos = [Image.open(source / name).convert("RGB") for name in PHOTOS if (source / name).exists()]
    rng = np.random.default_rng(0)
    for number in range(count):
        photo = photos[number % len(photos)]
        width, height = (500, 375) if number % 4 else (375, 500)
        scale = rng.uniform(1.0, 1.0 + min(photo.width / width, photo.height / height, 2.0) / 4)
        w, h = min(photo.width, int(width * scale)), min(photo.height, int(height * scale))
        left, top = rng.integers(0, photo.width - w + 1), rng.integers(0, photo.height - h + 1)
        part = photo.resize((width, height), Image.Resampling.BICUBIC, box=(left, top, left + w, top + h))
        kind = folder / f"class{number % 10}"
        kind.mkdir(exist_ok=True)
        part.save(kind / f"{number:05}.jpg", quality=90)


class Photographs(Dataset):
    def __init__(self, folder, size=224):
        self.size = size
        classes = sorted(path for path in folder.iterdir() if path.is_dir())
        self.files = [
            (str(file), label) for label, one in enumerate(classes) for file in sorted(one.iterdir())
        ]

    def __len__(self):
        return len(self.files)

    @staticmethod
    def part(width, height):
        for _ in range(10):
            draw = torch.rand(4)
            target = width * height * (0.08 + 0.92 * draw[0].item())
            ratio = np.exp(np.log(3 / 4) + draw[1].item() * 2 * np.log(4 / 3))
            w, h = round((target * ratio) ** 0.5), round((target / ratio) ** 0.5)
            if 0 < w <= width and 0 < h <= height:
                left, top = int(draw[2] * (width - w + 1)), int(draw[3] * (height - h + 1))
                return left, top, left + w, top + h
        return 0, 0, width, height

    def __getitem__(self, index):
        file, label = self.files[index]
        with Image.open(file) as picture:
            picture = picture.convert("RGB")
        picture = picture.resize(
            (self.size, self.size), Image.Resampling.BILINEAR, box=self.part(*picture.size)
        )
        if torch.rand(1).item() < 0.5:
            picture = picture.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
        return torch.from_numpy(np.array(picture)), label


def collate(samples):
    pixels = torch.stack([pixels for pixels, _ in samples]).permute(0, 3, 1, 2).float().div_(255)
    pixels.sub_(torch.tensor(MEAN).view(3, 1, 1)).div_(torch.tensor(STD).view(3, 1, 1))
    return pixels.contiguous(), torch.tensor([label for _, label in samples])


def rate(batches, seconds, warm):
    for _ in range(warm):
        next(batches)
    samples, start = 0, time.perf_counter()
    while time.perf_counter() - start < seconds:
        samples += len(next(batches)[0])
    return samples / (time.perf_counter() - start)


def endless(loader):
    while True:
        yield from loader


def measure_ours(folder, workers, args, scaled=False):
    with Loader(images(folder, scaled_decode=scaled), args.batch, workers=workers) as loader:
        return rate(endless(loader), args.seconds, 2 * max(1, workers))


def measure_peer(folder, workers, args):
    data = Photographs(folder)
    sampler = RandomSampler(data, replacement=True, num_samples=1 << 40)
    options = {"persistent_workers": True, "prefetch_factor": 4} if workers else {}
    loader = DataLoader(data, args.batch, sampler=sampler, num_workers=workers, collate_fn=collate, **options)
    return rate(iter(loader), args.seconds, 2 * max(1, workers))


def spdl_ways():
    """Returns the functions with which SPDL makes a sample of Photographs, by name."""
    try:
        import spdl.pipeline  # noqa: F401
    except ImportError:
        return {}
    ways = {"SPDL and Pillow": Photographs.__getitem__}
    try:
        import spdl.io

        spdl.io.demux_config()  # loads FFmpeg
    except (ImportError, RuntimeError):
        return ways

    def by_ffmpeg(data, index):
        file, label = data.files[index]
        left, top, right, bottom = data.part(*data.sizes[index])
        steps = [f"crop={right - left}:{bottom - top}:{left}:{top}:exact=1"]
        steps += ["hflip"] if torch.rand(1).item() < 0.5 else []
        steps += [f"scale={data.size}:{data.size}:flags=bilinear", "format=pix_fmts=rgb24"]
        return spdl.io.to_torch(spdl.io.load_image(file, filter_desc=",".join(steps))), label

    return {**ways, "SPDL and FFmpeg": by_ffmpeg}


def measure_spdl(folder, way, workers, args):
    from spdl.pipeline import PipelineBuilder

    data = Photographs(folder)
    if way is not Photographs.__getitem__:
        data.sizes = [Image.open(file).size for file, _ in data.files]
    pipeline = (
        PipelineBuilder()
        .add_source(iter(RandomSampler(data, replacement=True, num_samples=1 << 40)))
        .pipe(lambda index: way(data, index), concurrency=workers)
        .aggregate(args.batch)
        .pipe(collate)
        .add_sink(4)
        .build(num_threads=workers + 1)
    )
    with pipeline.auto_stop():
        return rate(iter(pipeline), args.seconds, 2 * workers)


def first_batch_ms(folder, args):
    start = time.perf_counter()
    with Loader(images(folder), args.batch) as loader:
        next(iter(loader))
        return (time.perf_counter() - start) * 1e3


def spread(values):
    return f"{median(values):9.0f}   ({min(values):.0f} .. {max(values):.0f})"


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", nargs="?", help="folders by class; made of photographs when not given")
    parser.add_argument("--count", type=int, default=400, help="photographs to make")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=3.0, help="of one measurement")
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    torch.set_num_threads(1)
    cpus = len(os.sched_getaffinity(0))
    ours, peers, spdl, first = {}, {}, {}, []
    with tempfile.TemporaryDirectory() as made:
        folder = Path(args.folder or made)
        if not args.folder:
            make_photographs(folder, args.count)
        for _ in range(args.repetitions):
            for workers in sorted({0, 1, cpus, 2 * cpus}):
                ours.setdefault(workers, []).append(measure_ours(folder, workers, args))
                peers.setdefault(workers, []).append(measure_peer(folder, workers, args))
                for name, way in spdl_ways().items() if workers else ():
                    found = spdl.setdefault(f"{name}, {workers} threads", [])
                    found.append(measure_spdl(folder, way, workers, args))
            first.append(first_batch_ms(folder, args))
    best = max(ours, key=lambda workers: median(ours[workers]))
    best_peer = max(peers, key=lambda workers: median(peers[workers]))
    ceiling = cpus * median(ours[0])
    result = {
        "name": "loader_photographs",
        "unit": "samples/s",
        "ours": median(ours[best]),
        "ours_range": [min(ours[best]), max(ours[best])],
        "ours_workers": best,
        "peers": {
            **{f"DataLoader and Pillow, {n} workers": median(rates) for n, rates in peers.items()},
            **{name: median(rates) for name, rates in spdl.items()},
        },
        "ratio": median(ours[best]) / median(peers[best_peer]),
        "ratio_to_spdl": median(ours[best]) / max(map(median, spdl.values())) if spdl else None,
        "share_of_ceiling": median(ours[best]) / ceiling,
        "first_batch_ms": median(first),
        "machine": f"{platform.machine()}, {cpus} CPUs, load {os.getloadavg()[0]:.1f}",
        "versions": {"torch": torch.__version__, "pillow": PIL.__version__},
    }
    if args.json:
        print(json.dumps(result, indent=2))
        return
    print(f"photographs to normalised crops, a second; median (range) of {args.repetitions}")
    for name, rates in (("unidle", ours), ("DataLoader", peers)):
        for workers, values in rates.items():
            print(f"  {name:<10} {workers} workers {spread(values)}")
    for name, values in spdl.items():
        print(f"  {name:<28} {spread(values)}")
    if spdl:
        print(f"  ratio to the best of SPDL: {result['ratio_to_spdl']:.2f}")
    print(f"  ratio of the best: {result['ratio']:.2f}; of {cpus} x one: {result['share_of_ceiling']:.2f}")
    print(f"  first batch after {result['first_batch_ms']:.0f} ms; {result['machine']}")


if __name__ == "__main__":
    main()
