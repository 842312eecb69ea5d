#!/usr/bin/env python3
"""The workload `superres` in Python PyTorch: the peer that the C++ engine is measured against.

Same model, same pictures, same loss and the same validation as `unidle-train`; prints the same JSON fields.

  --mode naive   as the project's guide found it: no loader workers, both pictures decoded with Pillow for
                 every sample, NCHW, fp32, per-tensor AdamW, loss.item() in every step, full validation
                 after every epoch
  --mode tuned   what a careful Python user gets: pictures decoded once and kept, channels-last, fused AdamW,
                 loss read rarely, validation at the end; --compile adds torch.compile, --workers loader
                 processes; on a GPU also what device.py and training.py beside this file do

The pictures are those that `unidle-train workloads/superres/naive.yaml --prepare` made.
"""

import argparse
import json
import os
import sys
import time

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from PIL import Image
from torch.utils.data import DataLoader, Dataset

SCALE = 4


class Block(nn.Module):
    """ConvNeXt block: depth-wise 7x7, LayerNorm over channels, MLP x4, one learned scale, residual."""

    def __init__(self, width):
        super().__init__()
        self.depthwise = nn.Conv2d(width, width, 7, padding=3, groups=width)
        self.norm = nn.LayerNorm(width)
        self.expand = nn.Linear(width, 4 * width)
        self.project = nn.Linear(4 * width, width)
        self.gamma = nn.Parameter(torch.ones(1))

    def forward(self, x):
        y = self.depthwise(x).permute(0, 2, 3, 1)
        y = self.project(F.gelu(self.expand(self.norm(y))))
        return x + (self.gamma * y).permute(0, 3, 1, 2)


class Net(nn.Module):
    def __init__(self, width=32, depth=4):
        super().__init__()
        self.head_depthwise = nn.Conv2d(3, 3, 3, padding=1, groups=3)
        self.head_pointwise = nn.Conv2d(3, width, 1)
        self.head_norm = nn.BatchNorm2d(width)
        self.blocks = nn.ModuleList([Block(width) for _ in range(depth)])
        self.up1 = nn.Conv2d(width, 4 * (width // 2), 3, padding=1)
        self.up2 = nn.Conv2d(width // 2, 12, 3, padding=1)

    def forward(self, x):
        x = F.relu(self.head_norm(self.head_pointwise(self.head_depthwise(x))))
        for block in self.blocks:
            x = block(x)
        x = F.pixel_shuffle(self.up1(x), 2)
        return F.pixel_shuffle(self.up2(x), 2)


def read_picture(path):
    return np.asarray(Image.open(path).convert("RGB"))


class Pairs(Dataset):
    """One random crop of a pair, mirrored half of the time; decoded for every sample, or once with `keep`."""

    def __init__(self, folder, size, seed, keep):
        self.folder, self.size, self.seed, self.keep = folder, size, seed, keep
        self.names = sorted(os.listdir(os.path.join(folder, "high")))
        self.kept = [self.decode(name) for name in self.names] if keep else None
        self.drawn = 0

    def decode(self, name):
        return tuple(read_picture(os.path.join(self.folder, kind, name)) for kind in ("low", "high"))

    def __len__(self):
        return len(self.names)

    def __getitem__(self, index):
        low, high = self.kept[index] if self.keep else self.decode(self.names[index])
        patch = self.size // SCALE
        rng = np.random.default_rng((self.seed, self.drawn, index))
        self.drawn += 1
        y = int(rng.integers(low.shape[0] - patch + 1))
        x = int(rng.integers(low.shape[1] - patch + 1))
        low = low[y : y + patch, x : x + patch]
        high = high[y * SCALE : y * SCALE + self.size, x * SCALE : x * SCALE + self.size]
        if rng.integers(2):
            low, high = low[:, ::-1], high[:, ::-1]
        return torch.from_numpy(low.copy()), torch.from_numpy(high.copy())


def to_input(pictures, memory_format):
    """u8 NHWC -> float NCHW in [0, 1]; the bytes are already in channels-last order."""
    return pictures.permute(0, 3, 1, 2).to(torch.float32).div_(255).contiguous(memory_format=memory_format)


def luma(x):
    return (65.481 * x[:, 0] + 128.553 * x[:, 1] + 24.966 * x[:, 2] + 16) / 255


def validate(model, folder, memory_format, kept):
    names = sorted(os.listdir(os.path.join(folder, "high")))
    psnr = []
    model.eval()
    with torch.no_grad():
        for name in names:
            if kept is not None and name in kept:
                low, high = kept[name]
            else:
                low, high = (read_picture(os.path.join(folder, kind, name)) for kind in ("low", "high"))
                if kept is not None:
                    kept[name] = (low, high)
            device = next(model.parameters()).device
            low, high = (
                to_input(torch.from_numpy(p.copy())[None].to(device), memory_format) for p in (low, high)
            )
            error = (luma(model(low).clamp(0, 1)) - luma(high)).square().mean().item()
            psnr.append(-10 * np.log10(max(error, 1e-12)))
    model.train()
    return float(np.mean(psnr))


def make_optimizer(model, fused, lr, weight_decay=0.01):
    if fused:
        return torch.optim.AdamW(model.parameters(), lr=lr, weight_decay=weight_decay, fused=True)
    return torch.optim.AdamW(model.parameters(), lr=lr, weight_decay=weight_decay, foreach=False)


def batches(loader):
    while True:
        yield from loader


def train_on_gpu(args):
    """Trains as a careful GPU user does, with the loop that the other workloads' programs share."""
    import device
    import training

    torch.manual_seed(args.seed)
    device.allow_fast_kernels(args)
    model = Net(args.width, args.depth).to(args.device, memory_format=torch.channels_last)
    pairs = Pairs(os.path.join(args.data, "train"), args.size, args.seed, keep=True)
    loader = device.shuffled(pairs, args)
    held_out, kept = os.path.join(args.data, "validation"), {}

    def loss_of(low, high):
        told = model(to_input(low, torch.channels_last))
        return F.mse_loss(told.float(), to_input(high, torch.channels_last))

    task = training.Task(
        model=model,
        batches=device.moved(training.again_and_again(loader), args),
        loss=loss_of,
        validate=lambda: {"psnr": validate(model, held_out, torch.channels_last, kept)},
        samples_per_epoch=len(pairs),
        effective={"layout.channels_last": True},
    )
    return training.run("superres", task, args)


def train(args):
    torch.manual_seed(args.seed)
    if args.threads:
        torch.set_num_threads(args.threads)
    tuned = args.mode == "tuned"
    memory_format = torch.channels_last if tuned else torch.contiguous_format
    model = Net(args.width, args.depth).to(args.device, memory_format=memory_format)
    if args.weights:
        import training  # in this folder of the project; the file also runs on its own

        training.load_weights(model, args.weights)
    if args.sgd:
        optimizer = torch.optim.SGD(model.parameters(), lr=args.lr)
    else:
        optimizer = make_optimizer(model, tuned, args.lr)
    forward = torch.compile(model, mode=args.compile) if args.compile else model
    pairs = Pairs(os.path.join(args.data, "train"), args.size, args.seed, keep=tuned)
    loader = DataLoader(
        pairs,
        batch_size=args.batch,
        shuffle=True,
        num_workers=args.workers,
        drop_last=True,
        persistent_workers=args.workers > 0,
        generator=torch.Generator().manual_seed(args.seed),
    )
    kept = {} if tuned else None
    steps = args.samples // args.batch
    warm = min(steps - 1, args.warmup_samples // args.batch)
    losses, pending, aside = [], [], 0.0
    start = warm_at = time.perf_counter()
    for step, (low, high) in enumerate(batches(loader), 1):
        loss = F.mse_loss(
            forward(to_input(low.to(args.device), memory_format)),
            to_input(high.to(args.device), memory_format),
        )
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if tuned:
            pending.append(loss.detach())
            if len(pending) == 50:
                losses += torch.stack(pending).tolist()
                pending.clear()
        else:
            losses.append(loss.item())
        if step == warm:
            warm_at, aside = time.perf_counter(), 0.0
        if not tuned and step % len(loader) == 0 and step < steps:
            before = time.perf_counter()
            validate(model, os.path.join(args.data, "validation"), memory_format, kept)
            aside += time.perf_counter() - before
        if step == steps:
            break
    losses += [float(loss) for loss in pending]
    loop_end = time.perf_counter()
    psnr = validate(model, os.path.join(args.data, "validation"), memory_format, kept)
    end = time.perf_counter()
    counted = (steps - warm) * args.batch
    return {
        "workload": "superres",
        "device": args.device,
        "config": f"python-{args.mode}" + ("-compile" if args.compile else ""),
        "samples_per_s": counted / (loop_end - warm_at - aside),
        "end_to_end_samples_per_s": counted / (end - warm_at),
        "steps": steps,
        "samples": steps * args.batch,
        "seconds": end - start,
        "loss_first": losses[0],
        "loss_last": losses[-1],
        "metric": {"psnr": psnr},
        "effective": {
            "loader.workers": args.workers,
            "layout.channels_last": tuned,
            "optimizer.fused": tuned,
            "compile.mode": args.compile or "off",
            "cpu.threads": torch.get_num_threads(),
            "batch.size": args.batch,
            "precision.amp": "off",
        },
        **({"losses": losses} if args.losses else {}),
    }


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--mode", choices=["naive", "tuned"], required=True)
    parser.add_argument(
        "--data", default=os.path.join(os.environ.get("UNIDLE_HOME", ".unidle"), "data", "superres")
    )
    parser.add_argument("--samples", type=int, default=960)
    parser.add_argument("--warmup-samples", type=int, default=32)
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--size", type=int, default=128)
    parser.add_argument("--width", type=int, default=32)
    parser.add_argument("--depth", type=int, default=4)
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--compile", nargs="?", const="default", help="a mode of torch.compile")
    parser.add_argument("--lr", type=float, default=2e-4)
    parser.add_argument("--weights", help="checkpoint of unidle's engine to begin with")
    parser.add_argument("--sgd", action="store_true", help="plain gradient descent instead of AdamW")
    parser.add_argument("--losses", action="store_true", help="also print every step's loss")
    gpu = parser.add_argument_group("--mode tuned on a GPU, as the other programs have them")
    gpu.add_argument("--amp", choices=["off", "bf16"], default="off")
    gpu.add_argument("--seconds", type=float, default=0)
    gpu.add_argument("--pause", action="store_true")
    parser.set_defaults(accumulation=1, weight_decay=0.01, validations=0)
    args = parser.parse_args()
    if not os.path.isdir(os.path.join(args.data, "train", "high")):
        sys.exit(
            f"superres.py: no pictures in {args.data} "
            "(make them: unidle-train workloads/superres/naive.yaml --prepare)"
        )
    tuned_on_gpu = args.mode == "tuned" and args.device.startswith("cuda")
    print(json.dumps(train_on_gpu(args) if tuned_on_gpu else train(args)))


if __name__ == "__main__":
    main()
