"""Distributed training: how work is divided among ranks, and how long this rank waits for the others."""

import statistics
from collections import deque

from _unidle_shim.host.exception_origin import pass_on

_KINDS = {
    "DataParallel": "data_parallel",
    "DistributedDataParallel": "ddp",
    "FullyShardedDataParallel": "fsdp",
}
_KEPT = 32
_START_UP = 2  # iterations in which ranks also wait for what the others import, compile or open


def parallel_note(torch, model):
    note = {
        "type": "parallel",
        "kind": _KINDS.get(model["wrapper"], "none"),
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
    """The waits of one rank, by the times that DistributedDataParallel takes itself, of its first ten
    iterations and then of each hundredth. They are taken one by one, for their median: its own mean holds the
    first iterations for long, in which one rank waits for what another still imports."""

    SAMPLED_FIRST = 12  # forward passes until the first ten iterations have been seen

    def __init__(self):
        self.iteration = _START_UP
        self.waits_s = deque(maxlen=_KEPT)

    def look(self, model):
        """At a forward pass of `model`, of the iterations before it."""
        try:
            seen = model._get_ddp_logging_data()
            iteration, exchange = seen["iteration"], seen["backward_comm_time"]
            if iteration > self.iteration and exchange > 0:
                self.iteration = iteration
                self.waits_s.append(max(0, exchange - seen["backward_compute_comm_overlap_time"]) * 1e-9)
        except Exception as failure:  # a version that keeps other books
            pass_on(failure)

    def wait_s(self):
        """Of a step: the exchange less what of it runs beside the backward pass. None where nothing is
        known."""
        return statistics.median(self.waits_s) if self.waits_s else None
