"""Converts results of a forward pass to the number format and the layout that the program expects."""

import collections.abc
import functools


def to_float(torch, value):
    """Returns `value` with fp32 in place of 16-bit floats: the program computes its loss outside autocast."""

    def convert(tensor):
        is_half = tensor.is_floating_point() and tensor.dtype in (torch.bfloat16, torch.float16)
        return tensor.float() if is_half else tensor

    return _converted(torch, value, convert)


def to_contiguous(torch, value):
    """Returns `value` with channels-last tensors in the usual layout: view() and some losses need it."""

    def convert(tensor):
        is_last = tensor.dim() == 4 and tensor.is_contiguous(memory_format=torch.channels_last)
        return tensor.contiguous() if is_last else tensor

    return _converted(torch, value, convert)


def _converted(torch, value, convert):
    if isinstance(value, torch.Tensor):
        return convert(value)
    if isinstance(value, (list, tuple)):
        items = [_converted(torch, item, convert) for item in value]
        if all(new is old for new, old in zip(items, value)):
            return value
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)  # a named tuple
    if type(value) is dict:  # perhaps one that the model keeps
        return {key: _converted(torch, item, convert) for key, item in value.items()}
    if isinstance(value, collections.abc.MutableMapping):
        _put(torch, list(value.items()), value.__setitem__, convert)
    elif hasattr(type(value), "__dataclass_fields__"):
        names = [name for name in type(value).__dataclass_fields__ if hasattr(value, name)]
        put = functools.partial(object.__setattr__, value)  # works for frozen ones too
        _put(torch, [(name, getattr(value, name)) for name in names], put, convert)
    return value


def _put(torch, entries, put, convert):
    """Replaces values in place, so that the model's result keeps its class and all other entries."""
    for name, old in entries:
        new = _converted(torch, old, convert)
        if new is not old:
            put(name, new)
