"""The training loop that the Python programs of the workloads share, and what they print.

A program makes a Task and calls main(). Its output is one JSON document with the fields of `unidle train
--format json`, and with --losses also the loss of every step.
"""

import argparse
import json
import os
import sys
import time
from dataclasses import dataclass, field
from typing import Callable, Iterator

import torch
import torch.jit._pickle


@dataclass
class Task:
    """One training task: `batches` yields without end what `loss` takes."""

    model: torch.nn.Module
    batches: Iterator
    loss: Callable
    validate: Callable[[], dict]
    samples_per_epoch: int
    after_step: Callable[[], None] = lambda: None
    effective: dict = field(default_factory=dict)


def parser(
    workload,
    description,
    batch,
    lr,
    samples,
    warmup_samples,
    accumulation=1,
    validations=1,
    weight_decay=0.01,
):
    """Options that all programs have, with the workload's own defaults; `validations` an epoch, of naive."""
    options = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    home = os.environ.get("UNIDLE_HOME", ".unidle")
    options.add_argument("--mode", choices=["naive", "tuned"], required=True)
    options.add_argument("--data", default=os.path.join(home, "data", workload))
    options.add_argument("--samples", type=int, default=samples)
    options.add_argument("--warmup-samples", type=int, default=warmup_samples)
    options.add_argument("--batch", type=int, default=batch)
    options.add_argument("--accumulation", type=int, default=accumulation)
    options.add_argument("--lr", type=float, default=lr)
    options.add_argument("--weight-decay", type=float, default=weight_decay)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--threads", type=int, default=0)
    options.add_argument("--workers", type=int, default=0)
    options.add_argument("--amp", choices=["off", "bf16"], default="off")
    options.add_argument("--compile", action="store_true")
    options.add_argument(
        "--validations", type=float, default=validations, help="an epoch, of --mode naive; 0: none"
    )
    options.add_argument("--weights", help="checkpoint of unidle's engine to begin with")
    options.add_argument("--sgd", action="store_true", help="plain gradient descent instead of AdamW")
    options.add_argument("--losses", action="store_true", help="also print every step's loss")
    return options


def load_weights(model, path):
    """Takes the parameters out of a checkpoint of the engine, whose names are the model's, and its random
    numbers."""
    with torch.serialization.safe_globals(
        [torch.jit._pickle.restore_type_tag, torch.jit._pickle.build_tensorlist]  # TorchScript's
    ):
        checkpoint = torch.load(path, weights_only=True)
    torch.set_rng_state(checkpoint["host_random"][0])
    stored = checkpoint["parameters"]
    with torch.no_grad():
        names = dict(model.named_parameters())
        if names.keys() != stored.keys():
            sys.exit(f"{path} is of another model: {sorted(names.keys() ^ stored.keys())}")
        for name, parameter in names.items():
            parameter.copy_(stored[name])


def rows_in_turn(items, batch, seed):
    """Index tensors of a shuffled pass after the other; what is left of a pass begins the next."""
    generator = torch.Generator().manual_seed(seed)
    left = torch.empty(0, dtype=torch.int64)
    while True:
        while len(left) < batch:
            left = torch.cat([left, torch.randperm(items, generator=generator)])
        yield left[:batch]
        left = left[batch:]


def again_and_again(loader):
    """The batches of a DataLoader, epoch after epoch."""
    while True:
        yield from loader


def make_optimizer(model, args):
    if args.sgd:
        return torch.optim.SGD(model.parameters(), lr=args.lr)
    if args.mode == "tuned":
        return torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=args.weight_decay, fused=True)
    return torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=args.weight_decay, foreach=False)


class Losses:
    """Every step's loss, read back `interval` steps at a time."""

    def __init__(self, interval):
        self.interval, self.pending, self.values = interval, [], []

    def add(self, loss):
        self.pending.append(loss)
        if len(self.pending) >= self.interval:
            self.read()

    def read(self):
        self.values += [loss.item() for loss in self.pending]
        self.pending.clear()


class Clock:
    """Seconds of the loop since warm-up, without what lay aside."""

    def __init__(self):
        self.start = self.warm = time.perf_counter()
        self.aside = 0.0

    def begin(self):
        self.warm, self.aside = time.perf_counter(), 0.0

    def set_aside(self, call):
        before = time.perf_counter()
        call()
        self.aside += time.perf_counter() - before

    def loop(self):
        return time.perf_counter() - self.warm - self.aside


def step(task, args, compute, optimizer):
    total = 0.0
    for _ in range(args.accumulation):
        batch = next(task.batches)
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=args.amp == "bf16"):
            loss = compute(*batch) / args.accumulation
        loss.backward()
        total = total + loss.detach()
    optimizer.step()
    task.after_step()
    optimizer.zero_grad(set_to_none=args.mode == "tuned")
    return total


def validate(task):
    task.model.eval()
    with torch.no_grad():
        metric = task.validate()
    task.model.train()
    return metric


def run(workload, task, args):
    """Trains, and returns the summary."""
    tuned = args.mode == "tuned"
    if args.weights:
        load_weights(task.model, args.weights)
    optimizer = make_optimizer(task.model, args)
    compute = torch.compile(task.loss) if args.compile else task.loss
    per_step = args.batch * args.accumulation
    steps = max(1, args.samples // per_step)
    warm = min(steps - 1, args.warmup_samples // per_step)
    rarely = tuned or args.validations == 0
    interval = float("inf") if rarely else task.samples_per_epoch / args.validations
    losses, clock = Losses(50 if tuned else 1), Clock()
    for number in range(1, steps + 1):
        losses.add(step(task, args, compute, optimizer))
        if number == warm:
            clock.begin()
        if number < steps and number * per_step // interval > (number - 1) * per_step // interval:
            clock.set_aside(lambda: validate(task))
    losses.read()
    loop = clock.loop()
    metric = validate(task)
    end = time.perf_counter()
    counted = (steps - warm) * per_step
    return {
        "workload": workload,
        "device": "cpu",
        "config": f"python-{args.mode}" + ("-compile" if args.compile else ""),
        "samples_per_s": counted / loop,
        "end_to_end_samples_per_s": counted / (end - clock.warm),
        "steps": steps,
        "samples": steps * per_step,
        "seconds": end - clock.start,
        "loss_first": losses.values[0],
        "loss_last": losses.values[-1],
        "metric": metric,
        "effective": {
            "loader.workers": args.workers,
            "batch.size": args.batch,
            "batch.accumulation": args.accumulation,
            "optimizer.fused": tuned,
            "precision.amp": args.amp,
            "compile.mode": "default" if args.compile else "off",
            "cpu.threads": torch.get_num_threads(),
            **task.effective,
        },
        **({"losses": losses.values} if args.losses else {}),
    }


def main(workload, options, make_task):
    """Parses the command line, makes the task, trains and prints."""
    args = options.parse_args()
    torch.manual_seed(args.seed)
    if args.threads:
        torch.set_num_threads(args.threads)
    print(json.dumps(run(workload, make_task(args), args)))
