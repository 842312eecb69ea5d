"""The closure of an optimiser's step, which computes the gradients: Lightning trains in one."""

import time

now = time.monotonic_ns


class Closure:
    """Stands for it in the call of step(). What it does is not the optimiser's own work."""

    __slots__ = ("closure", "loop")

    def __init__(self, loop, closure):
        self.loop, self.closure = loop, closure

    def __call__(self, *args, **kwargs):
        loop = self.loop
        t0, before, loop.updating = now(), loop.total, False
        try:
            return self.closure(*args, **kwargs)
        finally:
            loop.total, loop.updating = before + now() - t0, True

    def __getattr__(self, name):
        if name in Closure.__slots__:  # of a copy that is being made
            raise AttributeError(name)
        return getattr(self.closure, name)


def watched(loop, optimizer, args, kwargs):
    """The arguments of a call of the method step of `optimizer`'s class, with a watched closure. Unchanged if
    that method is the program's own: it may do anything with its arguments, and need not take a closure."""
    if not args or args[0] is not optimizer or not _is_torchs(optimizer):
        return args, kwargs
    if callable(kwargs.get("closure")):
        return args, {**kwargs, "closure": Closure(loop, kwargs["closure"])}
    if len(args) > 1 and callable(args[1]):
        return (optimizer, Closure(loop, args[1]), *args[2:]), kwargs
    return args, kwargs


def _is_torchs(optimizer):
    owner = next((owner for owner in type(optimizer).__mro__ if "step" in vars(owner)), None)
    return owner is not None and owner.__module__.startswith("torch.optim.")
