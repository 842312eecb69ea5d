"""Small training programs of one or several ranks (Gloo), with a fault of a given size.

    rank_program.py OUT --model MODEL --steps N [--exchange WAY] [--fault NAME --amount X] [--without]

OUT.RANK receives what this rank's timers measured, as JSON: seconds of the training, of its input and of the
fault, the growth of its memory. --without: the same work without the fault, where no timer can tell what it
takes.
"""

import argparse
import contextlib
import json
import math
import os
import random
import re
import time
from pathlib import Path

import torch
import torch.distributed as dist
from inject import EVERY, compute
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset

RANK = int(os.environ.get("RANK", "0"))
RANKS = int(os.environ.get("WORLD_SIZE", "1"))


class Mlp(nn.Module):
    sample, batch = (32, 256), 32

    def __init__(self, heavy):
        super().__init__()
        layers = [nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 256)]
        self.body = nn.Sequential(*layers)
        self.wide = nn.Sequential(nn.Linear(256, heavy // 256), nn.Linear(heavy // 256, 1)) if heavy else None

    def forward(self, x):
        y = self.body(x)
        return y.square().mean() + (self.wide(y[:4, 0]).square().mean() if self.wide else 0)


class Cnn(nn.Module):
    sample, batch = (3, 32, 32), 32

    def __init__(self, heavy):
        super().__init__()
        layers = [nn.Conv2d(3, 32, 3, padding=1), nn.ReLU(), nn.Conv2d(32, 64, 3, 2, padding=1), nn.ReLU()]
        self.body = nn.Sequential(*layers)
        self.head = nn.Linear(64 * 16 * 16, max(8, heavy // (64 * 16 * 16)))

    def forward(self, x):
        return self.head(self.body(x).flatten(1)).square().mean()


class Transformer(nn.Module):
    sample, batch = (64, 128), 16

    def __init__(self, heavy):
        super().__init__()
        layer = nn.TransformerEncoderLayer(128, 4, 256, dropout=0.0, batch_first=True)
        self.body = nn.TransformerEncoder(layer, 2)
        self.names = nn.Embedding(heavy // 128, 128) if heavy else None

    def forward(self, x):
        if self.names:
            x = x + self.names((x[..., 0].abs() * 1000).long() % self.names.num_embeddings)
        return self.body(x).square().mean()


MODELS = {"mlp": Mlp, "cnn": Cnn, "transformer": Transformer}


class Timer:
    """Seconds inside `with`."""

    def __init__(self):
        self.seconds = 0.0

    def __enter__(self):
        self.begin = time.perf_counter()

    def __exit__(self, *_):
        self.seconds += time.perf_counter() - self.begin


class Fault:
    """A fault overrides what it changes, and times it with `spent`."""

    named = ()  # the findings that name it; none: the run is healthy
    explained = ()  # others that it explains
    share_of = (
        None  # it takes a share of each "sample" or "step", "every" EVERY steps, of "links" or "batches"
    )
    timed = True  # whether `spent` has all that it takes
    seconds = 6  # of training
    heavy = skips = 0  # parameters more; batches that are read and not trained
    unused = False

    def __init__(self, amount, steps, without):
        self.amount, self.steps, self.without, self.spent = amount, steps, without, Timer()
        self.late = RANKS > 1 and RANK == RANKS // 2
        self.history = []

    def prepare(self):
        pass

    def sample(self, x):
        return x

    def batch(self, x, step):
        return x

    def before_backward(self, loss, step):
        return loss

    def backward(self, loss):
        loss.backward()

    def after_step(self, model, x, loss, step):
        pass


class Healthy(Fault):
    pass


class Exchange(Fault):
    """Millions of parameters."""

    named, timed = ("communication-bound",), False

    def __init__(self, amount, *rest):
        super().__init__(amount, *rest)
        self.heavy = int(amount * 1e6)


class ExchangeUnused(Exchange):
    unused = True


class LateLoader(Fault):
    named, explained = ("straggler-rank",), ("loader-no-workers", "dataset-slow-sample")
    share_of, act = "sample", staticmethod(compute)

    def sample(self, x):
        if self.late:
            with self.spent:
                self.act(self.amount)
        return x


class LateDisk(LateLoader):
    act = staticmethod(time.sleep)


class LateCompute(Fault):
    named, explained, share_of = ("straggler-rank",), ("python-between-steps",), "step"

    def before_backward(self, loss, step):
        if self.late:
            with self.spent:
                until, weights = time.perf_counter() + self.amount, torch.eye(128)
                while time.perf_counter() < until:
                    weights = weights @ weights
        return loss


class LateValidation(Fault):
    named, explained = ("validation-dominates", "straggler-rank"), ("stalls-recur",)
    share_of = "every"

    def after_step(self, model, x, loss, step):
        if RANK == 0 and step % EVERY == EVERY - 1:
            with self.spent, torch.no_grad():
                until, module = time.perf_counter() + self.amount, getattr(model, "module", model)
                module.eval()
                while time.perf_counter() < until:
                    module(x)
                module.train()


class UnevenLengths(Fault):
    """Lengths from 1 - amount to 1 + amount of the usual one, others in each rank."""

    named, timed = ("ranks-uneven",), False

    def __init__(self, *rest):
        super().__init__(*rest)
        self.draw = random.Random(0 if self.without else RANK)

    def batch(self, x, step):
        return x.repeat(1, 2, 1)[:, : round(x.shape[1] * (1 + self.amount * self.draw.uniform(-1, 1)))]


class KeptGraph(Fault):
    named, seconds = ("memory-grows",), 26  # the memory is read every five

    def backward(self, loss):
        loss.backward(retain_graph=True)

    def after_step(self, model, x, loss, step):
        if step % 4 == 0:
            self.history.append(loss)


class KeptArrays(Fault):
    """MB in all."""

    named, seconds = ("memory-grows",), 26

    def after_step(self, model, x, loss, step):
        self.history.append(torch.full((round(self.amount * 1e6 / self.steps / 4),), float(step)))


class SlowHistory(Fault):
    named, explained, share_of = ("steps-slow-down",), ("python-between-steps",), "step"

    def after_step(self, model, x, loss, step):
        self.history.append(loss.item())
        with self.spent:
            until = time.perf_counter() + self.amount * 2 * step / self.steps
            while time.perf_counter() < until:
                sum(self.history)


class SlowGraph(Fault):
    """A state that is never detached: each backward pass goes through all steps so far."""

    named, explained, share_of, timed = ("steps-slow-down",), ("memory-grows",), "links", False

    def __init__(self, *rest):
        super().__init__(*rest)
        self.weights, self.state = torch.eye(64, requires_grad=True), torch.zeros(1, 64)

    def before_backward(self, loss, step):
        for _ in range(0 if self.without else round(self.amount)):
            self.state = torch.tanh(self.state @ self.weights)
        return loss + self.state.sum()

    def backward(self, loss):
        loss.backward(retain_graph=True)


class Stall(Fault):
    named, share_of = ("stalls-recur", "python-between-steps"), "every"

    def after_step(self, model, x, loss, step):
        if step % EVERY == EVERY - 1:
            with self.spent:
                compute(self.amount)


class NanLoss(Fault):
    """From this part of the training on."""

    named = ("loss-not-finite",)

    def before_backward(self, loss, step):
        return loss * float("nan") if step >= self.amount * self.steps else loss


class Resume(Fault):
    named, share_of = ("resume-skips-batches",), "batches"

    def __init__(self, amount, *rest):
        super().__init__(amount, *rest)
        self.skips = int(amount)


class SlowFirstStep(Fault):
    def batch(self, x, step):
        compute(self.amount if step == 0 else 0)
        return x


class FillingUp(Fault):
    """MB in all, which are there after two fifths of the training."""

    seconds = 26

    def after_step(self, model, x, loss, step):
        if step < 0.4 * self.steps:
            self.history.append(torch.ones(round(self.amount * 1e6 / (0.4 * self.steps) / 4)))


class SlowStart(Fault):
    def prepare(self):
        compute(self.amount)


class Curriculum(Fault):
    """Sequences become longer by a plan."""

    def batch(self, x, step):
        return x.repeat(1, 2, 1)[:, : round(x.shape[1] * (0.5 + 1.5 * step / self.steps))]


KINDS = [Healthy, Exchange, ExchangeUnused, LateLoader, LateDisk, LateCompute, LateValidation, UnevenLengths]
KINDS += [KeptGraph, KeptArrays, SlowHistory, SlowGraph, Stall, NanLoss, Resume]
KINDS += [SlowFirstStep, FillingUp, SlowStart, Curriculum]
FAULTS = {re.sub("(?<=.)(?=[A-Z])", "-", kind.__name__).lower(): kind for kind in KINDS}


class Samples(Dataset):
    def __init__(self, model, count, fault):
        self.values, self.count, self.fault = torch.randn(256, *model.sample), count, fault

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        return self.fault.sample(self.values[index % len(self.values)])


def average_gradients(model):
    for parameter in model.parameters():
        dist.all_reduce(parameter.grad)
        parameter.grad /= RANKS


def wrapped(model, options, fault):
    if options.exchange == "fsdp":
        from torch.distributed.fsdp import fully_shard

        return fully_shard(model, mesh=dist.device_mesh.init_device_mesh("cpu", (RANKS,)))
    alone = RANKS == 1 or options.exchange == "by-hand"
    return model if alone else DistributedDataParallel(model, find_unused_parameters=fault.unused)


def train(options):
    torch.manual_seed(RANK)
    fault = FAULTS[options.fault](options.amount, options.steps, options.without)
    model = MODELS[options.model](fault.heavy)
    count = (fault.skips + options.steps) * model.batch
    loader = DataLoader(Samples(model, count, fault), batch_size=model.batch)
    model = wrapped(model, options, fault)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    alone = options.without and fault.heavy
    fault.prepare()
    waiting, skipped_s = Timer(), 0
    begin, memory = time.perf_counter(), resident()
    batches = enumerate(loader, -fault.skips)
    while True:
        with waiting:
            step, x = next(batches, (None, None))
        if step is None:
            break
        if step < 0:
            skipped_s = time.perf_counter() - begin
            continue
        x = fault.batch(x, step)
        with model.no_sync() if alone and options.exchange == "ddp" else contextlib.nullcontext():
            loss = fault.before_backward(model(x), step)
            fault.backward(loss)
        if options.exchange == "by-hand" and not alone:
            average_gradients(model)
        optimizer.step()
        optimizer.zero_grad()
        fault.after_step(model, x, loss, step)
    if not math.isfinite(loss.item()) and options.fault != "nan-loss":
        raise SystemExit("the loss is not finite")
    times = {"train_s": time.perf_counter() - begin, "input_s": waiting.seconds}
    grown_mb = (resident() - memory) / 1e6
    return times | {"fault_s": fault.spent.seconds + skipped_s, "grown_mb": grown_mb}


def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out")
    parser.add_argument("--model", choices=MODELS, required=True)
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--exchange", choices=("ddp", "by-hand", "fsdp"), default="ddp")
    parser.add_argument("--fault", choices=FAULTS, default="healthy")
    parser.add_argument("--amount", type=float, default=0)
    parser.add_argument("--without", action="store_true")
    options = parser.parse_args()
    if RANKS > 1:
        dist.init_process_group("gloo")
    Path(f"{options.out}.{RANK}").write_text(json.dumps(train(options)))
    if RANKS > 1:
        dist.barrier()
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
