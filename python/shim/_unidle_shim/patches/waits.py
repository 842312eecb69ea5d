"""Patches of host waits (synchronisation with the device) and of copies between host and device.

Where the device is the CPU, nothing is waited for: such calls are counted, with their line, and take no share
of the step. Calls that torch itself makes inside an optimiser step or a loader are not the program's.
"""

import gc
import os
import sys
import threading

from _unidle_shim.host import places
from _unidle_shim.host.exception_origin import pass_on
from _unidle_shim.host.guard import caught
from _unidle_shim.host.patching import around
from _unidle_shim.host.shapes import hidden_queries
from _unidle_shim.loop.loop import now

_get_ident = threading.get_ident
_MAX_PLACES = 256


class WatchedLoss:
    """A loss on a device, identified by its storage: the allocator reuses a freed loss's memory for the next
    small tensor. A weak reference does not delay the freeing of memory, and prevents another storage from
    getting the same identity."""

    def __init__(self, torch, loss, step):
        self.torch, self.step = torch, step
        self.storage = torch.multiprocessing.reductions.StorageWeakRef(_storage_of(loss))
        self.place, self.version = loss.data_ptr(), loss._version

    def is_read_by(self, tensor):
        """Whether it is the loss, or a view of it (as of `detach()`), unmodified."""
        if type(tensor) is not self.torch.Tensor:
            return False
        try:
            with hidden_queries(self.torch):
                return (
                    tensor.data_ptr() == self.place
                    and _storage_of(tensor)._cdata == self.storage.cdata
                    and tensor._version == self.version
                )
        except RuntimeError as failure:  # it has no memory
            pass_on(failure)
            return False


def _storage_of(tensor):
    untyped = getattr(tensor, "untyped_storage", None)  # from torch 2.0 on
    return untyped() if untyped is not None else tensor.storage()


class Waits:
    """The waits and copies of this process, by call and line."""

    def __init__(self, state):
        self.state = state
        self.places = {}  # (call, code, line) -> [count, ns, count in steps, on a device]
        # line -> [pinned bytes, pageable, blocking, non-blocking, ns, bytes of steps in the default stream]
        self.transfers = {}
        # The stream of the next copy to a device, by the device's index; 0 is the default stream, in which
        # models compute. Does not query the device. None: this torch does not provide it.
        self.stream_now = getattr(getattr(state.torch, "_C", None), "_cuda_getCurrentRawStream", None)
        self.loss = None  # WatchedLoss of the newest backward pass, until the program reads it

    def watch_loss(self, loss):
        self.loss = WatchedLoss(self.state.torch, loss, self.state.loop.steps)

    def step_of_loss(self, tensor):
        """The step whose loss the program reads with this tensor; None if it is not a loss."""
        loss = self.loss
        if loss is None or not loss.is_read_by(tensor):
            return None
        self.loss = None
        return loss.step

    def _entry(self, call, frame):
        """The counts of this call and line; None if there are too many already."""
        key = (call, *places.of_frame(frame))
        entry = self.places.get(key)
        if entry is None and len(self.places) < _MAX_PLACES:
            entry = self.places[key] = [0, 0, 0]
        return entry

    def take(self, call, t0, t1, own, waited, frame):
        loop = self.state.loop
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
        """Counts a call on a CPU tensor, which waits for nothing, by its line."""
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
            where = places.text(code, line)
            yield (
                ("sync", call, where),
                {
                    "type": "sync",
                    "call": call,
                    "where": where,
                    "count": count,
                    "seconds": ns * 1e-9,
                    "in_step": in_step,
                },
            )
        for where, (pinned, pageable, blocking, free, ns, in_line) in list(self.transfers.items()):
            yield (
                ("transfer", where),
                {
                    "type": "transfer",
                    "where": where,
                    "pinned_bytes": pinned,
                    "pageable_bytes": pageable,
                    "blocking_count": blocking,
                    "nonblocking_count": free,
                    "seconds": ns * 1e-9,
                    "in_line_bytes": in_line if self.stream_now is not None else None,
                },
            )


def has_device(torch):
    """Whether tensors may be anywhere except in host memory. Does not query the driver: starting CUDA here
    would make later forks of the program fail."""
    if os.environ.get("UNIDLE_ASSUME_DEVICE"):
        return True
    version = torch.version
    if not (getattr(version, "cuda", None) or getattr(version, "hip", None) or getattr(version, "xpu", None)):
        return False
    return any(
        os.path.exists(path) for path in ("/dev/nvidiactl", "/dev/kfd", "/dev/dxg", "/dev/dri/renderD128")
    )


def install(state):
    torch = state.torch

    def renew():
        state.waits = Waits(state)

    renew()
    state.at_fork.append(renew)
    state.has_device = has_device(torch)
    for name, call in (
        ("item", "item"),
        ("tolist", "tolist"),
        ("numpy", "numpy"),
        ("cpu", "cpu"),
        ("__float__", "item"),
        ("__int__", "item"),
        ("__bool__", "item"),
    ):
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
        for name in ("to", "cuda"):
            _patch_transfer(state, torch.Tensor, name)
        _patch_module_to(state, torch.nn.Module)


def _patch_read(state, Tensor, name, call):
    reads_one = call == "item"

    def before(args, kwargs):
        try:
            loop = state.loop
            if loop is None or loop.updating or _get_ident() != state.thread or not args:
                if loop is not None and loop.updating and loop.device is not None:
                    loop.device.may_wait(args)
                return None
            if not state.has_device or args[0].is_cpu:
                if not loop.within():
                    state.waits.count(call, sys._getframe(1))
                return None
            if loop.device is not None:
                loop.device.wait_begins()
            return now(), loop.total
        except BaseException as failure:
            return caught(failure)

    def after(seen, args, kwargs, result):
        try:
            t1, loop = now(), state.loop
            if result is None or loop is None:
                return
            t0, total = seen
            state.waits.take(call, t0, t1, t1 - t0 - (loop.total - total), True, sys._getframe(1))
            if loop.device is not None:
                loop.device.wait_ends(t1)
            step = state.waits.step_of_loss(args[0]) if reads_one else None
            if step is not None:
                loop.loss_was_read(step, loop.samples, float(result), t1)
        except BaseException as failure:
            caught(failure)

    around(Tensor, name, before, after)


def _patch_wait(state, owner, name, call):
    # Events and streams may be of another device.
    drains = owner is state.torch.cuda and call == "synchronize"

    def before(args, kwargs):
        try:
            loop = state.loop
            if loop is None or loop.updating or _get_ident() != state.thread:
                return None
            if call in ("empty_cache", "gc") and state.facts.memory.look_at(sys.exc_info()[1]):
                return None  # programs do that after running out of memory
            if loop.device is not None and call != "gc":
                loop.device.wait_begins()
            return now(), loop.total
        except BaseException as failure:
            return caught(failure)

    def after(seen, args, kwargs, result):
        try:
            t1, loop = now(), state.loop
            if loop is not None:
                t0, total = seen
                if drains and loop.device is not None:
                    loop.device.wait_ends(t1)
                state.waits.take(
                    call,
                    t0,
                    t1,
                    t1 - t0 - (loop.total - total),
                    call == "gc" or state.has_device,
                    sys._getframe(1),
                )
        except BaseException as failure:
            caught(failure)

    around(owner, name, before, after)


_PLAIN_ARGUMENTS = {"to": 2, "cuda": 1}  # those before non_blocking


def _is_blocking(args, kwargs):
    return not (kwargs.get("non_blocking") or any(value is True for value in args[2:3]))


def _leaves_it_open(name, args, kwargs):
    """Whether the call does not specify blocking, neither by name nor by position, in `to(device, dtype,
    non_blocking, copy)`, `to(dtype, non_blocking, copy)`, `to(other, non_blocking, copy)` and `cuda(device,
    non_blocking)`."""
    return (
        "non_blocking" not in kwargs
        and len(args) <= 1 + _PLAIN_ARGUMENTS[name]
        and not any(type(value) is bool for value in args[1:])
    )


def _place_of(tensor):
    with hidden_queries(sys.modules["torch"]):
        return tensor.device.type


def _bytes_of(tensor):
    with hidden_queries(sys.modules["torch"]):
        return tensor.numel() * tensor.element_size()


def _patch_transfer(state, Tensor, name):
    tracing = state.torch._C._get_tracing_state  # reading a size would add to the graph

    def before(args, kwargs):
        try:
            loop = state.loop
            if loop is None or not args or _get_ident() != state.thread or tracing() is not None:
                return None
            outwards = _place_of(args[0]) == "cpu" and not loop.within()
            if not outwards and loop.updating:
                return None
            sources = state.actuators.non_blocking if outwards else None
            goes_on = (
                sources is not None
                and _leaves_it_open(name, args, kwargs)
                and sources.may_go_on(args[0], sys._getframe(1))
            )
            if goes_on:
                kwargs["non_blocking"] = True
            if outwards and loop.device is not None and _is_blocking(args, kwargs):
                loop.device.wait_begins()
            return now(), outwards, goes_on
        except BaseException as failure:
            return caught(failure)

    def after(seen, args, kwargs, result):
        try:
            t1, (t0, outwards, goes_on), tensor = now(), seen, args[0]
            if result is None or state.loop is None:
                return
            place = _place_of(result)
            if outwards and place == "cuda" and state.actuators.non_blocking is not None:
                state.actuators.non_blocking.copied(tensor, result, goes_on)
            if outwards and place != "cpu":
                blocking = _is_blocking(args, kwargs)
                if state.loop.device is not None and blocking:
                    state.loop.device.copy_ends(t1)
                _moved(state, tensor, result, t0, t1, _bytes_of(tensor), blocking, sys._getframe(1))
            elif not outwards and place == "cpu" and _place_of(tensor) != "cpu":
                # Copies to the host: .to("cpu") waits as .cpu() does.
                state.waits.take("cpu", t0, t1, t1 - t0, True, sys._getframe(1))
                if state.loop.device is not None and _is_blocking(args, kwargs):
                    state.loop.device.wait_ends(t1)
        except BaseException as failure:
            caught(failure)

    around(Tensor, name, before, after)


def _moved(state, tensor, result, t0, t1, size, blocking, frame):
    with hidden_queries(sys.modules["torch"]):
        pinned = tensor.is_pinned()
        stream_now = state.waits.stream_now
        in_line = stream_now is not None and result.is_cuda and stream_now(result.get_device()) == 0
    loop, own = state.loop, t1 - t0
    where = places.text(*places.of_frame(frame))
    entry = state.waits.transfers.get(where)
    if entry is None:
        if len(state.waits.transfers) >= _MAX_PLACES:
            return
        entry = state.waits.transfers[where] = [0, 0, 0, 0, 0, 0]
    entry[0 if pinned else 1] += size
    entry[2 if blocking else 3] += 1
    entry[4] += own
    loop.total += own
    if loop.validation is None and loop.steps + len(getattr(loop.parts, "optimizers", ())) + getattr(
        loop.parts, "fetches", 0
    ):
        parts = loop.current(t0)
        parts.rare = True
        parts.transfer += own
        entry[5] += size if in_line else 0
        parts.last = t1


def _patch_module_to(state, Module):
    """Moving a model to the device is not a transfer of a step: hides only its parameters' copies."""

    def before(args, kwargs):
        loop = state.loop
        if loop is None or loop.within() or _get_ident() != state.thread:
            return None
        loop.inside = True
        return (loop,)

    def after(seen, args, kwargs, result):
        seen[0].inside = False

    for name in ("to", "cuda"):
        around(Module, name, before, after)
