"""Patches of the other calls of a training step: backward pass, optimiser, gradients, checkpoints."""

import gc
import sys
import threading
import types
import weakref
from time import thread_time_ns

from _unidle_shim import session
from _unidle_shim.host import hidden_frames, imports, places, startup
from _unidle_shim.host.guard import caught, value_or_none
from _unidle_shim.host.patching import around, put
from _unidle_shim.host.shapes import hidden_queries, undispatched
from _unidle_shim.loop import closure
from _unidle_shim.loop.loop import now
from _unidle_shim.loop.marks_file import MOST
from _unidle_shim.loop.short_steps import Patch

_get_ident = threading.get_ident
_MOST_PLACES = 16  # optimisers whose steps are placed


def install(state):
    torch = state.torch
    state.backward = Backward(state, torch)
    _patch_optimizers(state, torch)
    _patch_scaler(state, torch)
    _patch_schedulers(state)
    _patch_checkpoint(state, torch)
    _patch_assembly(state, torch)


class Backward:
    """The patch of torch.autograd.backward, removed while steps are only marked. In a program without an
    optimiser it then marks the steps instead."""

    def __init__(self, state, torch):
        self.autograd = torch.autograd
        self.bare = torch.autograd.backward
        self.ours = _watched_backward(state, torch)
        self.only_marks = _marking_backward(state, self.bare)
        self.aside = False
        torch.autograd.backward = self.ours

    def step_aside(self, by_hand):
        if self.autograd.backward is self.ours:  # otherwise another patch is on top: that one stays
            self.autograd.backward = self.only_marks if by_hand else self.bare
            self.aside = True

    def step_back(self):
        if self.aside and self.autograd.backward in (self.bare, self.only_marks):
            self.autograd.backward = self.ours
        self.aside = False


def mark(marking):
    """An optimiser step is over, or a backward pass in a program without an optimiser."""
    try:
        marking.mark(now())
    except BaseException as failure:
        caught(failure)


def _marking_backward(state, original):
    def backward(tensors, *args, **kwargs):
        original(tensors, *args, **kwargs)
        marking = state.marking
        if marking is not None and _get_ident() == state.thread:
            mark(marking)

    return hidden_frames.wraps(original)(backward)


def _reader_of_loss(state, torch):
    item = torch.Tensor.item

    def loss_of(tensor):
        """Its value if it is on the CPU; otherwise recorded when the program itself reads it."""
        with hidden_queries(torch), undispatched(torch):
            if tensor.numel() != 1 or tensor.is_complex():
                return None
            if tensor.is_cpu:
                return item(tensor)
            state.waits.watch_loss(tensor)

    return loss_of


def _watched_backward(state, torch):
    original, Tensor = torch.autograd.backward, torch.Tensor
    loss_of = _reader_of_loss(state, torch)

    def backward(tensors, *args, **kwargs):
        loop = None
        try:
            if _get_ident() == state.thread or session.adopt():
                state.trains = True
                t0 = now()
                loop = state.loop or session.followed()
            if loop is not None:
                cost, loss = loop.own_cost, None
                timed = cost.on
                if type(tensors) is Tensor:
                    loss = value_or_none(loss_of, tensors)
                    value_or_none(state.facts.slices.backward_begins, torch, tensors)
                of_loss = loop.backward_begins(t0)
                if of_loss:
                    state.facts.operations.loss_ends(of_loss)
                t1 = now() if timed else t0
                inside, before, loop.inside = loop.inside, loop.total, True
                exchange = state.facts.exchange
                cpu = thread_time_ns() if exchange is not None and exchange.on_cpu else None
        except BaseException as failure:
            loop = caught(failure)
        if loop is None:
            return original(tensors, *args, **kwargs)
        try:
            original(tensors, *args, **kwargs)
        except BaseException as error:
            loop.inside = inside
            state.facts.failed(error, of_batch=True)
            raise
        try:
            t2 = now()
            loop.inside = inside
            own = t2 - t0 - (loop.total - before)
            loop.total = before + t2 - t0
            loop.backward_ends(t0, t2, own, loss)
            if cpu is not None:
                exchange.backward_ends(t2 - t0, thread_time_ns() - cpu)
            if loop.in_optimizer or state.facts.scaler:
                # The optimiser's begin is too early before a closure, and too late before a scaler's read.
                _queued(state)
            if loop.by_hand and not state.facts.optimizers:
                loop.updates_by_hand(t2)
            if timed:
                cost.ns += t1 - t0 + now() - t2
        except BaseException as failure:
            caught(failure)

    return hidden_frames.wraps(original)(backward)


def _queued(state):
    """All of the step's work except the optimiser's is queued. Our own gradient scaling waits without
    reporting it."""
    if state.device is not None and state.actuators.scaling is None:
        state.device.queued()


def _patch_optimizers(state, torch):
    Optimizer = torch.optim.Optimizer
    original_init, original_zero = Optimizer.__init__, Optimizer.zero_grad

    def init(self, *args, **kwargs):
        result = original_init(self, *args, **kwargs)
        try:
            wrap_class(type(self))
            if not state.trains or _get_ident() == state.thread:
                state.facts.optimizer_made(self, places.here())
        except BaseException as failure:
            caught(failure)
        return result

    def wrap_class(kind):
        """Wraps `step` in the class that defines it, so that all subclasses are wrapped once."""
        for owner in kind.__mro__:
            step = owner.__dict__.get("step")
            if step is not None:
                if not getattr(step, "_unidle", False):
                    owner.step = wrapped(owner, step)
                return

    def wrapped(owner, original):
        def step(self, *args, **kwargs):
            marking = state.marking
            if marking is not None and is_marked(self, marking):
                result = original(self, *args, **kwargs)
                if id(self) == marking.optimizer and not marking.scaled:
                    first_mark(marking)
                return result
            if state.loop is not None and state.loop.in_optimizer or not is_followed():
                return original(self, *args, **kwargs)
            return optimizer_step(state, self, original, (self,) + args, kwargs)

        def first_mark(marking):
            try:
                marking.mark(now())
                marking.shorten(patch)
            except BaseException as failure:
                caught(failure)

        def shorter(marking):
            if marking.rhythm is not None:
                return original  # its steps are counted afterwards
            marks, key = marking.marks, marking.optimizer
            stepped = marks.stepped

            def marked(t):
                shared = marking.shared  # exists from the first batch on
                if shared is not None and len(stepped) < MOST:
                    shared.stepped[len(stepped)] = t
                stepped.append(t)

            passes = marked if marking.iterator else lambda t: mark(marking)

            def marked_step(self, *args, **kwargs):
                # In the second case a scheduler that was made during the stretch has kept this function.
                if id(self) != key or not marks.alive:
                    return step(self, *args, **kwargs)
                result = original(self, *args, **kwargs)
                passes(now())
                return result

            hidden_frames.wraps(original)(marked_step)
            marked_step._unidle = True
            return marked_step

        hidden_frames.wraps(original)(step)
        step._unidle = True
        patch = Patch(owner, "step", step, shorter)
        return step

    def is_marked(optimizer, marking):
        """Whether its step belongs to the steps that are only marked. Another optimiser ends the stretch."""
        key = id(optimizer)
        if key == marking.optimizer or key in marking.others or _get_ident() != state.thread:
            return True
        try:
            state.loop.look_up()
        except BaseException as failure:
            caught(failure)
        return False

    def is_followed():
        try:
            return _get_ident() == state.thread or session.adopt()
        except BaseException as failure:
            caught(failure)
        return False

    def zero_grad(self, *args, **kwargs):
        try:
            if state.actuators.zero_to_none:
                args, kwargs = (), {"set_to_none": True}
            elif Optimizer.zero_grad is zero_grad and _get_ident() == state.thread:
                Optimizer.zero_grad = original_zero  # once is enough
            if state.facts.zero_to_none is None and _get_ident() == state.thread:
                state.facts.zero_grad_called(original_zero, args, kwargs, places.here())
        except BaseException as failure:
            caught(failure)
        return original_zero(self, *args, **kwargs)

    def made_before():
        """Optimisers of a program that was not observed from its start. A scheduler that was made before has
        kept their unpatched function."""
        for optimizer in gc.get_objects():
            if issubclass(type(optimizer), Optimizer):
                wrap_class(type(optimizer))
                state.facts.optimizer_made(optimizer, None)
                if type(vars(optimizer).get("step")) is types.FunctionType:  # a scheduler's
                    optimizer.step = kept_step(weakref.ref(optimizer), optimizer.step)

    def kept_step(reference, original):
        """The optimiser holds it, so it does not hold the optimiser."""

        def step(*args, **kwargs):
            optimizer = reference()
            if optimizer is None or not is_followed():
                return original(*args, **kwargs)
            return optimizer_step(state, optimizer, original, args, kwargs)

        return hidden_frames.wraps(original)(step)

    put(Optimizer, "__init__", init)
    put(Optimizer, "zero_grad", zero_grad)
    if startup.since_ns:
        made_before()


def optimizer_step(state, optimizer, call, args, kwargs):
    try:
        t0 = now()
        loop = state.loop or session.followed()
        if loop is not None:
            if state.marking is not None:
                loop.look_up()  # this step is observed in full
            timed = loop.own_cost.on
            loop.optimizer_begins(optimizer)
            t1 = now() if timed else t0
            depth, before = loop.in_optimizer, loop.total
            if state.device is not None and not state.device.is_asked():
                _queued(state)
            loop.in_optimizer, loop.updating = depth + 1, True
            args, kwargs = closure.watched(loop, optimizer, args, kwargs)
    except BaseException as failure:
        loop = caught(failure)
    if loop is None:
        return call(*args, **kwargs)
    try:
        result = call(*args, **kwargs)
    except BaseException as error:
        loop.in_optimizer, loop.updating = depth, False
        state.facts.failed(error)
        raise
    try:
        t2 = now()
        loop.in_optimizer, loop.updating = depth, False
        own = t2 - t0 - (loop.total - before)
        loop.total = before + t2 - t0
        loop.optimizer_ends(optimizer, t0, t2, own)
        if id(optimizer) not in loop.step_places and len(loop.step_places) < _MOST_PLACES:
            loop.step_places[id(optimizer)] = places.lines_of_stack(sys._getframe(1))
        if state.device is not None:
            state.device.end(t2)
        if timed:
            loop.own_cost.ns += t1 - t0 + now() - t2
    except BaseException as failure:
        caught(failure)
    return result


def _patch_scaler(state, torch):
    scalers = []
    for path in ("amp.grad_scaler", "cuda.amp.grad_scaler"):
        owner = torch
        for name in path.split("."):
            owner = getattr(owner, name, None)
        scaler = getattr(owner, "GradScaler", None)
        if scaler is not None and "step" in scaler.__dict__ and scaler not in scalers:
            scalers.append(scaler)
    for scaler in scalers:
        _wrap_scaler(state, scaler)


def _wrap_scaler(state, scaler):
    original = scaler.step

    def step(self, optimizer, *args, **kwargs):
        marking = state.marking
        if marking is not None and marking.scaled:
            result = original(self, optimizer, *args, **kwargs)
            if id(optimizer) == marking.optimizer:
                mark(marking)
            return result
        loop = state.loop
        if _get_ident() != state.thread or (loop is not None and loop.in_optimizer):
            return original(self, optimizer, *args, **kwargs)
        try:
            state.facts.scaler_seen(self)
        except BaseException as failure:
            caught(failure)
        # Also if the step is skipped because of an infinity: the loop iterated all the same.
        return optimizer_step(state, optimizer, original, (self, optimizer) + args, kwargs)

    put(scaler, "step", step)


def _patch_schedulers(state):
    """A scheduler wraps the optimiser's step at its construction; it must find our patch then."""
    module = sys.modules.get("torch.optim.lr_scheduler")
    for name in ("LRScheduler", "_LRScheduler"):
        Scheduler = getattr(module, name, None)
        if (
            Scheduler is not None
            and "__init__" in Scheduler.__dict__
            and not hasattr(Scheduler.__init__, "__wrapped__")
        ):
            _look_up_before(state, Scheduler)


def _look_up_before(state, Scheduler):
    original = Scheduler.__init__

    def init(self, *args, **kwargs):
        if state.marking is not None:
            try:
                state.loop.look_up()
            except BaseException as failure:
                caught(failure)
        original(self, *args, **kwargs)

    put(Scheduler, "__init__", init)


def _patch_assembly(state, torch):
    """Arrays become tensors where a program assembles a batch itself. Too short for the stack sampler to
    see."""

    def before(args, kwargs):
        loop = state.loop
        if loop is not None and not loop.within() and _get_ident() == state.thread:
            loop.assembled = True

    around(torch, "from_numpy", before, None)


def _patch_checkpoint(state, torch):
    def before(args, kwargs):
        try:
            loop = state.loop
            if loop is None or _get_ident() != state.thread or loop.within() or loop.saving:
                return None
            state.actuators.validating.saves(sys._getframe(1))
            return loop, loop.save_begins(), loop.total
        except BaseException as failure:
            return caught(failure)

    def after(seen, args, kwargs, result):
        try:
            loop, begin, total = seen
            loop.save_ends(begin, total, places.here())
        except BaseException as failure:
            caught(failure)

    around(torch, "save", before, after)
    imports.watch("safetensors.torch", lambda module: around(module, "save_file", before, after))
