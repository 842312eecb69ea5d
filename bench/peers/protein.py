#!/usr/bin/env python3
"""The workload `protein` in Python PyTorch: the peer that the C++ engine is measured against.

Same model, same peptides, same loss and the same validation as `unidle-train`; prints the same JSON fields.

  --mode naive   as the project's guide found it: a DataLoader without workers whose Dataset predicts
                 structure features again for every sample, micro-batches of 2, a NaN check of the loss that
                 waits for it and a cache flush in every step, per-tensor AdamW
  --mode tuned   what a careful Python user gets: features predicted once and kept in a file of the data's
                 folder, batches of peptides of similar length, fused AdamW, losses read rarely, validation at
                 the end; --compile adds torch.compile

The peptides are those that `unidle-train workloads/protein/naive.yaml --prepare` made.
"""

import functools
import gc
import math
import multiprocessing
import os
import random
import sys

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import device
import engine_order
import peptide_ensemble
import training

AMINO_ACIDS = "ACDEFGHIKLMNPQRSTVWY"
LONGEST, STEPS, STRUCTURE, HEADS = 50, 1000, 256, 8
ANGSTROM_SCALE, CONFIDENCE_SCALE, FEED_MULTIPLE, VALIDATION_STEP = 0.1, 0.01, 32, 250
GROUPS_IN_BLOCK = 8
FEW_LENGTHS = 10  # on a GPU peptides are padded to a multiple of it: each shape has its own graph


class StructureEncoder(nn.Module):
    """Encodes angles with two layers, residues with an LSTM, maps with three convolutions averaged over
    rows."""

    def __init__(self):
        super().__init__()
        self.angle0, self.angle1 = nn.Linear(6, STRUCTURE), nn.Linear(STRUCTURE, STRUCTURE)
        self.residue = nn.Linear(7, STRUCTURE)
        self.lstm = nn.LSTM(STRUCTURE, STRUCTURE // 2, batch_first=True, bidirectional=True)
        self.pair0 = nn.Conv2d(2, 16, 3, padding=1)
        self.pair1 = nn.Conv2d(16, 32, 3, padding=1)
        self.pair2 = nn.Conv2d(32, 32, 3, padding=1)
        self.pair = nn.Linear(32, STRUCTURE)
        self.norm = nn.LayerNorm(STRUCTURE)

    def forward(self, angles, residues, pairs, real):
        radians = angles * (math.pi / 180)
        turned = self.angle1(self.angle0(torch.cat([radians.sin(), radians.cos()], 2)).relu())
        structure, positions, confidence = residues.split([3, 3, 1], 2)
        scaled = torch.cat([structure, positions * ANGSTROM_SCALE, confidence * CONFIDENCE_SCALE], 2)
        along, _ = self.lstm(self.residue(scaled))
        maps = torch.stack([pairs[..., 0] * ANGSTROM_SCALE, pairs[..., 1]], 1)
        seen = self.pair2(self.pair1(self.pair0(maps).relu()).relu())
        seen = (seen * real[:, None, None]).sum(3) / real.sum(1).clamp_min(1)[:, None, None]
        return self.norm(turned + along + self.pair(seen.transpose(1, 2)))


def attend(query, key, value, allowed):
    heads = [x.unflatten(2, (HEADS, -1)).transpose(1, 2) for x in (query, key, value)]
    return F.scaled_dot_product_attention(*heads, attn_mask=allowed).transpose(1, 2).flatten(2)


class Layer(nn.Module):
    def __init__(self, width):
        super().__init__()
        feed = -(-(8 * width // 3) // FEED_MULTIPLE) * FEED_MULTIPLE
        self.norm_self, self.norm_cross = nn.LayerNorm(width), nn.LayerNorm(width)
        self.norm_feed = nn.LayerNorm(width)
        self.self_attention, self.self_out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.query, self.key_value = nn.Linear(width, width), nn.Linear(STRUCTURE, 2 * width)
        self.cross_out = nn.Linear(width, width)
        self.gate_up, self.down = nn.Linear(width, 2 * feed), nn.Linear(feed, width)

    def forward(self, x, structure, allowed):
        x = x + self.self_out(attend(*self.self_attention(self.norm_self(x)).chunk(3, 2), allowed))
        key, value = self.key_value(structure).chunk(2, 2)
        x = x + self.cross_out(attend(self.query(self.norm_cross(x)), key, value, allowed))
        gate, up = self.gate_up(self.norm_feed(x)).chunk(2, 2)
        return x + self.down(F.silu(gate) * up)


def signal_share(step):
    return (1 - (step.float() / STEPS + 1e-4).sqrt()).clamp_min(0)


class Model(nn.Module):
    """Predicts the clean embeddings of peptides from noisy ones."""

    def __init__(self, width=320, depth=8):
        super().__init__()
        self.width = width
        self.embedding = nn.Embedding(len(AMINO_ACIDS) + 1, width)
        self.position = nn.Embedding(LONGEST, width)
        self.time0, self.time1 = nn.Linear(width, width), nn.Linear(width, width)
        self.structure = StructureEncoder()
        self.depth = depth
        for layer in range(depth):
            setattr(self, f"layer{layer}", Layer(width))
        self.norm, self.output = nn.LayerNorm(width), nn.Linear(width, width)

    def step_features(self, step):
        half = self.width // 2
        rates = (torch.arange(half, device=step.device) * (-math.log(10000) / half)).exp()
        angle = step.float()[:, None] * rates
        return torch.cat([angle.sin(), angle.cos()], 1)

    def forward(self, peptides, step, noise):
        """Returns (squared error of the embeddings, cross-entropy of the tokens, 1 for residues, 0 for
        padding)."""
        tokens, lengths, residues, angles, pairs = peptides
        places = torch.arange(tokens.shape[1], device=tokens.device)
        is_real = places[None] < lengths[:, None]
        real = is_real.float()
        structure = self.structure(angles, residues, pairs, real)
        clean = self.embedding(tokens)
        share = signal_share(step)[:, None, None]
        x = share.sqrt() * clean + (1 - share).sqrt() * noise
        x = x + self.position(places) + self.time1(F.silu(self.time0(self.step_features(step))))[:, None]
        for layer in range(self.depth):
            x = getattr(self, f"layer{layer}")(x, structure, is_real[:, None, None])
        told = self.output(self.norm(x)).float()
        logits = (told @ self.embedding.weight.t()).float()
        surprise = F.cross_entropy(logits.flatten(0, 1), tokens.flatten(), reduction="none")
        return (told - clean).square().mean(2), surprise.view_as(tokens), real


def loss_of(model, *peptides):
    lengths, tokens = peptides[1], peptides[0]
    step = torch.randint(1, STEPS + 1, lengths.shape, device=tokens.device)
    noise = torch.randn(*tokens.shape, model.width, device=tokens.device)
    error, surprise, real = model(peptides, step, noise)
    return ((error + surprise) * real).sum() / real.sum()


def metric_sums(model, peptides):
    """Uses one step and the same noise at each position of a batch."""
    tokens, lengths = peptides[:2]
    shape = (*tokens.shape, model.width)
    wave = torch.arange(shape[1] * shape[2], dtype=torch.float32, device=tokens.device) * 12.9898
    noise = (wave.sin() * 43758.5453).frac() * 3.4641
    step = torch.full_like(lengths, VALIDATION_STEP)
    error, surprise, real = model(peptides, step, noise.view(1, *shape[1:]).expand(shape))
    return torch.stack([(error * real).sum(), (surprise * real).sum(), real.sum()]).double()


def read_peptides(folder, name):
    """Reads the peptides, longest first, as in the engine."""
    with open(os.path.join(folder, name + ".txt")) as file:
        return sorted(file.read().split(), key=len, reverse=True)


def padded(rows, length):
    """Returns the batch of the rows (sequence, features), each padded to `length` residues."""
    count = len(rows)
    tokens = torch.zeros(count, length, dtype=torch.int64)
    residues, angles = torch.zeros(count, length, 7), torch.zeros(count, length, 3)
    pairs = torch.zeros(count, length, length, 2)
    for row, (sequence, found) in enumerate(rows):
        n = len(sequence)
        tokens[row, :n] = torch.tensor([AMINO_ACIDS.index(residue) + 1 for residue in sequence])
        residues[row, :n] = torch.from_numpy(found["residues"])
        angles[row, :n] = torch.from_numpy(found["angles"])
        pairs[row, :n, :n] = torch.from_numpy(found["pairs"])
    return tokens, torch.tensor([len(sequence) for sequence, _ in rows]), residues, angles, pairs


def collate(rows, multiple=1):
    longest = max(len(sequence) for sequence, _ in rows)
    return padded(rows, -(-longest // multiple) * multiple)


class Peptides(Dataset):
    """Predicts structure features on every access, or takes them from `kept`."""

    def __init__(self, sequences, kept=None):
        self.sequences, self.kept = sequences, kept

    def __len__(self):
        return len(self.sequences)

    def __getitem__(self, index):
        sequence = self.sequences[index]
        if self.kept is not None:
            return sequence, self.kept[sequence]
        return sequence, peptide_ensemble.features(sequence)


def kept_features(folder, sequences):
    """Returns the features of all peptides, from a file of the folder, or predicted by all CPUs and saved
    there."""
    path = os.path.join(folder, "features.npy")
    kept = np.load(path, allow_pickle=True).item() if os.path.exists(path) else {}
    missing = [sequence for sequence in sequences if sequence not in kept]
    if missing:
        with multiprocessing.Pool(len(os.sched_getaffinity(0))) as pool:
            kept |= dict(zip(missing, pool.map(peptide_ensemble.features, missing), strict=True))
        partial = f"{path}.{os.getpid()}.npy"
        np.save(partial, kept, allow_pickle=True)
        os.replace(partial, path)
    return kept


def orders_of_like_length(dataset, batch, seed):
    """Yields the indices of batches: sorted peptides in blocks of eight batches, shuffled within; a
    remainder smaller than a batch waits for a later pass."""
    draws = random.Random(seed)
    while True:
        orders = []
        for first in range(0, len(dataset), GROUPS_IN_BLOCK * batch):
            block = list(range(first, min(first + GROUPS_IN_BLOCK * batch, len(dataset))))
            draws.shuffle(block)
            orders += [block[i : i + batch] for i in range(0, len(block) - batch + 1, batch)]
        draws.shuffle(orders)
        yield from orders


def batches_of_the_engine(dataset, batch, seed, first):
    """Yields the engine's own batches with data.group 1, from the sample `first` on, endlessly."""
    count = len(dataset)
    while True:
        rows, length = [], 0
        for number in range(first, first + batch):
            epoch = number // count
            item = engine_order.shuffled_index(seed, epoch, number % count, count)
            begin = item // GROUPS_IN_BLOCK * GROUPS_IN_BLOCK
            size = min(GROUPS_IN_BLOCK, count - begin)
            key = engine_order.hash_words(seed, begin)
            place = engine_order.shuffled_index(key, epoch, item - begin, size)
            rows.append(dataset[begin + place])
            length = max(length, len(dataset.sequences[begin]))
        yield padded(rows, length)
        first += batch


def checked(loss):
    """As in the guide: the host waits for every loss to check it."""
    if torch.isnan(loss).item():
        raise SystemExit("the loss is NaN")
    return loss


def flush():
    gc.collect()
    torch.cuda.empty_cache()


def make_task(args):
    tuned = args.mode == "tuned"
    train, validation = (read_peptides(args.data, name) for name in ("train", "validation"))
    kept = kept_features(args.data, train + validation) if tuned else None
    model = Model(args.width, args.depth).to(args.device)
    dataset = Peptides(train, kept)
    if args.engine_order:
        batches = batches_of_the_engine(dataset, args.batch, args.seed, args.first_sample)
    elif tuned:
        orders = orders_of_like_length(dataset, args.batch, args.seed)
        put_together = functools.partial(collate, multiple=FEW_LENGTHS if device.on_gpu(args) else 1)
        batches = DataLoader(dataset, batch_sampler=orders, collate_fn=put_together, **device.loading(args))
    else:
        loader = DataLoader(
            dataset,
            args.batch,
            shuffle=True,
            num_workers=device.workers(args),
            drop_last=True,
            collate_fn=collate,
        )
        batches = training.again_and_again(loader)
    held_out = DataLoader(Peptides(validation, kept), 32 if tuned else args.batch, collate_fn=collate)

    def validate():
        moved = (tuple(each.to(args.device) for each in batch) for batch in held_out)
        error, surprise, count = sum(metric_sums(model, batch) for batch in moved).tolist()
        return {"denoising_error": error / count, "token_surprise": surprise / count}

    return training.Task(
        model=model,
        batches=device.moved(batches, args),
        loss=(lambda *b: loss_of(model, *b)) if tuned else (lambda *b: checked(loss_of(model, *b))),
        validate=validate,
        samples_per_epoch=len(dataset),
        after_step=(lambda: None) if tuned else flush,
        effective={
            "model.width": args.width,
            "model.depth": args.depth,
            "cache.features": "disk" if tuned else "off",
        },
    )


def options():
    """The command line."""
    parser = training.parser(
        "protein", __doc__, batch=2, accumulation=8, lr=0.0001, samples=384, warmup_samples=16, validations=0
    )
    parser.add_argument("--width", type=int, default=320)
    parser.add_argument("--depth", type=int, default=8)
    parser.add_argument("--engine-order", action="store_true", help="the engine's batches, in its order")
    parser.add_argument("--first-sample", type=int, default=0, help="of that order")
    return parser


if __name__ == "__main__":
    training.main("protein", options(), make_task)
