#!/usr/bin/env python3
"""A training step of `superres` exported once and compiled by AOTInductor, compared with other ways.

The exported step is the whole forward and backward pass as one package that a C++ program can run
(torch::inductor::AOTIModelPackageLoader); torch's fused AdamW does the update, as in all ways. The ways
run some steps alternately in one process on the same batches; the engine runs in between as a program of
its own. All except the engine have their batch in memory.

    bench/exported_step.py [--rounds 7] [--steps 20] [--threads 2] [--json]

"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import torch
import torch.nn.functional as F
from common.workload_runs import TRAINER, config_of, machine, prepare, training
from peers.superres import Net, make_optimizer
from torch.fx.experimental.proxy_tensor import make_fx

BATCH, SIZE = 4, 128


def batch_of_noise():
    low = torch.rand(BATCH, 3, SIZE // 4, SIZE // 4)
    high = torch.rand(BATCH, 3, SIZE, SIZE)
    return tuple(each.contiguous(memory_format=torch.channels_last) for each in (low, high))


class Way:
    """A separate model with its optimiser."""

    def __init__(self):
        torch.manual_seed(1)
        self.model = Net().to(memory_format=torch.channels_last)
        self.optimizer = make_optimizer(self.model, fused=True)

    def update(self):
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)


class Eager(Way):
    def __init__(self, compiled=False):
        super().__init__()
        self.forward = torch.compile(self.model) if compiled else self.model

    def step(self, low, high):
        loss = F.mse_loss(self.forward(low), high)
        loss.backward()
        self.update()
        return loss.detach()


class Exported(Way):
    """Forward and backward as one graph of ATen operations: takes parameters, returns loss and gradients."""

    def __init__(self, folder):
        super().__init__()
        self.parameters = dict(self.model.named_parameters())
        self.buffers = dict(self.model.named_buffers())
        names = list(self.parameters)

        def step(parameters, buffers, low, high):
            state = dict(zip(names, parameters)) | dict(zip(self.buffers, buffers))
            loss = F.mse_loss(torch.func.functional_call(self.model, state, (low,)), high)
            return (loss.detach(), *torch.autograd.grad(loss, parameters))

        self.package = os.path.join(folder, "step.pt2")
        inputs = (list(self.parameters.values()), list(self.buffers.values()), *batch_of_noise())
        graph = make_fx(step, tracing_mode="fake", _allow_non_fake_inputs=True)(*inputs)
        detached = tuple(
            [each.detach() for each in part] if isinstance(part, list) else part for part in inputs
        )
        with torch.no_grad():
            program = torch.export.export(graph, detached)
        torch._inductor.aoti_compile_and_package(program, package_path=self.package)
        self.run = torch._inductor.aoti_load_package(self.package)
        self.state = ([each.detach() for each in detached[0]], [each.detach() for each in detached[1]])

    def step(self, low, high):
        loss, *gradients = self.run(*self.state, low, high)
        for parameter, gradient in zip(self.parameters.values(), gradients):
            parameter.grad = gradient
        self.update()
        return loss


def engine_rate(trainer, folder, steps, threads):
    """Returns the steps per second of the engine's own loop."""
    config = config_of("superres")
    settings = [f"data.folder={folder}/superres", "device=cpu", f"cpu.threads={threads}"]
    if not os.path.isdir(os.path.join(folder, "superres")):
        prepare(config, *settings, trainer=trainer)
    command = training(config, *settings, f"train.samples={BATCH * (steps + 8)}", trainer=trainer)
    answer = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return json.loads(answer)["samples_per_s"] / BATCH


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--trainer", default=TRAINER)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    with tempfile.TemporaryDirectory() as folder:
        ways = {
            "eager": Eager(),
            "torch.compile": Eager(compiled=True),
            "exported, AOTInductor": Exported(folder),
        }
        batches = [batch_of_noise() for _ in range(4)]
        losses = {}
        for name, way in ways.items():
            losses[name] = [way.step(*batches[i % 4]).item() for i in range(5)]
            print(f"{name}: losses {losses[name]}", file=sys.stderr)
        rates = {name: [] for name in ways}
        ours = []
        for number in range(args.rounds):
            for name in list(ways) if number % 2 == 0 else reversed(list(ways)):
                begin = time.perf_counter()
                for i in range(args.steps):
                    ways[name].step(*batches[i % 4])
                rates[name].append(args.steps / (time.perf_counter() - begin))
            ours.append(engine_rate(args.trainer, folder, args.steps, args.threads))
    middle = {name: statistics.median(values) for name, values in rates.items()}
    best = max(middle, key=middle.get)
    pairs = [own / other for own, other in zip(ours, rates[best])]
    row = {
        "name": "superres step, exported or not",
        "unit": "steps/s",
        "ours": statistics.median(ours),
        "peers": middle,
        "ratio": statistics.median(pairs),
        "ratio_low": min(pairs),
        "ratio_high": max(pairs),
        "machine": machine(),
    }
    if args.json:
        print(json.dumps(row))
        return
    print(f"engine, fused operations of its own: {row['ours']:.1f} steps/s")
    for name, rate in middle.items():
        print(f"{name}: {rate:.1f} steps/s")
    print(f"engine against {best}: {row['ratio']:.2f} ({min(pairs):.2f}-{max(pairs):.2f}); {row['machine']}")


if __name__ == "__main__":
    main()
