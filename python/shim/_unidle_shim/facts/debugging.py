"""Debugging aids of torch that slow each step down and are easily left on."""

import os

from _unidle_shim.host import places
from _unidle_shim.host.guard import caught
from _unidle_shim.host.patching import around

_ENOUGH_LOOKS = 7  # the first three passes, and a few of those after them


class Debugging:
    """What is on while the program trains."""

    def __init__(self):
        self.looks = self.profiled = 0  # of the training thread at its passes; those that found a profiler
        self.anomaly = None  # whether autograd looked for anomalies when last looked at
        self.where = None  # file:line that switched that on

    def install(self, torch):
        def before(args, kwargs):
            try:
                if args and args[0]:
                    self.where = places.here(1)
            except BaseException as failure:
                caught(failure)

        around(torch, "set_anomaly_enabled", before, None)  # both context managers call it

    def look(self, torch):
        self.anomaly = torch.is_anomaly_enabled()
        self.looks += 1
        self.profiled += torch.autograd._profiler_enabled()

    def notes(self):
        if self.anomaly is not None:
            yield (
                ("debugging",),
                {
                    "type": "debugging",
                    "anomaly": self.anomaly,
                    # One with a schedule is off at some of the looks, which are far apart.
                    "profiler": self.profiled == self.looks and self.looks >= _ENOUGH_LOOKS,
                    "launch_blocking": _is_on("CUDA_LAUNCH_BLOCKING") or _is_on("HIP_LAUNCH_BLOCKING"),
                    "checked_collectives": os.environ.get("TORCH_DISTRIBUTED_DEBUG", "").upper() == "DETAIL",
                    "where": self.where if self.anomaly else None,
                },
            )


def _is_on(name):
    return os.environ.get(name, "0") not in ("", "0")
