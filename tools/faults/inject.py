"""Runs a training program with faults injected.

    inject.py OUT FAULT=SECONDS,... program.py arguments...

Each fault takes SECONDS every time it acts; FAULTS says when that is. OUT receives what timers measured, as
JSON: the length of each step, and how much of it the faults took in the thread that trains. Of several
ranks the first one writes.
"""

import gc
import json
import logging
import os
import runpy
import sys
import tempfile
import threading
import time
import types
import zlib

import torch

EVERY = 20  # steps between two validations or checkpoints
RARE = 50  # one sample of so many is slow
SLOWING = 500  # steps
_BUFFER = bytes(range(256)) * 64


class Timers:
    """When each step ended, and how long the faults took until then. Only the thread that trains counts."""

    def __init__(self):
        self.thread, self.optimizer = threading.get_ident(), None
        self.ends, self.spent, self.total = [], [], 0.0
        self.acts = []  # functions of the faults, called between the forward and the backward pass
        self.acts_after = []  # called when the optimizer has stepped
        self.due = False  # no backward pass since the last step
        self.in_scaler = False

    def __enter__(self):
        self.begin = time.perf_counter()

    def __exit__(self, *_):
        if threading.get_ident() == self.thread:
            self.total += time.perf_counter() - self.begin

    def watch(self, optimizer):
        if self.optimizer is not None:
            return  # a program with two optimizers steps once with each
        self.optimizer, step = optimizer, type(optimizer).step

        def stepping(optimizer, *args, **kwargs):
            result = step(optimizer, *args, **kwargs)
            if not self.in_scaler:
                self.after_step()
            return result

        optimizer.step = types.MethodType(stepping, optimizer)  # schedulers want a method

    def after_step(self):
        for act in self.acts_after:
            with self:
                act()
        self.ends.append(time.perf_counter())
        self.spent.append(self.total)
        self.due = True

    def watch_scaler(self, scaler):
        """Programs go on when the scaler returns, so that is when faults act."""
        step = scaler.step

        def stepping(scaler, optimizer, *args, **kwargs):
            self.in_scaler = True
            result = step(scaler, optimizer, *args, **kwargs)
            self.in_scaler = False
            if optimizer is self.optimizer:
                self.after_step()
            return result

        scaler.step = stepping

    def before_backward(self):
        due, self.due = self.due, False
        for act in self.acts if due else ():
            with self:
                act()

    def write(self, path):
        steps = [after - before for before, after in zip(self.ends, self.ends[1:])]
        spent = [after - before for before, after in zip(self.spent, self.spent[1:])]
        with open(path, "w") as file:
            json.dump({"steps": steps, "spent": spent}, file)


TIMERS = Timers()


def compute(seconds):
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        zlib.compress(_BUFFER, 6)


class Dataset:
    """Stands before the program's data set; `act(index)` is called for each sample."""

    def __init__(self, dataset, act):
        self.dataset, self.act = dataset, act

    def __getattr__(self, name):
        if name in ("dataset", "act", "__getitems__"):
            raise AttributeError(name)
        return getattr(self.dataset, name)

    def __len__(self):
        return len(self.dataset)

    def __getitem__(self, index):
        with TIMERS:
            self.act(index)
        return self.dataset[index]


def each_loader(change):
    """`change(arguments)` gets the arguments of each DataLoader over a data set with indices."""
    original = torch.utils.data.DataLoader.__init__

    def init(self, dataset, batch_size=1, *args, **kwargs):
        arguments = dict(kwargs, dataset=dataset, batch_size=batch_size)
        if hasattr(dataset, "__getitem__") and not args:
            change(arguments)
        original(self, arguments.pop("dataset"), arguments.pop("batch_size"), *args, **arguments)

    torch.utils.data.DataLoader.__init__ = init


def each_sample(act):
    each_loader(lambda arguments: arguments.update(dataset=Dataset(arguments["dataset"], act)))


def slow_sample(seconds):
    each_sample(lambda index: compute(seconds))


def slow_read(seconds):
    each_sample(lambda index: time.sleep(seconds))


def rare_slow_sample(seconds):
    each_sample(lambda index: compute(seconds) if int(index) % RARE == 0 else None)


def slow_collate(seconds):
    def change(arguments):
        collate = arguments.get("collate_fn") or torch.utils.data.default_collate

        def slow(samples):
            with TIMERS:
                compute(seconds)
            return collate(samples)

        arguments["collate_fn"] = slow

    each_loader(change)


def worker_start(seconds):
    """Workers are started for each epoch, and starting takes long."""

    def change(arguments):
        arguments.update(num_workers=2, worker_init_fn=lambda worker: time.sleep(seconds))
        arguments.pop("persistent_workers", None)

    each_loader(change)


def metric(seconds):
    def compute_metric():
        compute(seconds)

    TIMERS.acts.append(compute_metric)


def every(act):
    def perhaps():
        if len(TIMERS.ends) % EVERY == EVERY - 1:
            act()

    TIMERS.acts_after.append(perhaps)


def validation(seconds):
    model, called = [], torch.nn.Module.__call__

    def call(self, *args, **kwargs):
        if not model and self.training:
            model.append((self, args, kwargs))
        return called(self, *args, **kwargs)

    torch.nn.Module.__call__ = call

    def validate():
        until = time.perf_counter() + seconds
        module, args, kwargs = model[0]
        module.eval()
        with torch.no_grad():
            while time.perf_counter() < until:
                module(*args, **kwargs)
        module.train()

    every(validate)


def checkpoint(seconds):
    state = {"weights": torch.zeros(1 << 22), "steps": 0}

    def save():
        until = time.perf_counter() + seconds
        while time.perf_counter() < until:
            with tempfile.NamedTemporaryFile(dir=".") as file:
                torch.save(state, file)
                file.flush()
                os.fsync(file.fileno())

    every(save)


def log(seconds):
    logger = logging.getLogger("training")
    logger.addHandler(logging.FileHandler("training.log"))
    logger.setLevel(logging.INFO)

    def write():
        until = time.perf_counter() + seconds
        while time.perf_counter() < until:
            logger.info("step %d of epoch %d, loss %.4f", len(TIMERS.ends), 0, 0.5)

    TIMERS.acts.append(write)


def collect_garbage(seconds):
    def collect():
        until = time.perf_counter() + seconds
        while time.perf_counter() < until:
            gc.collect()

    TIMERS.acts.append(collect)


def one_thread(seconds):
    torch.set_num_threads(1)


def slowing(seconds):
    """Each step reads a history that grows: step n takes 2n/N of `seconds` longer, with N = SLOWING."""
    TIMERS.acts.append(lambda: compute(seconds * 2 * len(TIMERS.ends) / SLOWING))


FAULTS = {  # how often it acts: for each sample, batch, step or epoch, every EVERY steps, or once
    "slow-sample": (slow_sample, "sample"),
    "slow-read": (slow_read, "sample"),
    "rare-slow-sample": (rare_slow_sample, "rare"),
    "slow-collate": (slow_collate, "batch"),
    "worker-start": (worker_start, "epoch"),
    "metric": (metric, "step"),
    "validation": (validation, "every"),
    "checkpoint": (checkpoint, "every"),
    "log": (log, "step"),
    "collect-garbage": (collect_garbage, "step"),
    "slowing": (slowing, "step"),
    "one-thread": (one_thread, "once"),
}


def main():
    out, faults, program = sys.argv[1:4]
    sys.argv = sys.argv[3:]
    sys.path[0] = os.path.dirname(os.path.abspath(program))
    made = torch.optim.Optimizer.__init__

    def init(self, *args, **kwargs):
        made(self, *args, **kwargs)
        TIMERS.watch(self)

    torch.optim.Optimizer.__init__ = init
    TIMERS.watch_scaler(torch.amp.GradScaler)
    backward = torch.Tensor.backward

    def before_backward(self, *args, **kwargs):
        TIMERS.before_backward()
        return backward(self, *args, **kwargs)

    torch.Tensor.backward = before_backward
    for fault in filter(None, faults.split(",")):
        name, seconds = fault.split("=")
        FAULTS[name][0](float(seconds))
    try:
        runpy.run_path(program, run_name="__main__")
    finally:
        if os.environ.get("RANK", "0") == "0":
            TIMERS.write(out)


if __name__ == "__main__":
    main()
