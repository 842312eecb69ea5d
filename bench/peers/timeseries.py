#!/usr/bin/env python3
"""The workload `timeseries` in Python PyTorch: the peer that the C++ engine is measured against.

Same model, same windows, same loss and the same validation as `unidle-train`; prints the same JSON fields.

  --mode naive   as the project's guide found it: a DataLoader without workers over a Dataset of windows,
                 loss.item() in every step, per-tensor AdamW, all held-out windows after every epoch with
                 the predictions moved to numpy batch by batch
  --mode tuned   what a careful Python user gets: all windows as one view of the series, gathered by index,
                 no DataLoader, fused AdamW, losses read rarely, errors summed as tensors, validation at the
                 end; --compile adds torch.compile

The series is what `unidle-train workloads/timeseries/naive.yaml --prepare` made.
"""

import json
import os
import sys

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import device
import training


class Forecaster(nn.Module):
    """LSTM layers, attention over their outputs, a small head."""

    def __init__(self, features, width=128, depth=2):
        super().__init__()
        self.lstm = nn.LSTM(features, width, num_layers=depth, batch_first=True)
        self.attention_hidden = nn.Linear(width, width)
        self.attention_score = nn.Linear(width, 1, bias=False)
        self.head_hidden = nn.Linear(2 * width, width // 2)
        self.head = nn.Linear(width // 2, 1)

    def forward(self, days):
        seen, _ = self.lstm(days)
        weights = self.attention_score(self.attention_hidden(seen).tanh()).softmax(1)
        context = (weights * seen).sum(1)
        return self.head(self.head_hidden(torch.cat([context, seen[:, -1]], 1)).relu()).squeeze(1)


class Windows(Dataset):
    def __init__(self, days, length):
        self.days, self.length = days, length

    def __len__(self):
        return len(self.days) - self.length

    def __getitem__(self, index):
        window = self.days[index : index + self.length]
        return torch.from_numpy(window), torch.tensor(self.days[index + self.length, 0])


def all_windows(days, length, where):
    """Returns views: [windows, length, features], and the value after each window."""
    days = torch.from_numpy(days).to(where)
    return days.unfold(0, length, 1)[:-1].transpose(1, 2), days[length:, 0]


def naive_errors(model, loader):
    told, true = [], []
    for days, target in loader:
        told.append(model(days.to(next(model.parameters()).device)).cpu().numpy())
        true.append(target.numpy())
    return np.concatenate(told).astype(np.float64) - np.concatenate(true)


def tuned_errors(model, windows):
    days, target = windows
    parts = [model(d) - t for d, t in zip(days.split(1024), target.split(1024), strict=True)]
    return torch.cat(parts).double().cpu().numpy()


def make_task(args):
    days = {part: np.load(os.path.join(args.data, part + ".npy")) for part in ("train", "validation")}
    with open(os.path.join(args.data, "series.json")) as about:
        deviation = json.load(about)["deviation"]
    model = Forecaster(days["train"].shape[1], args.width, args.depth).to(args.device)
    if args.mode == "tuned":
        windows = all_windows(days["train"], args.length, args.device)
        batches = (
            tuple(each[rows] for each in windows)
            for rows in training.rows_in_turn(len(windows[1]), args.batch, args.seed, args.device)
        )
        held_out = all_windows(days["validation"], args.length, args.device)
        errors = lambda: tuned_errors(model, held_out)  # noqa: E731
        items = len(windows[1])
    else:
        dataset = Windows(days["train"], args.length)
        loader = DataLoader(
            dataset, batch_size=args.batch, shuffle=True, num_workers=device.workers(args), drop_last=True
        )
        batches = device.moved(training.again_and_again(loader), args)
        held_out = DataLoader(Windows(days["validation"], args.length), batch_size=args.batch)
        errors = lambda: naive_errors(model, held_out)  # noqa: E731
        items = len(dataset)

    def validate():
        error = errors() * deviation
        return {"mae": float(np.abs(error).mean()), "rmse": float(np.sqrt(np.square(error).mean()))}

    return training.Task(
        model=model,
        batches=iter(batches),
        loss=lambda days, target: F.mse_loss(model(days).float(), target),
        validate=validate,
        samples_per_epoch=items,
        effective={"model.width": args.width, "model.depth": args.depth, "input.size": args.length},
    )


def options():
    """The command line."""
    parser = training.parser("timeseries", __doc__, batch=128, lr=0.001, samples=12800, warmup_samples=1280)
    parser.add_argument("--length", type=int, default=30)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--depth", type=int, default=2)
    return parser


if __name__ == "__main__":
    training.main("timeseries", options(), make_task)
