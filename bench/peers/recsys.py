#!/usr/bin/env python3
"""The workload `recsys` in Python PyTorch: the peer that the C++ engine is measured against.

Same model, same tables, same loss and the same validation as `unidle-train`; prints the same JSON fields.

  --mode naive   as the project's guide found it: one thread, a slice of a pandas table turned into tensors
                 for every batch of 64, loss.item() in every step, per-tensor AdamW, the whole held-out table
                 twenty times an epoch
  --mode tuned   what a careful Python user gets: the table as two tensors, rows by index_select, fused AdamW,
                 losses read rarely, validation at the end in large batches; --compile adds torch.compile

The tables are those that `unidle-train workloads/recsys/naive.yaml --prepare` made.
"""

import glob
import math
import os
import sys

import numpy as np
import pandas as pd
import torch
import torch.nn as nn
import torch.nn.functional as F

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import device
import training

LEADING = ["user_id", "video_id", "is_click", "play_time_ms", "split"]
TARGETS = ["play_time_ms", "is_click"]


class Perceptron(nn.Module):
    """Layers with ReLU between them; the last layer has one output."""

    def __init__(self, inputs, widths):
        super().__init__()
        self.count = len(widths) + 1
        for layer, width in enumerate([*widths, 1]):
            setattr(self, f"layer{layer}", nn.Linear(inputs, width))
            inputs = width

    def forward(self, x):
        for layer in range(self.count - 1):
            x = getattr(self, f"layer{layer}")(x).relu()
        return getattr(self, f"layer{self.count - 1}")(x).squeeze(1)


class Model(nn.Module):
    """One perceptron each for play time and clicks."""

    def __init__(self, features, width=128):
        super().__init__()
        self.play = Perceptron(features, [width, width // 2, width // 4])
        self.click = Perceptron(features, [width // 2, width // 4, width // 8])

    def forward(self, features):
        return self.play(features), self.click(features)


def loss_of(model, features, targets):
    play, click = model(features)
    return F.mse_loss(play.float(), (targets[:, 0] * 1e-3).log1p()) + F.binary_cross_entropy_with_logits(
        click.float(), targets[:, 1]
    )


def read_tables(folder):
    """Returns (training, validation) as pandas tables, features scaled by the training rows."""
    parts = sorted(glob.glob(os.path.join(folder, "log_part*.csv")), key=lambda name: (len(name), name))
    table = pd.concat([pd.read_csv(part) for part in parts], ignore_index=True)
    held_out = table["split"] == "validation"
    names = [name for name in table.columns if name not in LEADING]
    features = table[names].astype(np.float64)
    deviation = features[~held_out].std(ddof=0).replace(0, 1)
    scaled = ((features - features[~held_out].mean()) / deviation).astype(np.float32)
    table = pd.concat([scaled, table[TARGETS].astype(np.float32)], axis=1)
    return table[~held_out].reset_index(drop=True), table[held_out].reset_index(drop=True), names


def as_tensors(table, names, where="cpu"):
    return tuple(torch.from_numpy(table[part].to_numpy(copy=True)).to(where) for part in (names, TARGETS))


def area_under_curve(score, click):
    order = score.argsort()
    ranks = torch.empty_like(order)
    ranks[order] = torch.arange(len(order), device=order.device)
    positive = click.bool()
    n = int(positive.sum())
    area = (ranks[positive] + 1).sum().item() - n * (n + 1) / 2
    return area / max(1, n * (len(click) - n))


def metrics(model, batches):
    error, scores, clicks, log_loss = 0.0, [], [], 0.0
    for features, targets in batches:
        play, click = model(features)
        error += (play.double() - (targets[:, 0] * 1e-3).log1p()).square().sum().item()
        log_loss += F.binary_cross_entropy_with_logits(
            click.double(), targets[:, 1].double(), reduction="sum"
        ).item()
        scores.append(click)
        clicks.append(targets[:, 1])
    scores, clicks = torch.cat(scores), torch.cat(clicks)
    rows = len(clicks)
    return {
        "rmse_log": math.sqrt(error / rows),
        "log_loss": log_loss / rows,
        "auc": area_under_curve(scores, clicks),
    }


def slices(table, names, batch, seed):
    """Shuffles the table for each pass and converts its slices to tensors one by one."""
    random = np.random.default_rng(seed)
    while True:
        shuffled = table.iloc[random.permutation(len(table))]
        for first in range(0, len(shuffled) - batch + 1, batch):
            yield as_tensors(shuffled.iloc[first : first + batch], names)


def make_task(args):
    train, validation, names = read_tables(args.data)
    model = Model(len(names), args.width).to(args.device)
    if args.mode == "tuned":
        rows, held_out = (as_tensors(table, names, args.device) for table in (train, validation))
        batches = (
            tuple(each.index_select(0, chosen) for each in rows)
            for chosen in training.rows_in_turn(len(train), args.batch, args.seed, args.device)
        )

        def held_out_batches():
            return zip(*(each.split(4096) for each in held_out), strict=True)
    else:
        batches = device.moved(slices(train, names, args.batch, args.seed), args)

        def held_out_batches():
            for first in range(0, len(validation), args.batch):
                yield as_tensors(validation.iloc[first : first + args.batch], names, args.device)

    return training.Task(
        model=model,
        batches=batches,
        loss=lambda features, targets: loss_of(model, features, targets),
        validate=lambda: metrics(model, held_out_batches()),
        samples_per_epoch=len(train),
        effective={"model.width": args.width},
    )


def options():
    """The command line."""
    parser = training.parser(
        "recsys",
        __doc__,
        batch=64,
        lr=0.001,
        samples=80000,
        warmup_samples=3200,
        validations=20,
        weight_decay=0.0001,
    )
    parser.set_defaults(threads=1)
    parser.add_argument("--width", type=int, default=128)
    return parser


if __name__ == "__main__":
    training.main("recsys", options(), make_task)
