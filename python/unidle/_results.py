"""Converts a function's result to named arrays and a description of its structure, and back."""

from __future__ import annotations

import json
import sys
from typing import Any, Dict

from unidle._cache import bytes_array, can_be_stored
from unidle._entry_arrays import OWN, Arrays
from unidle._keys.arguments import kind_of
from unidle._tensors import numpy
from unidle.errors import UsageError

_STRUCTURE = OWN + "structure"
_structures: Dict[bytes, Any] = {}  # text -> structure; results of one function mostly share one
_MOST_STRUCTURES = 4096
_AS_BYTES = "USMm"  # numpy's texts, bytes, dates and durations, which caches lack


def flattened(what: str, result: Any) -> Arrays:
    """Returns the arrays of a result, named by their position in it. `what` names the function in the
    UsageError for a result that cannot be stored."""
    arrays: Arrays = {}
    structure = _describe(what, result, "", arrays)
    text = json.dumps(structure, separators=(",", ":")).encode()
    return {_STRUCTURE: bytes_array(text), **arrays}


def put_together(arrays: Arrays) -> Any:
    text = arrays[_STRUCTURE].tobytes()
    structure = _structures.get(text)
    if structure is None:
        structure = json.loads(text)
        if len(_structures) < _MOST_STRUCTURES:
            _structures[text] = structure
    return _build(structure, arrays)


def _describe(what: str, value: Any, place: str, arrays: Arrays) -> list:
    np, torch, kind = numpy(), sys.modules.get("torch"), type(value)
    if value is None or kind in (bool, str):
        return ["value", value]
    if kind is int:
        return ["int", hex(value)]
    if kind is float:
        return ["float", value.hex()]
    if kind is dict and all(type(key) is str for key in value):
        return [
            "dict",
            [[key, _describe(what, each, f"{place}.{key}", arrays)] for key, each in value.items()],
        ]
    if kind in (list, tuple):
        items = [_describe(what, each, f"{place}.{at}", arrays) for at, each in enumerate(value)]
        return [kind.__name__, items]
    name = place[1:] or "value"
    number = len(arrays)
    while name in arrays or name.startswith(OWN):
        name, number = f"array {number}", number + 1
    if kind is bytes:
        arrays[name] = bytes_array(value)
        return ["bytes", name]
    if kind in (np.ndarray, np.memmap) and value.dtype.kind in "biufc" and value.dtype.itemsize <= 16:
        arrays[name] = value
        return ["array", name]
    if isinstance(value, np.generic) and value.dtype.kind in "biufc" and value.dtype.itemsize <= 16:
        arrays[name] = np.asarray(value)
        return ["scalar", name]
    if (kind is np.ndarray or isinstance(value, np.generic)) and value.dtype.kind in _AS_BYTES:
        array = np.ascontiguousarray(value)
        arrays[name] = bytes_array(array.tobytes())
        return ["bits", [name, array.dtype.str, np.shape(value), kind is np.ndarray]]
    if torch is not None and kind is torch.Tensor and _can_be_kept(value):
        arrays[name] = value
        return ["tensor", name]
    where = f" at {place[1:]}" if place else ""
    of = f" of {value.dtype}" if isinstance(value, np.ndarray) else ""
    raise UsageError(
        f"{what}: returned a {kind_of(value)}{of}{where}, which cannot be stored; expected arrays of "
        "numbers, texts or dates, tensors in the host's memory without gradients, numbers, texts, and lists, "
        "tuples and dicts of these"
    )


def _can_be_kept(value: Any) -> bool:
    return value.device.type == "cpu" and not value.requires_grad and can_be_stored(value)


def _build(structure: list, arrays: Arrays) -> Any:
    kind, of = structure
    if kind == "array":
        return arrays[of]
    if kind == "tensor":
        return _tensor(arrays[of])
    if kind == "dict":
        return {key: _build(each, arrays) for key, each in of}
    if kind == "list":
        return [_build(each, arrays) for each in of]
    if kind == "tuple":
        return tuple([_build(each, arrays) for each in of])
    if kind == "bits":
        return _of_bits(arrays, *of)
    if kind == "scalar":
        return arrays[of][()]
    if kind == "bytes":
        return arrays[of].tobytes()
    if kind == "int":
        return int(of, 16)
    return float.fromhex(of) if kind == "float" else of


def _of_bits(arrays: Arrays, name: str, dtype: str, shape: list, is_array: bool) -> Any:
    """Views the cache's bytes as an array, like arrays of numbers."""
    np, bits = numpy(), arrays[name]
    array = bits.view(dtype).reshape(shape) if bits.size else np.zeros(shape, dtype)
    array.flags.writeable = False
    return array if is_array else array[()]


def _tensor(array: Any) -> Any:
    """Copies the array: torch has no read-only tensors, and writing to a read-only mapping would kill the
    program."""
    import torch

    if array.dtype.name in ("bfloat16", "void16"):
        return torch.from_numpy(array.view("int16").copy()).view(torch.bfloat16)
    return torch.from_numpy(array.copy())
