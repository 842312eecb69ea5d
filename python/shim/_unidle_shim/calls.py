"""Patches of the calls that make up a step: model, backward pass, optimiser, gradients, checkpoints."""

import threading

from . import hiding, off, probe, session
from .loop import now

_get_ident = threading.get_ident


def install(state):
    torch = state.torch
    _patch_module(state, torch)
    _patch_backward(state, torch)
    _patch_optimizers(state, torch)
    _patch_scaler(state, torch)
    _patch_checkpoint(state, torch)


def size_of(value, depth=0):
    """Samples in a batch: the first dimension of the first tensor in it; 0 where there is none."""
    shape = getattr(value, "shape", None)
    if shape is not None:
        try:
            return int(shape[0]) if len(shape) else 1
        except (TypeError, ValueError, IndexError):
            return 0
    if depth > 3 or value is None or isinstance(value, (str, bytes, int, float)):
        return 0
    if hasattr(value, "values") and hasattr(value, "keys"):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        for item in value:
            size = size_of(item, depth + 1)
            if size:
                return size
        return len(value) if depth == 0 and value and isinstance(value[0], (str, int, float)) else 0
    graphs = getattr(value, "num_graphs", None)
    return graphs if isinstance(graphs, int) else 0


def _patch_module(state, torch):
    Module = torch.nn.Module
    original = Module.__call__
    grad_enabled = torch.is_grad_enabled

    def call(self, *args, **kwargs):
        loop = state.loop
        if (loop is not None and loop.inside) or _get_ident() != state.thread:
            return original(self, *args, **kwargs)
        return outermost(self, args, kwargs)

    def outermost(self, args, kwargs):
        try:
            if not session.observe():
                return original(self, *args, **kwargs)
            loop = state.loop
            samples = size_of(args) or size_of(kwargs)
            t0 = now()
            kind = loop.forward_begins(self, t0, grad_enabled(), samples)
            adapted = state.actuators.forward_begins(self, args, kwargs, kind)
            if kind:
                state.facts.forward_seen(self, args, kwargs)
                if state.device is not None:
                    state.device.begin(loop.steps)
        except Exception as failure:
            off(failure)
            return original(self, *args, **kwargs)
        before, loop.inside = loop.total, True
        try:
            if adapted is not None:
                return adapted(original, self)
            return original(self, *args, **kwargs)
        except BaseException as error:
            state.facts.failed(error)
            raise
        finally:
            t1 = now()
            loop.inside = False
            try:
                own = t1 - t0 - (loop.total - before)
                loop.total += own
                loop.forward_ends(kind, t1, own, samples)
            except Exception as failure:
                off(failure)

    def train(self, mode=True):
        result = original_train(self, mode)
        try:
            loop = state.loop
            if loop is not None and not loop.inside and _get_ident() == state.thread:
                if mode:
                    loop.touch_validation(now())
                else:
                    loop.eval_called = now()
        except Exception as failure:
            off(failure)
        return result

    hiding.wraps(original)(call)
    outermost.__code__ = outermost.__code__.replace(co_filename=hiding.MARK)
    Module.__call__ = call
    original_train = Module.train
    Module.train = hiding.wraps(original_train)(train)


def _patch_backward(state, torch):
    original = torch.autograd.backward
    Tensor = torch.Tensor
    item = Tensor.item

    def backward(tensors, *args, **kwargs):
        if _get_ident() != state.thread:
            return original(tensors, *args, **kwargs)
        try:
            if not session.observe():
                return original(tensors, *args, **kwargs)
            loop, loss = state.loop, None
            if isinstance(tensors, Tensor) and tensors.numel() == 1:
                if tensors.device.type == "cpu":
                    loss = item(tensors.detach())
                else:
                    state.waits.watch_loss(tensors)
            loop.backward_begins()
            inside, before = loop.inside, loop.total
        except Exception as failure:
            off(failure)
            return original(tensors, *args, **kwargs)
        loop.inside = True
        t0 = now()
        try:
            return original(tensors, *args, **kwargs)
        except BaseException as error:
            state.facts.failed(error)
            raise
        finally:
            t1 = now()
            loop.inside = inside
            try:
                own = t1 - t0 - (loop.total - before)
                loop.total += own
                loop.backward_ends(t0, t1, own, loss)
            except Exception as failure:
                off(failure)

    torch.autograd.backward = hiding.wraps(original)(backward)


def _patch_optimizers(state, torch):
    Optimizer = torch.optim.Optimizer
    original_init, original_zero = Optimizer.__init__, Optimizer.zero_grad

    def init(self, *args, **kwargs):
        result = original_init(self, *args, **kwargs)
        try:
            wrap_class(type(self))
            if _get_ident() == state.thread:
                state.facts.optimizer_made(self)
        except Exception as failure:
            off(failure)
        return result

    def wrap_class(kind):
        """Of the class that defines `step`, so that each class is wrapped once however many derive from it."""
        for owner in kind.__mro__:
            step = owner.__dict__.get("step")
            if step is not None:
                if not getattr(step, "_unidle", False):
                    owner.step = wrapped(step)
                return

    def wrapped(original):
        def step(self, *args, **kwargs):
            loop = state.loop
            if _get_ident() != state.thread or (loop is not None and loop.in_optimizer):
                return original(self, *args, **kwargs)
            return optimizer_step(state, self, original, (self,) + args, kwargs)

        hiding.wraps(original)(step)
        step._unidle = True
        return step

    def zero_grad(self, *args, **kwargs):
        try:
            if state.actuators.zero_to_none:
                args, kwargs = (), {"set_to_none": True}
            if state.facts.zero_to_none is None and _get_ident() == state.thread:
                state.facts.zero_grad_called(original_zero, args, kwargs)
        except Exception as failure:
            off(failure)
        return original_zero(self, *args, **kwargs)

    Optimizer.__init__ = hiding.wraps(original_init)(init)
    Optimizer.zero_grad = hiding.wraps(original_zero)(zero_grad)


def optimizer_step(state, optimizer, call, args, kwargs):
    try:
        if not session.observe():
            return call(*args, **kwargs)
        loop = state.loop
        loop.optimizer_begins(optimizer)
        t0, before = now(), loop.total
    except Exception as failure:
        off(failure)
        return call(*args, **kwargs)
    loop.in_optimizer += 1
    try:
        return call(*args, **kwargs)
    finally:
        loop.in_optimizer -= 1
        t1 = now()
        try:
            own = t1 - t0 - (loop.total - before)
            loop.total += own
            loop.optimizer_ends(optimizer, t0, t1, own)
            if state.device is not None:
                state.device.end()
        except Exception as failure:
            off(failure)


optimizer_step.__code__ = optimizer_step.__code__.replace(co_filename=hiding.MARK)


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
        loop = state.loop
        if _get_ident() != state.thread or (loop is not None and loop.in_optimizer):
            return original(self, optimizer, *args, **kwargs)
        try:
            state.facts.scaler_seen(self)
        except Exception as failure:
            off(failure)
        # Also where the step is skipped for an infinity: the loop went round all the same.
        return optimizer_step(state, optimizer, original, (self, optimizer) + args, kwargs)

    scaler.step = hiding.wraps(original)(step)


def _patch_checkpoint(state, torch):
    original = torch.save

    def save(*args, **kwargs):
        loop = state.loop
        if loop is None or _get_ident() != state.thread or loop.inside:
            return original(*args, **kwargs)
        t0, before = now(), loop.total
        try:
            return original(*args, **kwargs)
        finally:
            t1 = now()
            try:
                loop.total += t1 - t0 - (loop.total - before)
                loop.ring.emit(probe.CHECKPOINT, t0, t1 - t0, loop.steps)
                loop.pause_ends(t1)
            except Exception as failure:
                off(failure)

    torch.save = hiding.wraps(original)(save)
