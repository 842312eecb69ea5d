"""Measures how long the device was busy with a step, by CUDA events on the model's stream.

The events are reused. They are queried, never waited for. A span goes from the first forward pass to the end
of an optimiser's step. It includes the time in which the device waits for the host to launch the next kernel.
So the timer also tells in how many steps the device had kept up with the host: then the host was the limit,
and the spans are no evidence of a busy device.
"""

import ctypes
import os
from collections import deque

from _unidle_shim.host import event_kinds
from _unidle_shim.host.whose import pass_on
from _unidle_shim.loop.loop import now

_POOL = 64
_MOST_STEPS = 4096  # that are over and wait for the device


class Span:
    """Three events: of the begin, of what was queued before the optimiser, and of the end."""

    def __init__(self, make):
        self.first, self.before_optimizer, self.last = make(), make(), make()
        self.t_ns = 0  # when the host came to the begin
        self.waits = 0
        self.asked = False


class Missed:
    """A span that was not measured."""

    def __init__(self, t_ns):
        self.t_ns = t_ns


class DeviceTimer:
    """`make` returns an event with record(stream), query() and elapsed_time(other) in ms; `stream` is the one
    that the model's work is queued on now; `capturing` tells whether some stream is being captured, when
    nothing may be asked of the device and nothing recorded; `waits` counts how often the host has waited for
    the device. Tests pass fakes."""

    def __init__(self, state, make, stream, capturing, waits):
        self.state, self.stream, self.capturing, self.waits = state, stream, capturing, waits
        self.free = [Span(make) for _ in range(_POOL)]
        self.open = None
        self.waiting = deque()  # Span, whose work may go on, or Missed
        self.done = deque()  # (begin on the host, ns; None: not measured) of spans whose step may go on
        self.over = deque()  # (step, begin, end) of steps that are over, and not told of
        self.missed = 0
        self.asked = self.kept_up = 0  # steps whose device was looked at, and those in which it had kept up

    def begin(self):
        """The first forward pass of a step begins, or the first one after an optimiser's step."""
        if self.open is not None:
            return
        if self.capturing():
            self._miss()
            return
        self.collect()
        if not self.free:
            self._miss()
            return
        span = self.free.pop()
        span.t_ns, span.waits, span.asked = now(), self.waits(), False
        span.first.record(self.stream())
        self.open = span

    def before_optimizer(self):
        """An optimiser begins its step."""
        span = self.open
        if span is not None and not span.asked and span.waits == self.waits() and not self.capturing():
            span.before_optimizer.record(self.stream())
            span.asked = True

    def may_have_waited(self, args):
        """Something is read within an optimiser, as a gradient scaler does; that is no wait of the loop."""
        if self.open is not None and not (args and args[0].is_cpu):
            self.open.waits = -1

    def end(self):
        """An optimiser step was enqueued."""
        span, self.open = self.open, None
        if span is None:
            return
        if self.capturing():
            self.free.append(span)
            self._miss()
            return
        if span.asked and span.waits == self.waits():
            # Where the host has waited meanwhile, the device has kept up for that reason.
            self.asked += 1
            self.kept_up += bool(span.before_optimizer.query())
        span.last.record(self.stream())
        self.waiting.append(span)

    def drop(self):
        """The next steps are only marked: the end of the span that is open would not be seen."""
        span, self.open = self.open, None
        if span is not None:
            self.free.append(span)

    def step_over(self, step, begin_ns, end_ns):
        """A step was written: spans that began in it are its own. It may have several, one for each
        optimiser. Asks nothing of the device."""
        if (self.waiting or self.done) and len(self.over) < _MOST_STEPS:
            self.over.append((step, begin_ns, end_ns))

    def collect(self):
        while self.waiting and (isinstance(self.waiting[0], Missed) or self.waiting[0].last.query()):
            span = self.waiting.popleft()
            if isinstance(span, Missed):
                self.done.append((span.t_ns, None))
                continue
            self.done.append((span.t_ns, max(0, int(span.first.elapsed_time(span.last) * 1e6))))
            self.free.append(span)
        while self.over and not (self.waiting and self.waiting[0].t_ns < self.over[0][2]):
            self._tell(*self.over.popleft())

    def _tell(self, step, begin_ns, end_ns):
        spans = []
        while self.done and self.done[0][0] < end_ns:
            span = self.done.popleft()
            if span[0] >= begin_ns:
                spans.append(span)
        if spans and all(ns is not None for _, ns in spans):
            self.state.ring.emit(event_kinds.DEVICE, spans[0][0], sum(ns for _, ns in spans), step)

    def _miss(self):
        self.missed += 1
        if len(self.waiting) < _MOST_STEPS:
            self.waiting.append(Missed(now()))


def begin(state):
    """A timer on the device of the model, where the program has started CUDA by itself and uses that device;
    None elsewhere."""
    torch, device = state.torch, state.facts.device_now()
    cuda = torch.cuda
    # Nothing has been put on a device without memory: to make an event there would make a context.
    if (
        device is None
        or device.type != "cuda"
        or not cuda.is_initialized()
        or not cuda.memory_reserved(device)
    ):
        return None

    def waits():
        parts = state.loop.parts
        return parts.syncs if parts is not None else 0

    # An event belongs to the device that it is first recorded on, and that is the one of the stream that it
    # is given.
    timer = DeviceTimer(
        state,
        lambda: cuda.Event(enable_timing=True),
        lambda: cuda.current_stream(device),
        _captured_on(cuda, device),
        waits,
    )
    # Never freed: in a process that was forked, or after the driver has shut down, the end of an event would
    # be an error.
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(timer))
    return timer


def _captured_on(cuda, device):
    """To ask for another device's current stream may make a context there, which takes its memory."""
    captured = getattr(cuda, "is_current_stream_capturing", None)
    if captured is None:
        return lambda: False
    current, switched = cuda.current_device, cuda.device

    def capturing():
        if current() == device.index:
            return captured()
        with switched(device):
            return captured()

    return capturing


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
    except (RuntimeError, AttributeError, ValueError) as failure:
        pass_on(failure)
        return
    timer = state.device
    yield (
        ("device",),
        {
            "type": "device",
            "kind": "rocm" if getattr(torch.version, "hip", None) else "cuda",
            "index": index,
            "name": properties.name,
            "uuid": _slice_shown() or _uuid(properties),
            "pci": _pci(properties),
            "capability": "%d.%d" % (properties.major, properties.minor),
            "memory_bytes": properties.total_memory,
            "allocated_peak_bytes": memory.get("allocated_bytes.all.peak"),
            "reserved_peak_bytes": memory.get("reserved_bytes.all.peak"),
            "alloc_retries": memory.get("num_alloc_retries"),
            "ooms": memory.get("num_ooms"),
            "looked_at": timer.asked if timer is not None else None,
            "kept_up": timer.kept_up if timer is not None else None,
        },
    )


def _slice_shown():
    """In MIG mode a process has one slice: the first that it is shown."""
    first = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")[0].strip()
    return first if first.startswith("MIG-") else None


def _uuid(properties):
    """As NVML says it. Older torch does not tell."""
    found = getattr(properties, "uuid", None)
    return None if found is None else "GPU-" + str(found)


def _pci(properties):
    parts = [getattr(properties, name, None) for name in ("pci_domain_id", "pci_bus_id", "pci_device_id")]
    return None if None in parts else "%04x:%02x:%02x.0" % tuple(parts)
