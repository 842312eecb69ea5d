"""The training loop that the workloads' Python programs share, and its output.

A program creates a Task and calls main(). The output is one JSON document with the fields of `unidle train
--format json`, and with --losses also the loss of every step.

"""

import argparse
import json
import os
import sys
import time
from dataclasses import dataclass, field
from typing import Callable, Iterator

import device
import torch
import torch.jit._pickle

WAYS = [
    "default",
    "reduce-overhead",
    "max-autotune",
    "graph",
]  # graph: torch.cuda.graph around the whole step


@dataclass
class Task:
    """One training task: `batches` endlessly yields arguments for `loss`, on the device of the model."""

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
    """Returns the common options with the workload's defaults; `validations` per epoch, for naive."""
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
    add_gpu_options(options)
    options.add_argument(
        "--validations", type=float, default=validations, help="an epoch, of --mode naive; 0: none"
    )
    options.add_argument("--weights", help="checkpoint of unidle's engine to begin with")
    options.add_argument("--sgd", action="store_true", help="plain gradient descent instead of AdamW")
    options.add_argument("--losses", action="store_true", help="also print every step's loss")
    return options


def add_gpu_options(options):
    """Adds options that determine the speed of a step, mainly on a GPU."""
    options.add_argument("--device", default="cpu")
    options.add_argument(
        "--workers", type=int, default=-1, help="processes of the loader; -1: some for a GPU, else none"
    )
    options.add_argument("--amp", choices=["off", "bf16"], default="off")
    options.add_argument("--compile", choices=WAYS, nargs="?", const="default")
    options.add_argument(
        "--seconds", type=float, default=0, help="train so long after warm-up, and validate nothing"
    )
    options.add_argument(
        "--pause", action="store_true", help="print `ready` in the middle of warm-up, and wait for a line"
    )


def load_weights(model, path):
    """Loads the parameters from a checkpoint of the engine, which uses the same names, and its random
    state."""
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


def rows_in_turn(items, batch, seed, where="cpu"):
    """Yields index tensors of shuffled passes; the rest of a pass begins the next."""
    generator = torch.Generator(where).manual_seed(seed)
    left = torch.empty(0, dtype=torch.int64, device=where)
    while True:
        while len(left) < batch:
            left = torch.cat([left, torch.randperm(items, generator=generator, device=where)])
        yield left[:batch]
        left = left[batch:]


def again_and_again(loader):
    """Yields the batches of a DataLoader, epoch after epoch."""
    while True:
        yield from loader


def make_optimizer(model, args):
    if args.sgd:
        return torch.optim.SGD(model.parameters(), lr=args.lr)
    kind = {"foreach": False}
    if args.mode == "tuned":
        kind = {"fused": True, "capturable": args.compile == "graph"}
    return torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=args.weight_decay, **kind)


class Losses:
    """Collects every step's loss, reading back `interval` steps at a time."""

    def __init__(self, interval):
        self.interval, self.pending, self.values = interval, [], []

    def add(self, loss):
        self.pending.append(loss)
        if len(self.pending) >= self.interval:
            self.read()

    def read(self):
        if self.pending:
            self.values += torch.stack(self.pending).tolist()
        self.pending.clear()


class Clock:
    """Measures the seconds of the loop since warm-up, without time spent elsewhere."""

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


class Step:
    """One step of the optimiser; returns its loss."""

    def __init__(self, task, args):
        self.task, self.args = task, args
        self.optimizer = make_optimizer(task.model, args)
        self.compute, self.update = task.loss, self.once
        if args.compile == "graph":
            self.update = device.Captured(self.once)
        elif args.compile:
            self.compute = torch.compile(task.loss, mode=args.compile)
        self.has_graphs = args.compile in ("reduce-overhead", "max-autotune")

    def __call__(self):
        return self.update(*(next(self.task.batches) for _ in range(self.args.accumulation)))

    def once(self, *batches):
        total = 0.0
        for batch in batches:
            if self.has_graphs:
                torch.compiler.cudagraph_mark_step_begin()
            with device.autocast(self.args):
                loss = self.compute(*batch) / self.args.accumulation
            loss.backward()
            total = total + loss.detach()
        self.optimizer.step()
        self.task.after_step()
        self.optimizer.zero_grad(set_to_none=self.args.mode == "tuned")
        return total


def validate(task):
    task.model.eval()
    with torch.no_grad():
        metric = task.validate()
    task.model.train()
    return metric


def pause(args):
    """Waits for the caller: programs warm up in parallel and are measured one by one."""
    device.wait(args)
    if device.on_gpu(args):
        torch.cuda.empty_cache()
    print("ready", flush=True)
    sys.stdin.readline()


def run(workload, task, args):
    """Trains, and returns the summary."""
    tuned = args.mode == "tuned"
    if args.weights:
        load_weights(task.model, args.weights)
    step = Step(task, args)
    per_step = args.batch * args.accumulation
    steps = max(1, args.samples // per_step)
    warm = max(args.seconds > 0, min(steps - 1, args.warmup_samples // per_step))
    rarely = tuned or args.validations == 0
    interval = float("inf") if rarely else task.samples_per_epoch / args.validations
    losses, clock = Losses(50 if tuned else 1), Clock()
    number, going = 0, True
    while going:
        number += 1
        losses.add(step())
        if args.pause and number == max(1, warm // 2):
            pause(args)
        if number == warm:
            device.wait(args)
            clock.begin()
        going = number <= warm or clock.loop() < args.seconds if args.seconds else number < steps
        if going and number * per_step // interval > (number - 1) * per_step // interval:
            clock.set_aside(lambda: validate(task))
    losses.read()
    loop = clock.loop()
    metric = {} if args.seconds else validate(task)
    end = time.perf_counter()
    counted = (number - warm) * per_step
    return {
        "workload": workload,
        "device": args.device,
        "config": f"python-{args.mode}" + ("-compile" if args.compile else ""),
        "samples_per_s": counted / loop,
        "end_to_end_samples_per_s": counted / (end - clock.warm),
        "steps": number,
        "samples": number * per_step,
        "seconds": end - clock.start,
        "loss_first": losses.values[0],
        "loss_last": losses.values[-1],
        "metric": metric,
        "effective": {
            "loader.workers": device.workers(args),
            "batch.size": args.batch,
            "batch.accumulation": args.accumulation,
            "optimizer.fused": tuned,
            "precision.amp": args.amp,
            "compile.mode": args.compile or "off",
            "cpu.threads": torch.get_num_threads(),
            **task.effective,
        },
        **({"losses": losses.values} if args.losses else {}),
    }


def main(workload, options, make_task):
    """Parses the command line, creates the task, trains and prints."""
    args = options.parse_args()
    if args.compile == "graph" and (not device.tuned_on_gpu(args) or args.accumulation > 1):
        options.error("--compile graph is for --mode tuned on a GPU, without --accumulation")
    torch.manual_seed(args.seed)
    if args.threads:
        torch.set_num_threads(args.threads)
    device.allow_fast_kernels(args)
    print(json.dumps(run(workload, make_task(args), args)))
