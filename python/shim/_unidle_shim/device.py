"""How long the device itself was busy with a step: events of a pool on the current stream, asked for and never waited for."""

from collections import deque

from . import off, probe
from .loop import now

_POOL = 64


class DeviceTimer:
    """`make` returns an event with record(), query() and elapsed_time(other) in ms; `capturing` tells whether the stream is
    being captured, when nothing may be recorded. Tests pass fakes."""

    def __init__(self, state, make, capturing):
        self.state, self.capturing = state, capturing
        self.free = [(make(), make()) for _ in range(_POOL)]
        self.open = None
        self.waiting = deque()
        self.missed = 0

    def begin(self, step):
        """The first forward pass of a step begins."""
        if self.open is not None:
            return
        self.collect()
        if not self.free or self.capturing():
            self.missed += 1
            return
        pair = self.free.pop()
        pair[0].record()
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
        pair[1].record()
        self.waiting.append((step, t_ns, pair))

    def collect(self):
        while self.waiting and self.waiting[0][2][1].query():
            step, t_ns, pair = self.waiting.popleft()
            milliseconds = pair[0].elapsed_time(pair[1])
            self.state.ring.emit(probe.DEVICE, t_ns, max(0, int(milliseconds * 1e6)), step)
            self.free.append(pair)


def begin(state):
    """A timer where the program has started CUDA by itself; None elsewhere."""
    torch = state.torch
    try:
        cuda = torch.cuda
        if not cuda.is_initialized():
            return None
        return DeviceTimer(state, lambda: cuda.Event(enable_timing=True), cuda.is_current_stream_capturing)
    except Exception as failure:
        off(failure)
        return None


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
        yield ("device",), {
            "type": "device", "kind": "rocm" if getattr(torch.version, "hip", None) else "cuda", "index": index, "name": properties.name,
            "capability": "%d.%d" % (properties.major, properties.minor), "memory_bytes": properties.total_memory,
            "allocated_peak_bytes": memory.get("allocated_bytes.all.peak"), "reserved_peak_bytes": memory.get("reserved_bytes.all.peak"),
            "alloc_retries": memory.get("num_alloc_retries"), "ooms": memory.get("num_ooms")}
    except (RuntimeError, AttributeError, ValueError):
        return
