"""Reads the shape of a value without running any code of the program."""

import sys


def shape_of(value):
    """None where its class has none: an object that makes up attributes when it is asked for one is not
    asked. A subclass of Tensor would see the question (__torch_function__), and is asked past it."""
    kind, torch = type(value), sys.modules["torch"]
    if kind is torch.Tensor:
        return value.shape
    if not hasattr(kind, "shape"):
        return None
    if not issubclass(kind, torch.Tensor):
        return value.shape
    with _untold(torch):
        return value.shape


def _untold(torch):
    """The second is its name before torch 2.0."""
    return getattr(torch._C, "DisableTorchFunctionSubclass", torch._C.DisableTorchFunction)()
