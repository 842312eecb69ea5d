"""Measures how long the device was busy with a step, by CUDA events on the model's stream.

The events are reused. They are queried, never waited for.
"""

import ctypes
from collections import deque

from _unidle_shim.host import probe
from _unidle_shim.loop.loop import now

_POOL = 64


class DeviceTimer:
    """`make` returns an event with record(stream), query() and elapsed_time(other) in ms; `stream` is the one
    that the model's work is queued on now; `capturing` tells whether some stream is being captured, when
    nothing may be asked of the device and nothing recorded. Tests pass fakes."""

    def __init__(self, state, make, stream, capturing):
        self.state, self.stream, self.capturing = state, stream, capturing
        self.free = [(make(), make()) for _ in range(_POOL)]
        self.open = None
        self.waiting = deque()
        self.missed = 0

    def begin(self, step):
        """The first forward pass of a step begins."""
        if self.open is not None:
            return
        if self.capturing():
            self.missed += 1
            return
        self.collect()
        if not self.free:
            self.missed += 1
            return
        pair = self.free.pop()
        pair[0].record(self.stream())
        self.open = (step, now(), pair)

    def end(self):
        """An optimiser step was enqueued."""
        if self.open is None:
            return
        step, t_ns, pair = self.open
        self.open = None
        if self.capturing():
            self.free.append(pair)
            return
        pair[1].record(self.stream())
        self.waiting.append((step, t_ns, pair))

    def collect(self):
        while self.waiting and self.waiting[0][2][1].query():
            step, t_ns, pair = self.waiting.popleft()
            milliseconds = pair[0].elapsed_time(pair[1])
            self.state.ring.emit(probe.DEVICE, t_ns, max(0, int(milliseconds * 1e6)), step)
            self.free.append(pair)


def begin(state):
    """A timer on the device of the model, where the program has started CUDA by itself and uses that device;
    None elsewhere."""
    torch, model = state.torch, state.facts.model_note
    cuda = torch.cuda
    if model is None or not cuda.is_initialized():
        return None
    device = torch.device(model["device"] or "cpu")
    # Nothing has been put on a device without memory: to make an event there would make a context.
    if device.type != "cuda" or not cuda.memory_reserved(device):
        return None
    captured = getattr(cuda, "is_current_stream_capturing", lambda: False)
    # An event belongs to the device that it is first recorded on, and that is the one of the stream that it
    # is given.
    timer = DeviceTimer(
        state, lambda: cuda.Event(enable_timing=True), lambda: cuda.current_stream(device), captured
    )
    # Never freed: in a process that was forked, or after the driver has shut down, the end of an event would
    # be an error.
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(timer))
    return timer


def notes(state, settings):
    torch, model = state.torch, state.facts.model_note
    kind = str(model["device"]) if model else None
    if kind is None:
        return
    if kind == "cpu" or not torch.cuda.is_initialized():
        yield ("device",), {"type": "device", "kind": "cpu", "index": 0, "name": None}
        return
    try:
        index = torch.cuda.current_device() if ":" not in kind else int(kind.split(":")[1])
        properties = torch.cuda.get_device_properties(index)
        memory = torch.cuda.memory_stats(index)
        yield (
            ("device",),
            {
                "type": "device",
                "kind": "rocm" if getattr(torch.version, "hip", None) else "cuda",
                "index": index,
                "name": properties.name,
                "capability": "%d.%d" % (properties.major, properties.minor),
                "memory_bytes": properties.total_memory,
                "allocated_peak_bytes": memory.get("allocated_bytes.all.peak"),
                "reserved_peak_bytes": memory.get("reserved_bytes.all.peak"),
                "alloc_retries": memory.get("num_alloc_retries"),
                "ooms": memory.get("num_ooms"),
            },
        )
    except (RuntimeError, AttributeError, ValueError):
        return
