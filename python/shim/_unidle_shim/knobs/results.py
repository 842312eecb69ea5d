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
        try:
            return tensor.contiguous() if _is_channels_last(torch, tensor) else tensor
        except RuntimeError:  # of a tensor within vmap, or of another kind, the layout cannot be read
            return tensor

    return _converted(torch, value, convert)


def _is_channels_last(torch, tensor):
    """Whether values of one place lie side by side: also of views such as parts and flattened ones."""
    if tensor.layout != torch.strided or tensor.dim() < 3 or tensor.is_contiguous():
        return False
    return tensor.stride(1) == 1 or (
        tensor.dim() == 4 and tensor.is_contiguous(memory_format=torch.channels_last)
    )


def _converted(torch, value, convert, known=None):
    """`known`: (value, converted) by id; a tensor that a result holds twice stays one."""
    known = {} if known is None else known
    if id(value) not in known:
        known[id(value)] = value, _of_kind(torch, value, convert, known)
    return known[id(value)][1]


def _of_kind(torch, value, convert, known):
    if isinstance(value, torch.Tensor):
        return convert(value)
    if type(value) in (list, dict):  # perhaps one that the model keeps
        return _copied(torch, value, convert, known)
    if isinstance(value, tuple):
        return _of_tuple(torch, value, convert, known)
    if isinstance(value, collections.abc.MutableMapping):
        _put(torch, list(value.items()), value.__setitem__, convert, known)
    elif isinstance(value, list):
        _put(torch, list(enumerate(value)), value.__setitem__, convert, known)
    elif hasattr(type(value), "__dataclass_fields__"):
        names = [name for name in type(value).__dataclass_fields__ if hasattr(value, name)]
        put = functools.partial(object.__setattr__, value)  # works for frozen ones too
        _put(torch, [(name, getattr(value, name)) for name in names], put, convert, known)
    return value


def _copied(torch, value, convert, known):
    """A list or dict with converted items; `value` itself where there are none."""
    entries = list(value.items() if isinstance(value, dict) else enumerate(value))
    converted = [(name, _converted(torch, item, convert, known)) for name, item in entries]
    if all(new is old for (_, new), (_, old) in zip(converted, entries)):
        return value
    return dict(converted) if isinstance(value, dict) else [item for _, item in converted]


def _of_tuple(torch, value, convert, known):
    items = [_converted(torch, item, convert, known) for item in value]
    if all(new is old for new, old in zip(items, value)):
        return value
    if hasattr(type(value), "n_sequence_fields"):  # of C, as torch.return_types has them: made by a call
        return type(value)(items)
    made = tuple.__new__(type(value), items)  # a class may have a __new__ of its own, as named tuples do
    getattr(made, "__dict__", {}).update(getattr(value, "__dict__", {}))
    return made


def _put(torch, entries, put, convert, known):
    """Replaces values in place, so that the model's result keeps its class and all other entries."""
    for name, old in entries:
        new = _converted(torch, old, convert, known)
        if new is not old:
            put(name, new)
