"""What a call is made with, as bytes that are the same exactly when the arguments are.

Each value is written as a letter for its kind, the length of what follows, and that; so no two values give
the same bytes. What has no such form is named and refused, never guessed at by its id or its repr().
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
from typing import Any, Callable, Dict, Optional, Tuple

from unidle._tensors import values_of
from unidle.errors import UsageError

# Those whose repr() tells all.
_TOLD_BY_REPR = (
    datetime.timedelta,
    decimal.Decimal,
    fractions.Fraction,
    range,
    uuid.UUID,
)
_CONTAINERS = (list, tuple, set, frozenset, dict)
# What a class of the program's own may be derived from, to be another thing than the same value of these. The
# known ones have no state besides what they contain; of named tuples each has a type of its own.
_MAY_HAVE_STATE = (*_CONTAINERS, int, float, complex, str, bytes, bytearray)
_KNOWN = (*_MAY_HAVE_STATE, bool, collections.OrderedDict, collections.defaultdict, collections.Counter)
_KNOWN_OF_LIBRARIES = ("numpy.str_", "torch.Size")
_Functions = Optional[Dict[int, int]]  # id -> number, of those met so far; None where there may be none


class _Cannot(Exception):
    place = ""  # within the value that was asked for: ['model'].layers[2]


def module_of(value: Any) -> str:
    """Where a class or function is from; the main program has one name, also in processes that it spawned."""
    name = getattr(value, "__module__", None) or ""
    return "__main__" if name == "__mp_main__" else name


def kind_of(value: Any) -> str:
    return f"{module_of(type(value))}.{type(value).__qualname__}".replace("builtins.", "")


def encoded(what: str, value: Any, code: bool = False) -> bytes:
    """The bytes of a value. `what` names it in the UsageError for one that has none; `code`: functions,
    classes and modules may be in it. Classes, modules and functions not written in Python are known by
    their names, functions of Python by their names, their code and the values that they hold."""
    try:
        return _encoded(value, (), {} if code else None)
    except _Cannot as error:
        raise UsageError(
            f"{what}{error.place}: {error} cannot be keyed; pass what identifies it instead, or name the "
            "argument in `ignore` where the result does not depend on it"
        ) from None


def _part(letter: bytes, *pieces: Any) -> bytes:
    return letter + struct.pack("<Q", sum(map(len, pieces))) + b"".join(pieces)


def _text(text: str) -> bytes:
    return _part(b"S", text.encode(errors="surrogatepass"))


def _encoded(value: Any, above: Tuple[int, ...], functions: _Functions) -> bytes:
    if value is None:
        return b"N"
    if value is ...:
        return b"X"
    if isinstance(value, enum.Enum):  # flags that are a mix, or nothing, may have no name
        name = _text(value.name) if value.name is not None else _number(value.value)
        return _part(b"E", _text(kind_of(value)), name)
    if isinstance(value, _MAY_HAVE_STATE) and not _is_known(value):
        if isinstance(value, (float, complex, bytes)) and _is_of_numpy(value):
            return _of_libraries(value)
        raise _Cannot(f"a value of type {kind_of(value)}")
    for base, encode in _PLAIN:
        if isinstance(value, base):
            return encode(value)
    if functions is not None and isinstance(value, types.FunctionType):
        return _function(value, above, functions)
    if id(value) in above:
        if functions is None:
            raise _Cannot("a value that holds itself")
        return _part(b"^", _number(len(above) - above.index(id(value))))
    above += (id(value),)
    if isinstance(value, slice):
        return _part(
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
        return _part(
            b"C",
            _text(kind_of(value)),
            *(_text(name) + _within(f".{name}", each, above, functions) for name, each in fields),
        )
    if functions is not None:
        if isinstance(value, (types.ModuleType, type)) or _is_free_builtin(value):
            if "<locals>" in getattr(value, "__qualname__", ""):  # another call may make another of that name
                raise _Cannot(f"the class {value.__module__}.{value.__qualname__}, made within a function,")
            name = getattr(value, "__qualname__", "") or getattr(value, "__name__", "")
            return _part(b"Q", _text(module_of(value)), _text(name))
        if hasattr(type(value), "held_by_wrapper"):  # of unidle.cached
            return _part(b"W", _encoded(value.held_by_wrapper(), above, functions))
    return _of_libraries(value)


def _within(step: str, value: Any, above: Tuple[int, ...], functions: _Functions) -> bytes:
    try:
        return _encoded(value, above, functions)
    except _Cannot as error:
        error.place = step + error.place
        raise


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
    """Whether it is a function not of Python that is bound to no value."""
    owner = getattr(value, "__self__", None)
    return isinstance(value, types.BuiltinFunctionType) and (
        owner is None or isinstance(owner, (types.ModuleType, type))
    )


def _function(function: Any, above: Tuple[int, ...], functions: Dict[int, int]) -> bytes:
    """Each function once, however often it is met: those that hold each other would take forever."""
    number = functions.get(id(function))
    if number is not None:
        return _part(b"r", _number(number))
    number = functions[id(function)] = len(functions)
    held = [_cell(cell, above, functions) for cell in function.__closure__ or ()]
    return _part(
        b"f",
        _number(number),
        _text(module_of(function)),
        _text(function.__qualname__),
        _code(function.__code__),
        _encoded(function.__defaults__, above, functions),
        _encoded(function.__kwdefaults__, above, functions),
        *held,
    )


def _cell(cell: Any, above: Tuple[int, ...], functions: Dict[int, int]) -> bytes:
    try:
        value = cell.cell_contents
    except ValueError:  # not set yet
        return b"-"
    return _encoded(value, above, functions)


@functools.lru_cache(maxsize=1024)
def _code(code: types.CodeType) -> bytes:
    """What the code does, not where it stands: neither file nor lines."""
    numbers = (code.co_flags, code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount)
    names = (
        code.co_name,
        *code.co_names,
        "",
        *code.co_varnames,
        "",
        *code.co_cellvars,
        "",
        *code.co_freevars,
    )
    constants = (
        _code(each) if isinstance(each, types.CodeType) else _encoded(each, (), None)
        for each in code.co_consts
    )
    content = _part(
        b"K",
        *map(_number, numbers),
        *map(_text, names),
        _part(b"Y", code.co_code),
        _part(b"Y", getattr(code, "co_exceptiontable", b"")),  # since Python 3.11
        *constants,
    )
    return _part(b"K", hashlib.sha256(content).digest())


def _told(value: Any, by: str) -> bytes:
    return _part(b"R", _text(kind_of(value)), _text(by))


def _number(value: int) -> bytes:
    return _part(b"I", b"%x" % value)


def _real(value: float) -> bytes:
    return b"F" + struct.pack("<d", value if value == value else float("nan"))


_PLAIN: Tuple[Tuple[Any, Callable[[Any], bytes]], ...] = (
    (bool, lambda value: b"B1" if value else b"B0"),
    (int, _number),
    (float, _real),
    (complex, lambda value: _part(b"Z", _real(value.real), _real(value.imag))),
    (str, _text),
    (bytes, lambda value: _part(b"Y", value)),
    (bytearray, lambda value: _part(b"y", value)),
    (os.PathLike, lambda value: _part(b"P", os.fsencode(os.fspath(value)))),
    ((datetime.datetime, datetime.time), lambda value: _told(value, f"{value.isoformat()} {value.fold}")),
    (datetime.date, lambda value: _told(value, value.isoformat())),
    (_TOLD_BY_REPR, lambda value: _told(value, repr(value))),
)


def _container(value: Any, above: Tuple[int, ...], functions: _Functions) -> bytes:
    kind = _text(kind_of(value))
    if isinstance(value, dict):
        items = [
            _within(_step(key), key, above, functions) + _within(_step(key), each, above, functions)
            for key, each in value.items()
        ]
        if isinstance(value, collections.OrderedDict):  # two of another order are not equal
            return _part(b"D", kind, *items)
        if isinstance(value, collections.defaultdict):
            made = {} if functions is None else functions
            kind += _encoded(value.default_factory, above, made)
        return _part(b"D", kind, *sorted(items))
    if isinstance(value, (set, frozenset)):
        return _part(b"U", kind, *sorted(_encoded(each, above, functions) for each in value))
    items = [_within(f"[{at}]", each, above, functions) for at, each in enumerate(value)]
    return _part(b"L", kind, *items)


def _of_libraries(value: Any) -> bytes:
    np, torch = sys.modules.get("numpy"), sys.modules.get("torch")
    if np is not None:
        if isinstance(value, np.dtype) and not value.hasobject:
            return _part(b"d", _text(repr(value)))
        if isinstance(value, np.generic) or type(value) in (np.ndarray, np.memmap):
            return _array(np, np.asarray(value), b"G" if isinstance(value, np.generic) else b"A")
    if torch is not None:
        if isinstance(value, (torch.dtype, torch.device)):
            return _part(b"t", _text(str(value)))
        if type(value) in (torch.Tensor, torch.nn.Parameter) and value.layout == torch.strided:
            if not value.is_quantized:
                return _tensor(np, torch, value)
    raise _Cannot(f"a value of type {kind_of(value)}")


def _tensor(np: Any, torch: Any, value: Any) -> bytes:
    if value.is_meta:
        raise _Cannot("a tensor without values (of the device meta)")
    name, value = str(value.dtype), values_of(value)
    if value.dtype == torch.bfloat16:
        value = value.view(torch.int16)
    try:
        array = value.numpy()
    except TypeError:  # numbers that numpy does not have: by their bytes
        name += f" {tuple(value.shape)}"
        array = value.reshape(-1).view(torch.uint8).numpy()
    return _part(b"T", _text(name), _array(np, array, b"A"))


def _array(np: Any, array: Any, letter: bytes) -> bytes:
    """Type, shape and the SHA-256 of the values in C order."""
    if array.dtype.hasobject:
        raise _Cannot("an array of objects")
    values = np.ascontiguousarray(array)
    if not values.dtype.isnative:
        values = values.astype(values.dtype.newbyteorder("="))
    content = hashlib.sha256(values.reshape(-1).view(np.uint8) if values.size else b"").digest()
    return _part(letter, _text(repr(values.dtype)), _text(repr(array.shape)), content)
