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
_START_UP = 2  # iterations in which ranks also wait for the others' imports, compilation and opening of files


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
    """The waits of one rank, from the times that DistributedDataParallel takes in its first ten iterations
    and then in every hundredth. Each is read separately, to use their median: the first iterations, in
    which one rank waits for another's imports, distort torch's own mean for long."""

    SAMPLED_FIRST = 12  # forward passes until the first ten iterations have been seen

    def __init__(self):
        self.iteration = _START_UP
        self.waits_s = deque(maxlen=_KEPT)

    def look(self, model):
        """Called at a forward pass of `model`; reads the times of earlier iterations."""
        try:
            seen = model._get_ddp_logging_data()
            iteration, exchange = seen["iteration"], seen["backward_comm_time"]
            if iteration > self.iteration and exchange > 0:
                self.iteration = iteration
                self.waits_s.append(max(0, exchange - seen["backward_compute_comm_overlap_time"]) * 1e-9)
        except Exception as failure:  # a version with other attributes
            pass_on(failure)

    def wait_s(self):
        """Seconds per step: the exchange minus the part that overlaps the backward pass. None if unknown."""
        return statistics.median(self.waits_s) if self.waits_s else None
