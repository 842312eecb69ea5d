"""Patches of the calls that make the host wait for the device, and of copies to it.

Where the device is the CPU nothing is waited for: such calls are counted, with the line they come from, and take no
share of the step. What torch itself asks for inside an optimiser step or a loader is not the program's doing.
"""

import gc
import os
import sys
import threading

from . import hiding, off, places, probe
from .loop import now

_get_ident = threading.get_ident
_MAX_PLACES = 256


class Waits:
    """Of one process: by call and line."""

    def __init__(self, state):
        self.state = state
        self.places = {}        # (call, code, line) -> [count, ns, count in steps, on a device]
        self.transfers = {}     # line -> [pinned bytes, pageable bytes, blocking, non-blocking, ns]
        self.loss_pointer = 0
        self.loss_step = 0

    def watch_loss(self, loss):
        self.loss_pointer, self.loss_step = loss.data_ptr(), self.state.loop.steps

    def _entry(self, call, frame):
        """The counts of this place; None when there are too many places already."""
        key = (call, frame.f_code, places.line_of(frame)) if frame is not None else (call, None, 0)
        entry = self.places.get(key)
        if entry is None and len(self.places) < _MAX_PLACES:
            entry = self.places[key] = [0, 0, 0]
        return entry

    def take(self, call, t0, t1, own, waited, frame):
        loop = self.state.loop
        frame = places.own_frame(frame)
        entry = self._entry(call, frame)
        if entry is None:
            return
        entry[0] += 1
        entry[1] += own
        parts = loop.parts
        if loop.validation is not None:
            if t0 - loop.validation[1] < 1_000_000_000:
                loop.validation[1] = t1
        elif parts is not None:
            entry[2] += loop.steps > 0 or bool(parts.optimizers)
            parts.last = t1
            if waited:
                loop.total += own
                parts.rare = True
                if call in ("empty_cache", "gc"):
                    parts.flush += own
                else:
                    parts.sync += own
                    parts.syncs += 1

    def count(self, call, frame):
        """On a CPU nothing is waited for: only that it was called, and from where."""
        while frame is not None and not places.is_own(frame.f_code):
            frame = frame.f_back
        entry = self._entry(call, frame)
        if entry is None:
            return
        entry[0] += 1
        loop = self.state.loop
        if loop.validation is not None:
            t = now()
            if t - loop.validation[1] < 1_000_000_000:
                loop.validation[1] = t
        elif loop.parts is not None:
            entry[2] += loop.steps > 0 or bool(loop.parts.optimizers)

    def notes(self):
        for (call, code, line), (count, ns, in_step) in list(self.places.items()):
            where = None if code is None else "%s:%d" % (places.short(code.co_filename), line)
            yield ("sync", call, where), {"type": "sync", "call": call, "where": where, "count": count, "seconds": ns * 1e-9, "in_step": in_step}
        for where, (pinned, pageable, blocking, free, ns) in list(self.transfers.items()):
            yield ("transfer", where), {
                "type": "transfer", "where": where, "pinned_bytes": pinned, "pageable_bytes": pageable,
                "blocking_count": blocking, "nonblocking_count": free, "seconds": ns * 1e-9}


def has_device(torch):
    """Whether tensors may lie anywhere but in host memory. Asks the driver nothing: to start CUDA here would forbid the
    program to fork."""
    if os.environ.get("UNIDLE_ASSUME_DEVICE"):
        return True
    version = torch.version
    if not (getattr(version, "cuda", None) or getattr(version, "hip", None) or getattr(version, "xpu", None)):
        return False
    return any(os.path.exists(path) for path in ("/dev/nvidiactl", "/dev/kfd", "/dev/dxg", "/dev/dri/renderD128"))


def install(state):
    torch = state.torch
    state.has_device = has_device(torch)
    for name, call in (("item", "item"), ("tolist", "tolist"), ("numpy", "numpy"), ("cpu", "cpu"),
                       ("__float__", "item"), ("__int__", "item"), ("__bool__", "item")):
        if call != "cpu" or state.has_device:
            _patch_read(state, torch.Tensor, name, call)
    cuda = torch.cuda
    _patch_wait(state, cuda, "synchronize", "synchronize")
    _patch_wait(state, cuda, "empty_cache", "empty_cache")
    for kind in ("Event", "Stream"):
        if hasattr(cuda, kind) and "synchronize" in getattr(cuda, kind).__dict__:
            _patch_wait(state, getattr(cuda, kind), "synchronize", "synchronize")
    _patch_wait(state, gc, "collect", "gc")
    if state.has_device:
        _patch_wait(state, torch, "isnan", "isnan", device_only=True)
        _patch_wait(state, torch, "nonzero", "nonzero", device_only=True)
        for name in ("to", "cuda"):
            _patch_transfer(state, torch.Tensor, name)
        _patch_module_to(state, torch.nn.Module)


def _patch_read(state, Tensor, name, call):
    original = getattr(Tensor, name)
    reads_one = call == "item"

    def count(self, *args, **kwargs):
        loop = state.loop
        if loop is not None and not loop.within() and not loop.in_optimizer and _get_ident() == state.thread:
            try:
                state.waits.count(call, sys._getframe(1))
            except Exception as failure:
                off(failure)
        return original(self, *args, **kwargs)

    def read(self, *args, **kwargs):
        loop = state.loop
        if loop is None or loop.in_optimizer or _get_ident() != state.thread:
            return original(self, *args, **kwargs)
        if self.is_cpu:
            return count(self, *args, **kwargs) if not loop.within() else original(self, *args, **kwargs)
        if name == "item" and state.actuators.reads is not None:
            number = _later(state.actuators.reads, self, sys._getframe(1))
            if number is not None:
                return number
        t0, before = now(), loop.total
        result = original(self, *args, **kwargs)
        try:
            t1 = now()
            own = t1 - t0 - (loop.total - before)
            state.waits.take(call, t0, t1, own, True, sys._getframe(1))
            if reads_one and state.waits.loss_pointer and self.data_ptr() == state.waits.loss_pointer:
                state.waits.loss_pointer = 0
                loop.ring.emit(probe.LOSS, t1, 0, state.waits.loss_step, loop.samples, 0, float(result))
        except Exception as failure:
            off(failure)
        return result

    count.__code__ = count.__code__.replace(co_filename=hiding.MARK)
    setattr(Tensor, name, hiding.wraps(original)(read if state.has_device else count))


def _later(reads, tensor, frame):
    try:
        return reads.read(tensor, frame)
    except Exception as failure:
        off(failure)
        return None


def _patch_wait(state, owner, name, call, device_only=False):
    original = getattr(owner, name, None)
    if original is None:
        return

    def wait(*args, **kwargs):
        loop = state.loop
        if loop is None or loop.in_optimizer or _get_ident() != state.thread:
            return original(*args, **kwargs)
        t0, before = now(), loop.total
        try:
            return original(*args, **kwargs)
        finally:
            try:
                if not device_only or (args and getattr(getattr(args[0], "device", None), "type", "cpu") != "cpu"):
                    t1 = now()
                    own = t1 - t0 - (loop.total - before)
                    state.waits.take(call, t0, t1, own, not device_only and (call == "gc" or state.has_device), sys._getframe(1))
            except Exception as failure:
                off(failure)

    setattr(owner, name, hiding.wraps(original)(wait))


def _is_blocking(name, args, kwargs):
    if "non_blocking" in kwargs:
        return not kwargs["non_blocking"]
    return not any(value is True for value in args[1:2])


def _patch_transfer(state, Tensor, name):
    original = getattr(Tensor, name)

    def move(self, *args, **kwargs):
        loop = state.loop
        if loop is None or loop.within() or _get_ident() != state.thread or self.device.type != "cpu":
            # Towards the host: .to("cpu") waits as .cpu() does.
            if loop is None or _get_ident() != state.thread or loop.in_optimizer:
                return original(self, *args, **kwargs)
            return back(self, args, kwargs)
        if state.actuators.non_blocking and "non_blocking" not in kwargs:
            kwargs["non_blocking"] = True
        t0 = now()
        result = original(self, *args, **kwargs)
        try:
            if result.device.type != "cpu":
                t1 = now()
                _moved(state, self, t0, t1, self.numel() * self.element_size(), _is_blocking(name, args, kwargs), sys._getframe(1))
        except Exception as failure:
            off(failure)
        return result

    def back(self, args, kwargs):
        loop, t0 = state.loop, now()
        result = original(self, *args, **kwargs)
        try:
            if result.device.type == "cpu" and self.device.type != "cpu":
                t1 = now()
                state.waits.take("cpu", t0, t1, t1 - t0, True, sys._getframe(2))
        except Exception as failure:
            off(failure)
        return result

    back.__code__ = back.__code__.replace(co_filename=hiding.MARK)
    setattr(Tensor, name, hiding.wraps(original)(move))


def _moved(state, tensor, t0, t1, size, blocking, frame):
    pinned = tensor.is_pinned()
    loop, own = state.loop, t1 - t0
    frame = places.own_frame(frame)
    where = None if frame is None else "%s:%d" % (places.short(frame.f_code.co_filename), places.line_of(frame))
    entry = state.waits.transfers.get(where)
    if entry is None:
        if len(state.waits.transfers) >= _MAX_PLACES:
            return
        entry = state.waits.transfers[where] = [0, 0, 0, 0, 0]
    entry[0 if pinned else 1] += size
    entry[2 if blocking else 3] += 1
    entry[4] += own
    loop.total += own
    if loop.validation is None and loop.steps + len(getattr(loop.parts, "optimizers", ())) + getattr(loop.parts, "fetches", 0):
        parts = loop.current(t0)
        parts.rare = True
        parts.transfer += own
        parts.moved += size
        parts.pinned = (1 if pinned else 0) | (2 if blocking else 0)
        parts.last = t1


def _patch_module_to(state, Module):
    """A model that is moved to the device is no transfer of a step: only its parameters' copies must not look like one."""
    for name in ("to", "cuda"):
        original = getattr(Module, name)

        def move(self, *args, _original=original, **kwargs):
            loop = state.loop
            if loop is None or loop.within() or _get_ident() != state.thread:
                return _original(self, *args, **kwargs)
            loop.inside = True
            try:
                return _original(self, *args, **kwargs)
            finally:
                loop.inside = False

        setattr(Module, name, hiding.wraps(original)(move))
