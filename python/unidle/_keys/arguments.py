"""Encodes arguments as bytes that are equal exactly when the arguments are.

Each value is written as a letter for its kind, the length of its content, and the content, so that
different values never give the same bytes. Values without such a form are rejected by name, never keyed by
their id or repr().
"""

from __future__ import annotations

import collections
import dataclasses
import datetime
import decimal
import enum
import fractions
import functools
import hashlib
import os
import struct
import sys
import types
import uuid
from typing import Any, Callable, Optional, Tuple

from unidle._keys.functions import Functions, class_code, function_key
from unidle._keys.parts import NotKeyable, kind_of, module_of, number, part, text
from unidle._tensors import values_of
from unidle.errors import UsageError

# Types whose repr() is complete.
_TOLD_BY_REPR = (
    datetime.timedelta,
    decimal.Decimal,
    fractions.Fraction,
    range,
    uuid.UUID,
)
_CONTAINERS = (list, tuple, set, frozenset, dict)
# Base classes of the program's own classes, whose instances differ from equal values of the base. The known
# ones have no state besides their contents; each named tuple is its own type.
_MAY_HAVE_STATE = (*_CONTAINERS, int, float, complex, str, bytes, bytearray)
_KNOWN = (*_MAY_HAVE_STATE, bool, collections.OrderedDict, collections.defaultdict, collections.Counter)
_KNOWN_OF_LIBRARIES = ("numpy.str_", "torch.Size")
_Functions = Optional[Functions]  # those seen so far; None if functions cannot be keyed


def encoded(what: str, value: Any, code: bool = False) -> bytes:
    """Returns the bytes of a value. `what` names it in the UsageError for one that cannot be encoded; with
    `code`, it may contain functions, classes and modules. Python functions are encoded by name, code and
    the values they hold; classes, modules and other functions by name."""
    try:
        return encode(value, (), Functions(encode) if code else None)
    except NotKeyable as error:
        raise UsageError(
            f"{what}{error.place}: {error} cannot be keyed; pass what identifies it instead, or name the "
            "argument in `ignore` where the result does not depend on it"
        ) from None


def encode(value: Any, above: Tuple[int, ...], functions: _Functions) -> bytes:
    if value is None:
        return b"N"
    if value is ...:
        return b"X"
    if isinstance(value, enum.Enum):  # combined or empty flags may have no name
        name = text(value.name) if value.name is not None else number(value.value)
        return part(b"E", _class_of(value), name, _value_of_enum(value))
    if isinstance(value, _MAY_HAVE_STATE) and not _is_known(value):
        if isinstance(value, (float, complex, bytes)) and _is_of_numpy(value):
            return _of_libraries(value)
        raise NotKeyable(f"a value of type {kind_of(value)}")
    for base, bytes_of in _PLAIN:
        if isinstance(value, base):
            return bytes_of(value)
    if functions is not None and isinstance(value, types.FunctionType):
        return function_key(value, above, functions)
    if functions is not None and isinstance(value, functools.partial):
        names = ("func", "args", "keywords")
        return part(b"p", *(_within(f".{name}", getattr(value, name), above, functions) for name in names))
    if id(value) in above:
        if functions is None:
            raise NotKeyable("a value that holds itself")
        return part(b"^", number(len(above) - above.index(id(value))))
    above += (id(value),)
    if isinstance(value, slice):
        return part(
            b"L",
            b"slice",
            *(
                _within(f".{name}", getattr(value, name), above, functions)
                for name in ("start", "stop", "step")
            ),
        )
    if isinstance(value, _CONTAINERS):
        return _container(value, above, functions)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = ((field.name, getattr(value, field.name)) for field in dataclasses.fields(value))
        return part(
            b"C",
            _class_of(value),
            *(text(name) + _within(f".{name}", each, above, functions) for name, each in fields),
        )
    if functions is not None:
        if isinstance(value, (types.ModuleType, type)) or _is_free_builtin(value):
            if "<locals>" in getattr(
                value, "__qualname__", ""
            ):  # another call may create another one of this name
                raise NotKeyable(
                    f"the class {value.__module__}.{value.__qualname__}, made within a function,"
                )
            name = getattr(value, "__qualname__", "") or getattr(value, "__name__", "")
            return part(b"Q", text(module_of(value)), text(name))
        if hasattr(type(value), "held_by_wrapper"):  # of unidle.cached
            return part(b"W", encode(value.held_by_wrapper(), above, functions))
    return _of_libraries(value)


def _within(step: str, value: Any, above: Tuple[int, ...], functions: _Functions) -> bytes:
    try:
        return encode(value, above, functions)
    except NotKeyable as error:
        error.place = step + error.place
        raise


def _class_of(value: Any) -> bytes:
    kind = type(value)
    own = kind not in _KNOWN and kind_of(value) not in _KNOWN_OF_LIBRARIES
    return text(kind_of(value)) + (class_code(kind) if own else b"")


def _value_of_enum(value: Any) -> bytes:
    try:
        return encode(value.value, (), None)
    except NotKeyable:  # its name identifies it
        return b"?"


def _step(key: Any) -> str:
    text = repr(key) if isinstance(key, (str, int)) else f"a key of type {kind_of(key)}"
    return f"[{text if len(text) <= 60 else text[:57] + '...'}]"


def _is_of_numpy(value: Any) -> bool:
    np = sys.modules.get("numpy")
    return np is not None and isinstance(value, np.generic)


def _is_known(value: Any) -> bool:
    kind = type(value)
    named_tuple = isinstance(value, tuple) and hasattr(kind, "_fields")
    return kind in _KNOWN or named_tuple or kind_of(value) in _KNOWN_OF_LIBRARIES


def _is_free_builtin(value: Any) -> bool:
    """True for a function not written in Python and not bound to a value."""
    owner = getattr(value, "__self__", None)
    return isinstance(value, types.BuiltinFunctionType) and (
        owner is None or isinstance(owner, (types.ModuleType, type))
    )


def _told(value: Any, by: str) -> bytes:
    return part(b"R", text(kind_of(value)), text(by))


def _real(value: float) -> bytes:
    return b"F" + struct.pack("<d", value if value == value else float("nan"))


_PLAIN: Tuple[Tuple[Any, Callable[[Any], bytes]], ...] = (
    (bool, lambda value: b"B1" if value else b"B0"),
    (int, number),
    (float, _real),
    (complex, lambda value: part(b"Z", _real(value.real), _real(value.imag))),
    (str, text),
    (bytes, lambda value: part(b"Y", value)),
    (bytearray, lambda value: part(b"y", value)),
    (os.PathLike, lambda value: part(b"P", os.fsencode(os.fspath(value)))),
    ((datetime.datetime, datetime.time), lambda value: _told(value, f"{value.isoformat()} {value.fold}")),
    (datetime.date, lambda value: _told(value, value.isoformat())),
    (_TOLD_BY_REPR, lambda value: _told(value, repr(value))),
)


def _container(value: Any, above: Tuple[int, ...], functions: _Functions) -> bytes:
    kind = _class_of(value)
    if isinstance(value, dict):
        items = [
            _within(_step(key), key, above, functions) + _within(_step(key), each, above, functions)
            for key, each in value.items()
        ]
        if isinstance(value, collections.OrderedDict):  # two with different orders are not equal
            return part(b"D", kind, *items)
        if isinstance(value, collections.defaultdict):
            made = Functions(encode) if functions is None else functions
            kind += encode(value.default_factory, above, made)
        return part(b"D", kind, *sorted(items))
    if isinstance(value, (set, frozenset)):
        return part(b"U", kind, *sorted(encode(each, above, functions) for each in value))
    items = [_within(f"[{at}]", each, above, functions) for at, each in enumerate(value)]
    return part(b"L", kind, *items)


def _of_libraries(value: Any) -> bytes:
    np, torch = sys.modules.get("numpy"), sys.modules.get("torch")
    if np is not None:
        if isinstance(value, np.dtype) and not value.hasobject:
            return part(b"d", text(repr(value)))
        if isinstance(value, np.generic) or type(value) in (np.ndarray, np.memmap):
            return _array(np, np.asarray(value), b"G" if isinstance(value, np.generic) else b"A")
    if torch is not None:
        if isinstance(value, (torch.dtype, torch.device)):
            return part(b"t", text(str(value)))
        if type(value) in (torch.Tensor, torch.nn.Parameter) and value.layout == torch.strided:
            if not value.is_quantized:
                return _tensor(np, torch, value)
    raise NotKeyable(f"a value of type {kind_of(value)}")


def _tensor(np: Any, torch: Any, value: Any) -> bytes:
    if value.is_meta:
        raise NotKeyable("a tensor without values (of the device meta)")
    name, value = str(value.dtype), values_of(value)
    if value.dtype == torch.bfloat16:
        value = value.view(torch.int16)
    try:
        array = value.numpy()
    except TypeError:  # types that numpy lacks: by their bytes
        name += f" {tuple(value.shape)}"
        array = value.reshape(-1).view(torch.uint8).numpy()
    return part(b"T", text(name), _array(np, array, b"A"))


def _array(np: Any, array: Any, letter: bytes) -> bytes:
    """Encodes type, shape and the SHA-256 of the values in C order."""
    if array.dtype.hasobject:
        raise NotKeyable("an array of objects")
    values = np.ascontiguousarray(array)
    if not values.dtype.isnative:
        values = values.astype(values.dtype.newbyteorder("="))
    content = hashlib.sha256(values.reshape(-1).view(np.uint8) if values.size else b"").digest()
    return part(letter, text(repr(values.dtype)), text(repr(array.shape)), content)
