"""Reads tensors without running any code of the program: neither subclasses of Tensor, nor modes that see
each function (TorchFunctionMode) or operation (TorchDispatchMode). Profilers of the program see no operation
of ours either."""

import contextlib
import functools
import sys
import threading

from _unidle_shim.host.exception_origin import pass_on

_hidden = threading.local()  # whether this thread's operations are hidden from profilers already


def shape_of(value):
    """The shape, or None if its class has none: objects that create attributes on demand are not queried. A
    subclass of Tensor is queried without __torch_function__, which would show the query to the program. None
    as well for nested tensors, which have no shape, and for shapes with symbols: comparing these would add a
    condition to the graph that torch traces."""
    kind, torch = type(value), sys.modules["torch"]
    try:
        if kind is torch.Tensor and not sees_functions(torch):
            return value.shape
        if not hasattr(kind, "shape"):
            return None
        if not issubclass(kind, torch.Tensor):
            return value.shape
        with hidden_queries(torch):
            shape = value.shape
        return shape if all(type(extent) is int for extent in shape) else None
    except Exception as failure:
        pass_on(failure)
        return None


def length_of_nested(value):
    """The number of tensors in a nested tensor; None for anything else."""
    torch = sys.modules["torch"]
    if not isinstance(value, torch.Tensor):
        return None
    with hidden_queries(torch):
        return value.size(0) if getattr(value, "is_nested", False) else None


def sees_functions(torch):
    """Whether the program has such a mode active. Much cheaper than `hidden_queries`."""
    asked = getattr(torch._C, "_is_torch_function_mode_enabled", None)
    return asked is None or asked()


def hidden_queries(torch):
    """Queries of tensors in this context are hidden from subclasses and from modes that see functions."""
    return contextlib.nullcontext() if torch is None else torch._C.DisableTorchFunction()


def undispatched(torch):
    """Computations in this context are hidden from modes that see operations. Does nothing before torch
    2.0."""
    guard = getattr(torch._C, "_DisableTorchDispatch", None)
    return guard() if hasattr(guard, "__enter__") else contextlib.nullcontext()


class unrecorded:
    """Computations in this context are hidden from the program's profiler. A class: torch's compiler would
    compile the functions of contextlib, where it does not skip them."""

    def __init__(self, torch):
        self.autograd = torch.autograd

    def __enter__(self):
        self.hides = not getattr(_hidden, "now", False) and self.autograd._profiler_enabled()
        if self.hides:
            _hidden.now = True
            self.autograd._enable_record_function(False)

    def __exit__(self, *exception):
        if self.hides:
            self.autograd._enable_record_function(True)
            _hidden.now = False


def unseen(function):
    """Wraps our own computations with tensors: they are hidden from subclasses, modes and profilers. A
    default device is such a mode too, and would determine where our tensors are."""

    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        torch = sys.modules["torch"]
        with hidden_queries(torch), undispatched(torch), unrecorded(torch):
            return function(*args, **kwargs)

    return wrapper
