"""Patches of nn.Module: forward passes of whole models (not of their submodules), train() and eval()."""

import os
import sys
import threading

from _unidle_shim import session
from _unidle_shim.host import hidden_frames
from _unidle_shim.host.guard import caught, value_or_none
from _unidle_shim.host.patching import around, put
from _unidle_shim.host.shapes import shape_of
from _unidle_shim.loop.loop import now
from _unidle_shim.patches.module_classes import ModuleClasses
from _unidle_shim.samples.batch_sizes import size_of

_get_ident = threading.get_ident
_TRACE = os.path.join("torch", "jit", "_trace.py")


def _samples_of(module, loop, args, kwargs):
    if not (module._modules or module._parameters):
        return 0  # a loss, which may receive a flattened batch
    shape = shape_of(args[0]) if loop.batch_axis and args else None
    if isinstance(shape, tuple) and len(shape) > 1 and type(shape[1]) is int:
        return shape[1]
    return size_of(args) or size_of(kwargs)


def install(state):
    torch = state.torch
    Module = torch.nn.Module
    original = Module.__call__
    outermost = _outermost(state, torch)

    def call(self, *args, **kwargs):
        if state.marking is not None and not state.actuators.adapts:
            return original(self, *args, **kwargs)
        loop = state.loop
        if (loop is None or not loop.inside) and _get_ident() == state.thread:
            return outermost(original, self, args, kwargs, loop)
        return original(self, *args, **kwargs)

    def class_call(self, *args, **kwargs):
        """The `__call__` of one model class. nn.Module has torch's own again, or the program's."""
        if state.marking is not None and not state.actuators.adapts:
            return Module.__call__(self, *args, **kwargs)
        loop = state.loop
        if (loop is None or not loop.inside) and _get_ident() == state.thread:
            return outermost(Module.__call__, self, args, kwargs, loop)
        return Module.__call__(self, *args, **kwargs)

    hidden_frames.wraps(original)(call)
    hidden_frames.wraps(original)(class_call)
    state.module_classes = ModuleClasses(Module, call, class_call, hasattr(torch, "compile"))
    Module.__call__ = call
    _patch_train(state, Module)
    _watch_export(state, torch)
    _watch_compile(state, torch)


def _watch_compile(state, torch):
    def before(args, kwargs):
        try:
            state.module_classes.watch_all_permanently()
            state.compiled = (kwargs.get("mode"), str(kwargs.get("backend", "inductor")))
        except BaseException as failure:
            caught(failure)

    around(torch, "compile", before, None)


def _outermost(state, torch):
    grad_enabled, tracing = torch.is_grad_enabled, torch._C._get_tracing_state

    def outermost(original, self, args, kwargs, loop):
        """A forward pass that is not inside another one. A pass of torch.jit.trace belongs to no step, and
        queries to its tensors would become part of the graph."""
        if tracing() is not None:
            return original(self, *args, **kwargs)
        if not self.training and _checks_a_trace(sys._getframe(2)):
            return _unseen(original, self, args, kwargs, loop or value_or_none(session.followed))
        try:
            loop = loop or session.followed()
            if loop is not None:
                if loop.marking is not None and not (grad_enabled() and self.training):
                    loop.look_up()
                t0 = now()
                timed = loop.own_cost.on
                if state.module_classes.watching:
                    state.module_classes.seen(self, loop.steps)
                if loop.marking is not None or (grad_enabled() and loop.forward_goes_on(self)):
                    kind, samples = True, 0
                else:
                    samples = value_or_none(_samples_of, self, loop, args, kwargs) or 0
                    kind = loop.forward_begins(self, t0, grad_enabled(), samples)
                if kind:
                    if loop.marking is None:
                        state.facts.forward_seen(self, args, kwargs)
                        if not loop.in_optimizer:  # a closure is called several times for one step
                            state.facts.operations.begin(self)
                        if state.facts.validation_call.wanted:
                            state.facts.validation_call.trains(sys._getframe(1))
                        if state.device is not None:
                            state.device.begin()
                elif kind is False:
                    if loop.asks_for_call():
                        loop.preview.call = state.facts.validation_call.call_of(sys._getframe(1))
                    state.facts.validation_call.validates(sys._getframe(1), loop.validations)
                elif state.device is not None and loop.works_on_batch():
                    state.device.begin()
                call = (
                    state.actuators.forward_begins(self, args, kwargs, kind)
                    if state.actuators.adapts
                    else None
                )
                t1 = now() if timed else t0
                before, loop.inside = loop.total, True
        except BaseException as failure:
            loop = caught(failure)
        if loop is None:
            return original(self, *args, **kwargs)
        try:
            result = original(self, *args, **kwargs) if call is None else call(original, self)
        except BaseException as error:
            loop.inside = False
            state.facts.failed(error, of_batch=bool(kind))
            raise
        try:
            t2 = now()
            loop.inside = False
            if state.facts.asking:
                state.facts.forward_over()
            if state.facts.padding.shape is not None:
                value_or_none(state.facts.padding.result_seen, torch, result)
            own = t2 - t0 - (loop.total - before)
            loop.total = before + t2 - t0
            if kind and loop.marking is None:
                state.facts.operations.end(own)
            loop.forward_ends(kind, t2, own, samples)
            if timed:
                loop.own_cost.ns += t1 - t0 + now() - t2
        except BaseException as failure:
            caught(failure)
        return result

    return outermost


def _checks_a_trace(caller):
    """Whether torch.jit.trace compares its graph with the model."""
    for _ in range(2):
        if caller is None:
            return False
        if caller.f_code.co_filename.endswith(_TRACE):
            return True
        caller = caller.f_back
    return False


def _unseen(original, module, args, kwargs, loop):
    if loop is None:
        return original(module, *args, **kwargs)
    loop.inside = True
    try:
        return original(module, *args, **kwargs)
    finally:
        loop.inside = False


def _patch_train(state, Module):
    original = Module.train

    def train(self, mode=True):
        if state.switching:
            return original(self, mode)  # of a module inside another
        state.switching = True
        try:
            result = original(self, mode)
        finally:
            state.switching = False
        try:
            loop = state.loop
            if loop is not None and not loop.within() and _get_ident() == state.thread:
                state.module_classes.switched(self, loop.steps, mode)
                if mode:
                    loop.touch_validation(now())
                else:
                    loop.look_up()
                    loop.eval_called = now()
                    if loop.preview is not None and not loop.preview.evaluates:
                        loop.preview = None
                    state.actuators.validating.evaluates(sys._getframe(1))
        except BaseException as failure:
            caught(failure)
        return result

    put(Module, "train", train)


def _watch_export(state, torch):
    if not hasattr(torch, "export"):
        return

    def before(args, kwargs):
        try:
            state.module_classes.watch_all_permanently()
        except BaseException as failure:
            caught(failure)

    around(torch.export, "export", before, None)
