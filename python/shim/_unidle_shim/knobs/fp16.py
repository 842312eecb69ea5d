"""Loss scaling for fp16 in a program that has no gradient scaler.

Small gradients vanish in fp16. So the loss is scaled up before the backward pass, and the gradients are
scaled down again before the program sees them: it may clip, log and accumulate them as usual. A step whose
gradients are not finite is skipped by removing them, because optimisers skip parameters without a gradient.
Factors are powers of two, which do not round gradients. Start, growth and backoff are those of
torch.amp.GradScaler.
"""

import sys

from _unidle_shim.host import guard
from _unidle_shim.host.guard import caught
from _unidle_shim.host.patching import put

_FIRST = 2.0**16
_GROWS_AFTER = 2000  # steps in a row with finite gradients


class LossScaling:
    """`optimizers()` returns the existing optimisers. `used`: a forward pass ran in fp16; until then nothing
    is changed. `ended(why)` is called when scaling turns out to be impossible in this program; then forward
    passes must be the program's own again."""

    def __init__(self, torch, optimizers, ended=lambda why: None):
        self.torch, self.optimizers, self.ended = torch, optimizers, ended
        self.in_backward = False
        self.item = torch.Tensor.item  # before it is patched: this wait is ours
        self.scale, self.good, self.left_out = _FIRST, 0, 0
        self.used = False

    def scaled(self, tensors):
        return [
            tensor.float() * self.scale
            for tensor in ([tensors] if isinstance(tensors, self.torch.Tensor) else tensors)
        ]

    def multiply(self, factor):
        """Scales all existing gradients. Those of earlier backward passes need the same scale as the ones
        that will be added to them."""
        seen = {}
        for optimizer in self.optimizers():
            seen.update((id(gradient), gradient) for gradient in _gradients(optimizer))
        with self.torch.no_grad():
            for gradients in _by_device(seen.values()):
                self.torch._foreach_mul_(gradients, factor)

    def before_step(self, optimizer, args, kwargs):
        """A hook of every optimiser. With a closure there are no gradients yet, so the step cannot be
        skipped."""
        if not self.used:
            return
        if any(one is not None for one in args[1:]) or kwargs.get("closure") is not None:
            self.end("the optimiser takes a closure")
        elif self.in_backward:
            self.leave_out(optimizer)
            self.end("the optimiser steps within the backward pass, where gradients are scaled")
        elif self._finite(list(_gradients(optimizer))):
            self.good += 1
            if self.good >= _GROWS_AFTER:
                self.scale, self.good = self.scale * 2, 0
        elif self.scale > 1:  # otherwise they are so without any scaling
            self.leave_out(optimizer)

    def end(self, why):
        self.used = False
        self.ended(why)

    def leave_out(self, optimizer):
        for parameter in _parameters(optimizer):
            parameter.grad = None
        self.scale, self.good, self.left_out = max(1.0, self.scale / 2), 0, self.left_out + 1

    def _finite(self, gradients):
        torch = self.torch
        with torch.no_grad():
            return all(
                self.item(torch.isfinite(torch.stack(torch._foreach_norm(some)).sum()))
                for some in _by_device(gradients)
            )


def install(torch, optimizers, ended=lambda why: None):
    """Returns None if this torch has no hook for all optimisers (before 2.0). Call it before
    torch.autograd.backward is patched for observation, so that the recorded loss is the program's."""
    # torch.optim itself lacks this attribute.
    hook = getattr(sys.modules["torch.optim.optimizer"], "register_optimizer_step_pre_hook", None)
    if hook is None:
        return None
    scaling, original = LossScaling(torch, optimizers, ended), torch.autograd.backward

    def before_step(optimizer, *given):
        try:
            scaling.before_step(optimizer, *given)
        except BaseException as failure:
            caught(failure)
            if scaling.used:
                scaling.leave_out(optimizer)  # it is unknown whether its gradients are finite

    def backward(tensors, *args, **kwargs):
        if not scaling.used or guard.failed:  # forward passes are the program's own again
            return original(tensors, *args, **kwargs)
        scale = scaling.scale
        try:
            scaled = scaling.scaled(tensors)
            scaling.multiply(scale)
        except BaseException as failure:
            caught(failure)
            return original(tensors, *args, **kwargs)
        scaling.in_backward = True
        try:
            original(scaled, *args, **kwargs)
        finally:
            scaling.in_backward = False
            unscale(scale)

    def unscale(scale):
        try:
            scaling.multiply(1 / scale)
        except BaseException as failure:
            caught(failure)
            for optimizer in scaling.optimizers():
                scaling.leave_out(optimizer)  # it is unknown which of its gradients are still scaled

    hook(before_step)
    put(torch.autograd, "backward", backward)
    return scaling


def _parameters(optimizer):
    return (parameter for group in optimizer.param_groups for parameter in group["params"])


def _gradients(optimizer):
    for parameter in _parameters(optimizer):
        gradient = parameter.grad
        if gradient is not None:
            yield gradient._values() if gradient.is_sparse else gradient


def _by_device(gradients):
    found = {}
    for gradient in gradients:
        found.setdefault((gradient.device, gradient.dtype), []).append(gradient)
    return found.values()


def why_not_scaled(module, optimizers):
    """Why fp16 must not scale gradients of this model; None if it may."""
    if any(kind.__name__ == "LBFGS" for one in optimizers for kind in type(one).__mro__):
        return "LBFGS looks at gradients many times in a step"
    kinds = {kind.__name__ for part in module.modules() for kind in type(part).__mro__}
    if kinds & {"FullyShardedDataParallel", "FSDPModule"}:
        return "ranks that hold shards of the gradients would skip different steps"
    for part in list(module.modules()) + list(module.parameters()):
        for name in ("_backward_hooks", "_backward_pre_hooks", "_post_accumulate_grad_hooks"):
            if getattr(part, name, None):
                return "hooks of the program see the gradients, which would be scaled"
    return None
