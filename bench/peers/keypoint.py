#!/usr/bin/env python3
"""The workload `keypoint` in Python PyTorch: the peer that the C++ engine is measured against.

Same model, same shards, same loss and the same validation as `unidle-train`; prints the same JSON fields.

  --mode naive   as the project's guide found it: a DataLoader with more workers than CPUs (--workers), NCHW,
                 fp32 although mixed precision was asked for, loss.item() in every step, per-tensor AdamW
  --mode tuned   what a careful Python user gets: rows of memory-mapped shards, channels-last, bf16, fused
                 AdamW, losses read rarely, validation at the end; --compile adds torch.compile

The shards are those that `unidle-train workloads/keypoint/naive.yaml --prepare` made.
"""

import copy
import glob
import os
import sys

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from torch.utils.data import DataLoader, Dataset

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import device
import training

CHANNELS, POINTS, STRIDE = 4, 2, 4
BLOCKS = (2, 2, 3, 1)
SIGMA, FAR_WEIGHT = 2.0, 0.01


class ConvNorm(nn.Module):
    def __init__(self, source, to, kernel, stride=1, relu=True):
        super().__init__()
        self.conv = nn.Conv2d(source, to, kernel, stride=stride, padding=kernel // 2, bias=False)
        self.norm = nn.BatchNorm2d(to)
        self.relu = relu

    def forward(self, x):
        y = self.norm(self.conv(x))
        return y.relu() if self.relu else y


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.first = ConvNorm(width, width, 3)
        self.second = ConvNorm(width, width, 3, relu=False)

    def forward(self, x):
        return (x + self.second(self.first(x))).relu()


class Model(nn.Module):
    """Four branches at 1/4 to 1/32 of the picture, fused once, and a feature pyramid."""

    def __init__(self, width=32):
        super().__init__()
        widths = [width << branch for branch in range(len(BLOCKS))]
        self.stem0 = ConvNorm(CHANNELS, width, 3, 2)
        self.stem1 = ConvNorm(width, width, 3, 2)
        for branch, (channels, blocks) in enumerate(zip(widths, BLOCKS, strict=True)):
            for block in range(blocks):
                setattr(self, f"branch{branch}_block{block}", Block(channels))
            if branch + 1 < len(widths):
                setattr(self, f"down{branch}", ConvNorm(channels, 2 * channels, 3, 2))
        for to, channels in enumerate(widths):
            for source in range(to + 1, len(widths)):
                setattr(self, f"fuse{to}_from{source}", ConvNorm(widths[source], channels, 1, relu=False))
            if to > 0:
                setattr(self, f"fuse{to}_from{to - 1}", ConvNorm(widths[to - 1], channels, 3, 2, relu=False))
        pyramid = 4 * width
        for branch, channels in enumerate(widths):
            setattr(self, f"lateral{branch}", nn.Conv2d(channels, pyramid, 1))
        self.smooth = ConvNorm(pyramid, pyramid, 3)
        self.heat_hidden = ConvNorm(pyramid, pyramid // 2, 3)
        self.heat = nn.Conv2d(pyramid // 2, POINTS, 1)
        self.offset_hidden = ConvNorm(pyramid, pyramid // 2, 3)
        self.offset = nn.Conv2d(pyramid // 2, 2 * POINTS, 1)

    def branches(self, picture):
        x = [self.stem1(self.stem0(picture))]
        for branch, blocks in enumerate(BLOCKS):
            if branch > 0:
                x.append(getattr(self, f"down{branch - 1}")(x[-1]))
            for block in range(blocks):
                x[-1] = getattr(self, f"branch{branch}_block{block}")(x[-1])
        return x

    def fuse(self, x):
        y = []
        for to, total in enumerate(x):
            like = total.shape[2:]
            if to > 0:
                total = total + getattr(self, f"fuse{to}_from{to - 1}")(x[to - 1])
            for source in range(to + 1, len(x)):
                total = total + F.interpolate(
                    getattr(self, f"fuse{to}_from{source}")(x[source]), size=like, mode="nearest"
                )
            y.append(total.relu())
        return y

    def forward(self, picture):
        x = self.fuse(self.branches(picture))
        top = self.lateral3(x[3])
        for branch in (2, 1, 0):
            top = getattr(self, f"lateral{branch}")(x[branch]) + F.interpolate(
                top, size=x[branch].shape[2:], mode="nearest"
            )
        features = self.smooth(top)
        offsets = self.offset(self.offset_hidden(features)).unflatten(1, (POINTS, 2))
        return self.heat(self.heat_hidden(features)), offsets


def heat_maps(points, height, width):
    cells = points / STRIDE - 0.5
    x = torch.arange(width, dtype=points.dtype, device=points.device) - cells[:, :, 0, None]
    y = torch.arange(height, dtype=points.dtype, device=points.device) - cells[:, :, 1, None]
    scale = -1 / (2 * SIGMA * SIGMA)
    return (y.square() * scale).exp()[..., None] * (x.square() * scale).exp()[:, :, None]


def at_cells(offsets, cells):
    index = cells[:, :, None, None].expand(-1, -1, 2, 1)
    return offsets.flatten(3).gather(3, index).squeeze(3)


def map_loss(heat, offsets, points, visible):
    height, width = heat.shape[2:]
    wanted = heat_maps(points, height, width)
    weight = wanted + FAR_WEIGHT
    error = ((heat.float() - wanted).square() * weight).sum((2, 3)) / weight.sum((2, 3))
    seen = visible.sum().clamp_min(1)
    cells = points / STRIDE - 0.5
    column = cells[:, :, 0].round().clamp(0, width - 1)
    row = cells[:, :, 1].round().clamp(0, height - 1)
    offset = at_cells(offsets.float(), (row * width + column).long())
    miss = F.smooth_l1_loss(offset, cells - torch.stack([column, row], 2), reduction="none").sum(2)
    return (error * visible).sum() / seen + (miss * visible).sum() / seen


def predicted_points(heat, offsets):
    width = heat.shape[3]
    cells = heat.flatten(2).argmax(2)
    place = torch.stack([cells % width, cells // width], 2).float()
    return (place + at_cells(offsets.float(), cells) + 0.5) * STRIDE


class Shards(Dataset):
    """Rows of image_0.npy, points_0.npy, visible_0.npy and so on, memory-mapped."""

    def __init__(self, folder):
        numbers = range(len(glob.glob(os.path.join(folder, "image_*.npy"))))
        self.shards = [
            tuple(
                np.load(os.path.join(folder, f"{name}_{number}.npy"), mmap_mode="r")
                for name in ("image", "points", "visible")
            )
            for number in numbers
        ]
        self.places = [(s, row) for s, shard in enumerate(self.shards) for row in range(len(shard[0]))]

    def __len__(self):
        return len(self.places)

    def __getitem__(self, index):
        shard, row = self.places[index]
        return tuple(torch.from_numpy(np.array(array[row])) for array in self.shards[shard])


def to_input(pictures, memory_format):
    """u8 NHWC -> float NCHW in [0, 1]; the bytes are already in channels-last order."""
    return pictures.permute(0, 3, 1, 2).to(torch.float32).div_(255).contiguous(memory_format=memory_format)


def averaging(model, args):
    """Returns (the model with averaged weights, the function that updates it after a step)."""
    if not args.ema:
        return None, lambda: None
    if device.tuned_on_gpu(args):
        averaged = copy.deepcopy(model)
        return averaged, device.Average(model, averaged, args.ema).update
    averaged = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(args.ema))
    return averaged, lambda: averaged.update_parameters(model)


def make_task(args):
    tuned = args.mode == "tuned"
    layout = torch.channels_last if tuned else torch.contiguous_format
    model = Model(args.width).to(args.device, memory_format=layout)
    averaged, average = averaging(model, args)
    dataset = Shards(os.path.join(args.data, "train"))
    loader = device.shuffled(dataset, args)
    held_out = DataLoader(
        Shards(os.path.join(args.data, "validation")), batch_size=16 if tuned else args.batch
    )

    def validate():
        told_by = averaged or model
        told_by.eval()
        total = seen = 0.0
        for batch in held_out:
            image, points, visible = (each.to(args.device) for each in batch)
            with device.autocast(args):
                told = predicted_points(*told_by(to_input(image, layout)))
            total += ((told - points).square().sum(2).sqrt() * visible).sum().item()
            seen += visible.sum().item()
        return {"distance_px": total / seen}

    return training.Task(
        model=model,
        batches=device.moved(training.again_and_again(loader), args),
        loss=lambda image, points, visible: map_loss(*model(to_input(image, layout)), points, visible),
        validate=validate,
        samples_per_epoch=len(dataset),
        after_step=average,
        effective={"model.width": args.width, "layout.channels_last": tuned, "ema.decay": args.ema},
    )


def options():
    """The command line."""
    parser = training.parser("keypoint", __doc__, batch=8, lr=0.001, samples=64, warmup_samples=8)
    parser.add_argument("--width", type=int, default=32)
    parser.add_argument("--ema", type=float, default=0.9)
    return parser


if __name__ == "__main__":
    training.main("keypoint", options(), make_task)
