"""Converts results of a forward pass under autocast to the number format that the program expects."""

import collections.abc
import functools


def to_float(torch, value):
    """Returns `value` with fp32 in place of 16-bit floats: the program computes its loss outside autocast."""
    if isinstance(value, torch.Tensor):
        return (
            value.float()
            if value.is_floating_point() and value.dtype in (torch.bfloat16, torch.float16)
            else value
        )
    if isinstance(value, (list, tuple)):
        items = [to_float(torch, item) for item in value]
        if all(new is old for new, old in zip(items, value)):
            return value
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)  # a named tuple
    if type(value) is dict:  # perhaps one that the model keeps
        return {key: to_float(torch, item) for key, item in value.items()}
    if isinstance(value, collections.abc.MutableMapping):
        _put_float(torch, list(value.items()), value.__setitem__)
    elif hasattr(type(value), "__dataclass_fields__"):
        names = [name for name in type(value).__dataclass_fields__ if hasattr(value, name)]
        put = functools.partial(object.__setattr__, value)  # works for frozen ones too
        _put_float(torch, [(name, getattr(value, name)) for name in names], put)
    return value


def _put_float(torch, entries, put):
    """Replaces values in place, so that the model's result keeps its class and all other entries."""
    for name, old in entries:
        new = to_float(torch, old)
        if new is not old:
            put(name, new)
