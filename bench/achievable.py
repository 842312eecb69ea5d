#!/usr/bin/env python3
"""How much of the machine's arithmetic throughput a training step of the engine reaches, per workload.

The matrix products, convolutions and recurrent layers of one step, forward and backward, are taken from
the workload's Python program with their shapes, layouts and number formats. Each is then run alone,
repeatedly on the same warm operands; its best time over all rounds is what the machine can do. The sum of
these times relative to the time of a whole engine step is the achieved share; the rest of the step
(element-wise operations, normalisation, optimiser, data, launches) is what is missing to 100 %. A share
above 100 % means that the engine runs an operation faster than PyTorch alone.

    bench/achievable.py [WORKLOAD ...] [--rounds 3] [--samples N] [--json]

"""

import importlib
import json
import os
import subprocess
import sys
import tempfile
import time
from types import SimpleNamespace

from common.workload_runs import (
    ROOT,
    TRAINER,
    alternate,
    arguments,
    config_of,
    prepare,
    row,
    training,
)
from engine_parity import CASES, KEEP_MEMORY

ARITHMETIC = ("convolution", "mm", "addmm", "bmm", "baddbmm", "mkldnn_rnn_layer", "flash_attention")
# Number format and threads of tuned.yaml, or what engine_parity finds to be faster.
SETTINGS = {
    "superres": ("off", 0),
    "timeseries": ("off", 0),
    "recsys": ("off", 1),
    "keypoint": ("bf16", 0),
    "protein": ("bf16", 0),
}
SECONDS_EACH = 0.05  # an operation is repeated for this long, at least five times


def is_arithmetic(name):
    name = name.removeprefix("aten::").removeprefix("_scaled_dot_product_").removesuffix("_backward")
    return name.removesuffix("_overrideable").removesuffix("_for_cpu") in ARITHMETIC


def first_step(workload, data, amp):
    """Returns the loss of the Python program's first batch, as a function without arguments, and its
    samples."""
    sys.path.insert(0, os.path.join(ROOT, "bench", "peers"))
    import torch

    torch.manual_seed(1)
    peer = importlib.import_module(workload)
    if workload == "superres":
        model = peer.Net().to(memory_format=torch.channels_last)
        low, high = (
            torch.rand(4, 3, side, side).contiguous(memory_format=torch.channels_last) for side in (32, 128)
        )
        return lambda: torch.nn.functional.mse_loss(model(low), high), 4
    options = peer.options()
    command = ["--mode", "tuned", "--data", data, "--amp", amp]
    if workload == "protein":
        command += ["--batch", "16", "--accumulation", "1"]
    args = options.parse_args(command)
    task = peer.make_task(args)
    batch = next(task.batches)

    def loss():
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=amp == "bf16"):
            return task.loss(*batch)

    return loss, args.batch


def operations_of(loss):
    """Returns the arithmetic of one step: a list of (operation, its arguments, number of occurrences)."""
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode

    def shape_of(value):
        if isinstance(value, torch.Tensor):
            return value.shape, value.stride(), value.dtype
        return tuple(map(shape_of, value)) if isinstance(value, (list, tuple)) else value

    seen = {}

    class Taking(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            if is_arithmetic(function.name().split(".")[0]):
                entry = seen.setdefault(str((function, shape_of(args))), [function, args, kwargs or {}, 0])
                entry[3] += 1
            return function(*args, **(kwargs or {}))

    loss().backward()  # warm-up: excludes one-time work
    with Taking():
        loss().backward()
    return list(seen.values())


def best_time(function, args, kwargs):
    times, begin = [], time.perf_counter()
    while len(times) < 5 or time.perf_counter() - begin < SECONDS_EACH:
        before = time.perf_counter()
        function(*args, **kwargs)
        times.append(time.perf_counter() - before)
    return min(times)


def alone(workload, data, amp, threads):
    """Prints the seconds per sample that the arithmetic alone takes, and its kinds of operations."""
    import torch

    if threads:
        torch.set_num_threads(threads)
    loss, samples = first_step(workload, data, amp)
    operations = operations_of(loss)
    kinds = {}
    with torch.no_grad():
        for function, args, kwargs, count in operations:
            name = function.name().removeprefix("aten::").split(".")[0]
            kinds[name] = kinds.get(name, 0.0) + count * best_time(function, args, kwargs) / samples
    print(json.dumps(kinds))


def measured(side):
    """Returns the seconds per sample of one side: the engine's step, or the arithmetic alone."""
    environment = os.environ | side.environment
    finished = subprocess.run(side.command, env=environment, capture_output=True, text=True)
    if finished.returncode != 0:
        sys.exit(f"achievable: {' '.join(side.command)} failed:\n{finished.stderr}")
    told = json.loads(finished.stdout.strip().splitlines()[-1])
    return 1 / told["samples_per_s"] if "samples_per_s" in told else sum(told.values())


def compare(workload, args, folder):
    amp, threads = SETTINGS[workload]
    data = os.path.join(folder, workload)
    config = config_of(workload)
    samples = args.samples or CASES[workload].samples
    common = [f"data.folder={data}", f"cache.folder={folder}/cache", f"train.samples={samples}", "device=cpu"]
    prepare(config, *common)
    settings = [f"precision.amp={amp}", f"cpu.threads={threads}"]
    ours = SimpleNamespace(command=training(config, *common, *settings, trainer=TRAINER), environment={})
    command = [sys.executable, os.path.abspath(__file__), "--alone", workload, data, amp, str(threads)]
    rounds = alternate(
        args.rounds, [ours, SimpleNamespace(command=command, environment=KEEP_MEMORY)], measured
    )
    best = min(arithmetic for _, arithmetic in rounds)  # the best round is the machine's capability
    in_us = [(step * 1e6, best * 1e6) for step, _ in rounds]
    name = f"{workload}, {'fp32' if amp == 'off' else amp}"
    return row(name, "us a sample", in_us, "its arithmetic alone", lambda step, alone: alone / step)


def main():
    if sys.argv[1:2] == ["--alone"]:  # one side, in a separate process
        workload, data, amp, threads = sys.argv[2:]
        alone(workload, data, amp, int(threads))
        return
    parser = arguments(__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--samples", type=int, help="of a run; each workload has its own number")
    args = parser.parse_args()
    if unknown := [name for name in args.workloads if name not in CASES]:
        parser.error(f"no workload {unknown[0]}; there are: {', '.join(CASES)}")
    with tempfile.TemporaryDirectory() as folder:
        rows = [compare(workload, args, folder) for workload in args.workloads or CASES]
    if args.json:
        print(json.dumps(rows))
        return
    print(f"{'us a sample':20} {'step':>10} {'arithmetic alone':>17} {'share':>6}  range")
    for entry in rows:
        share, low, high = entry["ratio"], entry["ratio_low"], entry["ratio_high"]
        (arithmetic,) = entry["peers"].values()
        print(
            f"{entry['name']:20} {entry['ours']:10.1f} {arithmetic:17.1f} {share:6.0%}  {low:.0%}-{high:.0%}"
        )
    print(rows[0]["machine"])


if __name__ == "__main__":
    main()
