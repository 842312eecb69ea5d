"""Reads tensors without running any code of the program: subclasses of Tensor, and modes that see each
function (TorchFunctionMode) or operation (TorchDispatchMode)."""

import contextlib
import functools
import sys

from _unidle_shim.host.exception_origin import pass_on


def shape_of(value):
    """None where its class has no shape: an object that makes up attributes on request is not asked. A
    subclass of Tensor is asked without __torch_function__, which would show the question to the program. None
    too for a nested tensor, which has no shape, and for a shape with symbols: comparing these would add a
    condition to the graph that torch traces."""
    kind, torch = type(value), sys.modules["torch"]
    try:
        if kind is torch.Tensor and not sees_functions(torch):
            return value.shape
        if not hasattr(kind, "shape"):
            return None
        if not issubclass(kind, torch.Tensor):
            return value.shape
        with untold(torch):
            shape = value.shape
        return shape if all(type(extent) is int for extent in shape) else None
    except Exception as failure:
        pass_on(failure)
        return None


def length_of_nested(value):
    """How many tensors are in a nested tensor; None for anything else."""
    torch = sys.modules["torch"]
    if not isinstance(value, torch.Tensor):
        return None
    with untold(torch):
        return value.size(0) if getattr(value, "is_nested", False) else None


def sees_functions(torch):
    """A mode of the program's does. To ask is much cheaper than `untold`."""
    asked = getattr(torch._C, "_is_torch_function_mode_enabled", None)
    return asked is None or asked()


def untold(torch):
    """What is asked of a tensor within is told to no subclass and to no mode that sees functions."""
    return contextlib.nullcontext() if torch is None else torch._C.DisableTorchFunction()


def undispatched(torch):
    """What is computed within is told to no mode that sees operations. Nothing before torch 2.0."""
    guard = getattr(torch._C, "_DisableTorchDispatch", None)
    return guard() if hasattr(guard, "__enter__") else contextlib.nullcontext()


def unseen(function):
    """Wraps what computes with tensors for us alone: it is neither told nor dispatched to anybody. A default
    device is such a mode, too, and our tensors would lie there."""

    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        torch = sys.modules["torch"]
        with untold(torch), undispatched(torch):
            return function(*args, **kwargs)

    return wrapper
