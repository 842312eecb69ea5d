"""Distributed training: how work is divided among ranks, and how long this rank waits for the others."""

import os
import statistics
import weakref
from collections import deque

from _unidle_shim.host.exception_origin import pass_on

KINDS = {
    "DataParallel": "data_parallel",
    "DistributedDataParallel": "ddp",
    "FullyShardedDataParallel": "fsdp",
    "DeepSpeedEngine": "deepspeed",
}
_KEPT = 64
_START_UP = 2  # iterations in which ranks also wait for the others' imports, compilation and opening of files
_EARLY = 10  # iterations that DistributedDataParallel always times
_ENOUGH = 8  # times of later iterations that are used without those of the early ones
_EVERY, _EVERY_ON_GPU = 10, 100  # iterations between two that are timed


def shards_itself(model):
    """The name of the wrapper that does to a model what torch's fully_shard does without one; None for other
    models."""
    sharded = any(kind.__name__ == "FSDPModule" for kind in type(model).__mro__)
    return "FullyShardedDataParallel" if sharded else None


def parallel_note(torch, model):
    note = {
        "type": "parallel",
        "kind": KINDS.get(model["wrapper"], "none"),
        "world_size": 1,
        "rank": 0,
        "backend": None,
    }
    try:
        if torch.distributed.is_available() and torch.distributed.is_initialized():
            note.update(
                world_size=torch.distributed.get_world_size(),
                rank=torch.distributed.get_rank(),
                backend=str(torch.distributed.get_backend()),
            )
    except Exception as failure:
        pass_on(failure)
    return note


class Exchange:
    """The waits of one rank, from the times that DistributedDataParallel takes in its first ten iterations
    and then in every tenth; on a GPU, where it waits for the device to read them, in every hundredth. Each is
    read separately, to use their median: the first iterations, in which one rank waits for another's imports,
    distort torch's own mean for long. All ranks time the same iterations, so that their waits can be compared
    one by one."""

    SAMPLED_FIRST = 12  # forward passes until the first ten iterations have been seen
    BETWEEN = 7  # a mask: later looks are eight forward passes apart

    def __init__(self):
        self.model = None
        self.iteration = _START_UP  # the newest one that was read
        self.every = _EVERY_ON_GPU
        self.times = {}  # of an iteration: seconds of waiting, seconds of the whole exchange
        self.stride = 1  # only iterations that it divides are kept, so that the kept ones cover the whole run
        self.per_step = None  # exchanges in an optimiser step
        self.on_cpu = False
        self.waited = deque(maxlen=_KEPT)  # seconds of backward passes in which their thread had no CPU
        self.settings = {}

    def look(self, model, steps=None):
        """Called at a forward pass of `model`, after `steps` optimiser steps; reads the times of an earlier
        iteration."""
        known = self.model() if self.model is not None else None
        if known is not None and known is not model:
            return  # the iterations of another model have other numbers
        try:
            seen = model._get_ddp_logging_data()
            if known is None:
                self._begin(model)
            iteration = seen["iteration"]
            self.settings = _settings_of(seen) or self.settings
            if steps:
                self.per_step = (
                    1 if iteration <= steps <= iteration + self.every else round(iteration / steps, 2)
                )
            if iteration > self.iteration:
                self.iteration = iteration
                self._keep(iteration, seen)
        except Exception as failure:  # a version with other attributes, or another wrapper
            pass_on(failure)

    def _begin(self, model):
        self.model, self.iteration, self.times, self.stride = weakref.ref(model), _START_UP, {}, 1
        if getattr(model, "device_type", None) == "cpu":
            self.on_cpu = True
            if (
                os.environ.get("TORCH_DISTRIBUTED_DEBUG", "OFF") == "OFF"
            ):  # otherwise each timed one is printed
                self.every = _EVERY
                model._set_ddp_runtime_logging_sample_rate(_EVERY)

    def _keep(self, iteration, seen):
        exchange_ns = seen["backward_comm_time"]
        if exchange_ns <= 0 or iteration % self.stride:
            return
        beside_ns = seen["backward_compute_comm_overlap_time"]
        self.times[iteration] = (max(0, exchange_ns - beside_ns) * 1e-9, exchange_ns * 1e-9)
        while len(self.times) > _KEPT:
            self.stride *= 2
            self.times = {each: times for each, times in self.times.items() if each % self.stride == 0}

    def backward_ends(self, wall_ns, cpu_ns):
        """A backward pass on a CPU took so long, and its thread so much CPU time."""
        model = self.model() if self.model is not None else None
        if getattr(model, "require_backward_grad_sync", False):
            self.waited.append(max(0, wall_ns - cpu_ns) * 1e-9)

    def exchange_s(self):
        """Seconds that an exchange adds to a step: the wait, and on a CPU, where it takes time from the
        backward pass beside it, what that takes beyond the CPU time of its thread."""
        whole = statistics.median(whole for _, whole in self._counted().values())
        waited = list(self.waited)
        return max(self.wait_s(), min(whole, statistics.median(waited))) if waited else self.wait_s()

    def _counted(self):
        times = dict(self.times)  # the background thread reads while the training thread adds
        later = {iteration: seconds for iteration, seconds in times.items() if iteration > _EARLY}
        return later if len(later) >= _ENOUGH else times

    def wait_s(self):
        """Seconds per exchange: all of it minus the part that overlaps the backward pass. None if unknown."""
        times = self._counted()
        return statistics.median(wait for wait, _ in times.values()) if times else None

    def note(self, rank):
        times = self._counted()
        if not times:
            return None
        return {
            "type": "rank",
            "rank": rank,
            "wait_seconds": self.wait_s(),
            "exchange_seconds": self.exchange_s(),
            "exchanges_per_step": self.per_step,
            "waits_us": [[iteration, round(wait * 1e6)] for iteration, (wait, _) in sorted(times.items())],
        }


def _settings_of(seen):
    """How DistributedDataParallel exchanges gradients."""
    return {
        "find_unused": bool(seen.get("find_unused_parameters")),
        "static_graph": bool(seen.get("static_graph")),
        "bucket_bytes": seen.get("bucket_cap_bytes"),
        "hook": seen.get("comm_hook") or None,
        "gradient_bytes": seen.get("total_parameter_size_bytes"),
    }
