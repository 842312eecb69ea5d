"""Measures how long the device worked for each step, with CUDA events on the model's stream.

The events are reused. They are queried, never waited for. A span of work goes from the first forward pass of
a step, including those of a frozen network, to the end of its optimiser step, and includes the gaps between
kernels. The time between two spans is measured from event to event:

- If the device has not finished the first span when the host begins the second, it has worked all the time,
  on whatever the program has queued in between.
- Otherwise it was idle, except for work that was queued before the host waited for it, and work that it did
  after the host began the next span. A copy that the host waits for does not count as work.

A span of work includes the time in which the device waits for the host to launch the next kernel. So the
timer also counts the steps in which the device kept up with the host: there the host was the limit, and the
spans are no evidence of a busy device.
"""

import ctypes
import os
from collections import deque

from _unidle_shim.host import event_kinds
from _unidle_shim.host.exception_origin import pass_on
from _unidle_shim.loop.loop import now

_POOL = 64
_MOST_STEPS = 4096  # finished steps that wait for the device


class Span:
    """The work for one optimiser step. Events: its begin, the end of the work queued before the optimiser,
    its end, and the end of the copies after it. Times are host times."""

    def __init__(self, make):
        self.first, self.queued, self.last, self.copied = make(), make(), make(), make()
        self.start(None, 0)

    def start(self, before, waits):
        self.before = before  # the previous span; None: the time between them is unknown
        self.followed = False  # the next span is measured from the end of this one
        self.at_work = False  # the device had not finished the previous span when this one began
        self.waits = waits
        self.asked = False
        self.begin_ns = self.end_ns = 0
        self.waited = self.has_copied = False  # since the end: the host waited; there were copies
        self.drained_ns = 0  # when the host knew that all was done
        self.pauses = None
        self.void = False

    def is_done(self):
        events = [self.last, self.first]
        if self.before is not None and self.before.has_copied:
            events.append(self.before.copied)
        return all(event.query() for event in events)

    def measured(self):
        """(ns of work, ns since the end of the previous span); None if validation or saving came between."""
        before = self.before
        if before is None or before.pauses != self.pauses:
            return None
        span_ns, between_ns = _ns(self.first, self.last), _ns(before.last, self.first)
        return span_ns + between_ns - self._idle_ns(between_ns), span_ns + between_ns

    def _idle_ns(self, between_ns):
        if self.at_work:
            return 0
        before, copies_ns = self.before, 0
        if before.has_copied:
            copies_ns = min(between_ns, _ns(before.last, before.copied))
        rest_ns = between_ns - copies_ns
        if before.drained_ns:
            # The device reached the begin later than the host: it was busy with work queued just before.
            rest_ns = min(rest_ns, self.begin_ns - before.drained_ns)
        return copies_ns + max(0, rest_ns)


class Missed:
    """A span that was not measured."""

    def __init__(self, end_ns):
        self.end_ns = end_ns


class DeviceTimer:
    """`make` returns an event with record(stream), query() and elapsed_time(other) in ms. `stream` is the
    stream on which the model's work is now queued. `capturing` returns whether a stream is being captured:
    then the device must not be queried and nothing recorded. `waits` counts how often the host has waited for
    the device. `pauses` changes with each validation and checkpoint. Tests pass fakes.

    If the device rejects a call (RuntimeError), the span counts as missed and observation continues.
    """

    def __init__(self, state, make, stream, capturing, waits, pauses):
        self.state, self.stream, self.capturing = state, stream, capturing
        self.waits, self.pauses = waits, pauses
        self.free = [Span(make) for _ in range(_POOL)]
        self.open = None
        self.latest = None  # the span that ended last; its end may still move
        self.waiting = deque()  # Span, whose work may be unfinished, or Missed
        self.done = deque()  # (begin, end, measured) of spans whose step may not be over
        self.over = deque()  # (step, begin, end) of finished steps that are not yet reported
        self.missed = 0
        self.asked = self.kept_up = 0  # steps whose device was checked, and those in which it had kept up

    def begin(self):
        """A forward pass begins: the first of a step, the first after an optimiser step, or another."""
        if self.open is not None:
            return
        capturing = self.capturing()
        if not capturing:
            self.collect()
        before, self.latest = self.latest, None
        if capturing or not self.free:
            return
        self.open = span = self.free.pop()
        span.start(before, self.waits())
        if before is not None:
            before.followed = True
        try:
            span.at_work = before is not None and not before.last.query()
            span.first.record(self.stream())
        except RuntimeError as failure:
            pass_on(failure)
            span.void = True
        span.begin_ns = now()

    def queued(self):
        """As far as known, all work of a step except the optimiser's is queued."""
        span = self.open
        if span is not None and span.waits == self.waits() and not self.capturing():
            self._record(span.queued, span)
            span.asked = True

    def is_asked(self):
        """Whether `queued` was already called for the open span."""
        return self.open is not None and self.open.asked

    def may_wait(self, args):
        """A tensor is read within an optimiser, for example by a gradient scaler: the host may wait, which
        would make the device finish all its work."""
        span = self.open
        if span is not None and not (args and args[0].is_cpu):
            if not self.capturing():
                self._look(span)
            span.waits = -1

    def end(self, t_ns):
        """An optimiser step was enqueued at host time `t_ns`."""
        span, self.open = self.open, None
        capturing = self.capturing()
        if span is None:
            if self.latest is None:
                self._miss(t_ns)
            elif not capturing:  # a second optimiser
                self._record(self.latest.last, self.latest)
            return
        if capturing:
            self._give_up(span, t_ns)
            return
        self._look(span)
        self._record(span.last, span)
        span.end_ns, span.pauses = t_ns, self.pauses()
        self.latest = span
        self.waiting.append(span)

    def wait_begins(self):
        """The host is about to wait for the device: queued work belongs to the step that has ended."""
        latest = self.latest
        if latest is not None and self.open is None and not latest.waited and not self.capturing():
            latest.waited = True
            self._record(latest.last, latest)

    def wait_ends(self, t_ns):
        """The device has done all work that was queued when the wait began."""
        latest = self.latest
        if latest is not None and self.open is None and not latest.drained_ns:
            latest.drained_ns = t_ns

    def copy_ends(self, t_ns):
        """The host has waited for a copy to the device."""
        latest = self.latest
        if latest is not None and self.open is None and not self.capturing():
            latest.has_copied, latest.drained_ns = True, t_ns
            self._record(latest.copied, latest)

    def drop(self):
        """The next steps are only marked, so the end of the open span would not be seen."""
        span, self.open, self.latest = self.open, None, None
        if span is not None:
            self._give_up(span, now())

    def finish(self):
        """The process ends."""
        self.drop()
        if not self.capturing():
            self.collect()

    def step_over(self, step, begin_ns, end_ns):
        """A step was written: spans that ended in it belong to it. There may be several, one per optimiser.
        Does not query the device."""
        if (self.waiting or self.done) and len(self.over) < _MOST_STEPS:
            self.over.append((step, begin_ns, end_ns))

    def collect(self):
        while self.waiting and self.waiting[0] is not self.latest:
            span = self.waiting[0]
            if isinstance(span, Missed):
                self.done.append((span.end_ns, span.end_ns, None))
            else:
                measured = None
                try:
                    if not (span.void or span.is_done()):
                        break
                    measured = None if span.void else span.measured()
                except RuntimeError as failure:
                    pass_on(failure)
                self.done.append((span.begin_ns, span.end_ns, measured))
                self._release(span)
            self.waiting.popleft()
        while self.over and not (self.waiting and self.waiting[0].end_ns <= self.over[0][2]):
            self._tell(*self.over.popleft())

    def _tell(self, step, begin_ns, end_ns):
        spans = []
        while self.done and self.done[0][1] <= end_ns:
            span = self.done.popleft()
            if span[1] > begin_ns:
                spans.append(span)
        if spans and all(measured is not None for _, _, measured in spans):
            work_ns, period_ns = (sum(each) for each in zip(*(measured for _, _, measured in spans)))
            self.state.ring.emit(event_kinds.DEVICE, spans[0][0], work_ns, step, period_ns)

    def _look(self, span):
        """Counts whether the device has kept up, unless the host has waited meanwhile: that alone would
        do."""
        if not span.asked or span.waits != self.waits():
            return
        try:
            kept_up = bool(span.queued.query())
        except RuntimeError as failure:
            pass_on(failure)
            return
        self.asked += 1
        self.kept_up += kept_up

    def _record(self, event, span):
        try:
            event.record(self.stream())
        except RuntimeError as failure:
            pass_on(failure)
            span.void = True

    def _release(self, span):
        """Reuses the events of a span once the time from its end has been measured."""
        if span.before is not None:
            self.free.append(span.before)
            span.before = None
        if not span.followed:
            self.free.append(span)

    def _give_up(self, span, t_ns):
        self.missed += 1
        span.void, span.end_ns = True, t_ns
        self.waiting.append(span)

    def _miss(self, t_ns):
        self.missed += 1
        if len(self.waiting) < _MOST_STEPS:
            self.waiting.append(Missed(t_ns))


def _ns(earlier, later):
    return max(0, int(earlier.elapsed_time(later) * 1e6))


def begin(state):
    """Returns a timer on the model's device if the program itself has started CUDA and uses that device;
    otherwise None."""
    torch, device = state.torch, state.facts.device_now()
    cuda = torch.cuda
    # Nothing is on a device without allocated memory: making an event there would create a context.
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

    # An event belongs to the device of the stream on which it is first recorded.
    timer = DeviceTimer(
        state,
        lambda: cuda.Event(enable_timing=True),
        lambda: cuda.current_stream(device),
        _captured_on(cuda, device),
        waits,
        lambda: (state.loop.validations, state.loop.saved_at),
    )
    # Never freed: destroying an event fails in a forked process, and after the driver has shut down.
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(timer))
    return timer


def _captured_on(cuda, device):
    """Querying another device's current stream may create a context there, which takes its memory."""
    captured = getattr(cuda, "is_current_stream_capturing", None)
    if captured is None:
        return lambda: False
    current, switched = cuda.current_device, cuda.device

    def capturing():
        try:
            if current() == device.index:
                return captured()
            with switched(device):
                return captured()
        except RuntimeError as failure:  # the device is lost: it must not be queried
            pass_on(failure)
            return True

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
    """The MIG slice. In MIG mode a process uses one slice, the first that is visible to it."""
    first = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")[0].strip()
    return first if first.startswith("MIG-") else None


def _uuid(properties):
    """In NVML's form. Older torch does not have it."""
    found = getattr(properties, "uuid", None)
    return None if found is None else "GPU-" + str(found)


def _pci(properties):
    parts = [getattr(properties, name, None) for name in ("pci_domain_id", "pci_bus_id", "pci_device_id")]
    return None if None in parts else "%04x:%02x:%02x.0" % tuple(parts)
