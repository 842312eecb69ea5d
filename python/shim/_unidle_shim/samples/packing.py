"""Serialises samples: tensors, arrays, numbers and strings in lists, tuples and dicts. Equal samples give
equal bytes.

`packed` raises TypeError for anything else. `unpacked` returns a new copy with the same types, shapes and
strides.
"""

import marshal
import struct
import sys

from _unidle_shim.host.shapes import unseen

_LENGTH = struct.Struct("@II")
_ALIGN = 16
_CACHED_SHAPES = 4096
_shapes = {}  # bytes of a description -> itself; samples of a dataset usually share one


@unseen
def packed(sample):
    buffers = []
    shape = marshal.dumps(_describe(sample, buffers), 2)
    parts = [_LENGTH.pack(len(shape), len(buffers)), shape, b"\0" * (-(_LENGTH.size + len(shape)) % _ALIGN)]
    for data in buffers:
        parts += (data, b"\0" * (-len(data) % _ALIGN))
    return b"".join(parts)


@unseen
def unpacked(data):
    length, _ = _LENGTH.unpack_from(data)
    key = bytes(data[_LENGTH.size : _LENGTH.size + length])
    shape = _shapes.get(key)
    if shape is None:
        shape = marshal.loads(key)
        if len(_shapes) < _CACHED_SHAPES:
            _shapes[key] = shape
    return _build(shape, data, [_LENGTH.size + length + (-(_LENGTH.size + length) % _ALIGN)])


def _describe(value, buffers):
    torch, numpy = sys.modules["torch"], sys.modules["numpy"]
    kind = type(value)
    if kind is torch.Tensor:
        return _describe_tensor(torch, numpy, value, buffers)
    if kind is numpy.ndarray and value.dtype.kind in "biufc":
        return ("a",) + _describe_array(numpy, value, buffers)
    if kind is float:
        return ("f", value.hex())  # also distinguishes nan and -0.0
    if value is None or kind in (int, bool, str, bytes):
        return ("v", value)
    if isinstance(value, numpy.generic) and value.dtype.kind in "biufc":
        buffers.append(value.tobytes())
        return ("s", value.dtype.str)
    if kind in (list, tuple):
        return ("l" if kind is list else "t", tuple(_describe(item, buffers) for item in value))
    if kind is dict and all(type(key) in (str, int) for key in value):
        return ("d", tuple(value), tuple(_describe(item, buffers) for item in value.values()))
    raise TypeError("a sample holds a %s.%s, which cannot be kept" % (kind.__module__, kind.__qualname__))


def _describe_tensor(torch, numpy, value, buffers):
    if (
        value.device.type != "cpu"
        or value.layout != torch.strided
        or value.requires_grad
        or value.is_quantized
    ):
        raise TypeError("a sample holds a tensor on a device, with gradients or not dense")
    name = str(value.dtype)
    if value.dtype == torch.bfloat16:
        value = value.view(torch.int16)
    try:
        return ("T", name) + _describe_array(numpy, value.numpy(), buffers)
    except (TypeError, RuntimeError):
        raise TypeError("a sample holds a tensor of %s, which cannot be kept" % name) from None


def _describe_array(numpy, value, buffers):
    """Type, order of the axes in memory, and shape in that order. The strides matter: collating keeps the
    layout."""
    order = tuple(sorted(range(value.ndim), key=lambda axis: -value.strides[axis]))
    inner = value.transpose(order)
    if not inner.flags.c_contiguous:
        order, inner = tuple(range(value.ndim)), numpy.ascontiguousarray(value)
    buffers.append(inner.tobytes())
    return (value.dtype.str, order, inner.shape)


def _build(shape, data, at):
    torch, numpy = sys.modules["torch"], sys.modules["numpy"]
    kind = shape[0]
    if kind == "T":
        tensor = torch.from_numpy(_array(numpy, shape[2:], data, at))
        return tensor.view(torch.bfloat16) if shape[1] == "torch.bfloat16" else tensor
    if kind == "a":
        return _array(numpy, shape[1:], data, at)
    if kind == "f":
        return float.fromhex(shape[1])
    if kind == "v":
        return shape[1]
    if kind == "s":
        dtype = numpy.dtype(shape[1])
        return numpy.frombuffer(_take(data, at, dtype.itemsize), dtype)[0]
    if kind == "d":
        return dict(zip(shape[1], [_build(item, data, at) for item in shape[2]]))
    items = [_build(item, data, at) for item in shape[1]]
    return items if kind == "l" else tuple(items)


def _array(numpy, shape, data, at):
    dtype, order, inner = shape
    kind, count = numpy.dtype(dtype), 1
    for length in inner:
        count *= length
    flat = numpy.frombuffer(_take(data, at, count * kind.itemsize), kind).reshape(inner).copy()
    back = [0] * len(order)
    for place, axis in enumerate(order):
        back[axis] = place
    return flat.transpose(back)


def _take(data, at, size):
    begin = at[0]
    at[0] = begin + size + (-size % _ALIGN)
    return data[begin : begin + size]
