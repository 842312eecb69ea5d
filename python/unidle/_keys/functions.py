"""Keys of functions and classes: their code, the values they hold, and the module values they read."""

from __future__ import annotations

import collections
import functools
import hashlib
import sys
import types
import weakref
from typing import Any, Callable, Dict, Iterable, List, Optional, Tuple

from unidle._keys.parts import NotKeyable, module_of, number, part, text
from unidle._keys.reads import ITEM, Read, is_own_file, reads

_MISSING: Any = object()
_MAY_CHANGE = (list, dict, set, bytearray, collections.deque)
_LARGE_COUNT, _LARGE_BYTES = 64, 1 << 16  # larger module values are encoded once per process
_HUGE_BYTES = 64 << 20  # larger arrays are encoded by type and shape only


class Functions:
    """The functions and classes met during an encoding, each once because they may refer to each other,
    and the module names that were looked up, to detect later whether their values have changed."""

    def __init__(self, encode: Callable, large: Optional[Dict[int, tuple]] = None) -> None:
        self.encode = encode  # encodes any value: (value, above, functions) -> bytes
        self._numbers: Dict[int, int] = {}
        self._watched: List[Tuple[Any, Any, Any]] = []  # namespace, name, value
        self._large: Dict[int, tuple] = {} if large is None else large
        self._mutable: List[Tuple[Any, bytes]] = []  # module values that may change in place
        self.steady = True  # False: some other value may change in place

    def number_of(self, thing: Any) -> Tuple[int, bool]:
        """Returns its number, and whether it is new."""
        new = id(thing) not in self._numbers
        return self._numbers.setdefault(id(thing), len(self._numbers)), new

    def are_as_before(self) -> bool:
        if not self.steady:
            return False
        for names, name, value in self._watched:
            if names.get(name, _MISSING) is not value:
                return False
        return all(self._or_nothing(value) == key for value, key in self._mutable)

    def look_up(self, names: Any, name: Any) -> Any:
        value = names.get(name, _MISSING)
        self._watched.append((names, name, value))
        return value

    def of_module(self, value: Any) -> bytes:
        """Encodes a module value. A value that cannot be keyed (a model, an open file) is ignored."""
        if not may_change(value):
            return self._or_nothing(value)
        size = getattr(value, "nbytes", None)
        large = len(value) > _LARGE_COUNT if size is None else size > _LARGE_BYTES
        if not large:
            key = self._or_nothing(value)
            self._mutable.append((value, key))
            return key
        if (size or 0) > _HUGE_BYTES:
            return text(f"{value.dtype} {tuple(value.shape)}")
        known = self._large.get(id(value))
        if known is None or known[0] is not value or known[1] != len(value):
            known = self._large[id(value)] = value, len(value), self._or_nothing(value)
        return known[2]

    def _or_nothing(self, value: Any) -> bytes:
        try:
            return self.encode(value, (), Functions(self.encode))
        except NotKeyable:
            return b"?"


def may_change(value: Any) -> bool:
    """Whether a value may change in place. REQUIRES: it can be keyed."""
    if isinstance(value, (tuple, frozenset)):
        return any(map(may_change, value))
    return isinstance(value, _MAY_CHANGE) or hasattr(type(value), "nbytes") or is_data_class(value)


def is_data_class(value: Any) -> bool:
    return hasattr(type(value), "__dataclass_fields__")


def function_key(function: Any, above: Tuple[int, ...], functions: Functions) -> bytes:
    """Encodes its name, code, defaults, and the values it holds."""
    count, new = functions.number_of(function)
    if not new:
        return part(b"r", number(count))
    held = [_cell(cell, above, functions) for cell in function.__closure__ or ()]
    if held or any(map(may_change, function.__defaults__ or ())):
        functions.steady = False
    return part(
        b"f",
        number(count),
        text(module_of(function)),
        text(function.__qualname__),
        code_key(function.__code__),
        functions.encode(function.__defaults__, above, functions),
        functions.encode(function.__kwdefaults__, above, functions),
        *held,
        *read_keys(function, functions),
    )


def read_keys(function: Any, functions: Functions) -> Iterable[bytes]:
    """Encodes the module values that a function of the program reads."""
    if not is_own_file(function.__code__.co_filename):
        return
    for read in reads(function.__code__):
        if read.assigned:
            continue
        value, taken = _followed(function.__globals__, read, functions)
        if value is _MISSING or (read.changed and (taken or may_change(value))):
            continue
        yield text(f"{read.name} {taken!r}")
        yield _of_module(value, functions)


def _followed(names: dict, read: Read, functions: Functions) -> Tuple[Any, tuple]:
    """Returns the value of the name, or the attribute or item of it that is read, and the steps to it."""
    value, taken = functions.look_up(names, read.name), []
    for kind, name in read.steps:
        within = _names_within(value, kind, name)
        if within is None:
            break
        taken.append(name)
        value = functions.look_up(within, name)
    return value, tuple(taken)


def _names_within(value: Any, kind: str, name: Any) -> Any:
    if kind == ITEM:
        return value if type(value) is dict else None
    if isinstance(value, types.ModuleType):
        return vars(value) if _is_own(value.__name__) else None
    if not isinstance(value, type) and name in _held(value):
        return _held(value)
    kinds = value.__mro__ if isinstance(value, type) else type(value).__mro__
    return next((vars(one) for one in kinds if name in vars(one) and _is_own(one.__module__)), None)


def _held(value: Any) -> Dict[str, Any]:
    """Returns the object's own attributes without running its code."""
    try:
        return object.__getattribute__(value, "__dict__")
    except AttributeError:
        return {}


def _of_module(value: Any, functions: Functions) -> bytes:
    if isinstance(value, (types.ModuleType, type, types.FunctionType)):
        where = value.__name__ if isinstance(value, types.ModuleType) else module_of(value)
        named = part(b"Q", text(where), text(getattr(value, "__qualname__", "")))
        if isinstance(value, type):
            return named + class_key(value, functions) if _is_own(where) else named
        if isinstance(value, types.FunctionType):
            return _function_of_module(value, named, functions)
        return named
    inner = _held(value).get("__wrapped__") or _held(value).get("py_func")  # of lru_cache, numba.jit
    if isinstance(value, (staticmethod, classmethod)):
        inner = value.__func__
    elif isinstance(value, property):
        inner = value.fget
    if isinstance(inner, types.FunctionType):
        return _of_module(inner, functions)
    return functions.of_module(value)


def _function_of_module(value: Any, named: bytes, functions: Functions) -> bytes:
    if not is_own_file(value.__code__.co_filename):
        inner = getattr(value, "__wrapped__", None)  # the program's function inside a library decorator
        return named + (_of_module(inner, functions) if inner is not None else b"")
    try:
        return function_key(value, (), functions)
    except NotKeyable:  # it holds a value that cannot be keyed
        return named + code_key(value.__code__)


def _is_own(module: str) -> bool:
    if module in ("__main__", "__mp_main__"):
        return True
    loaded = sys.modules.get(module)
    file = getattr(loaded, "__file__", None)
    return is_own_file(file) if file else getattr(loaded, "__spec__", None) is None


def class_key(kind: type, functions: Functions) -> bytes:
    """Encodes the methods of a class and its bases."""
    count, new = functions.number_of(kind)
    if not new:
        return part(b"r", number(count))
    pieces = [number(count)]
    for name, function in _methods(kind):
        pieces += text(name), code_key(function.__code__), *read_keys(function, functions)
    return part(b"c", *pieces)


_class_codes: Any = weakref.WeakKeyDictionary()


def class_code(kind: type) -> bytes:
    """Encodes the code of its methods and their constants: two classes may have one name."""
    known = _class_codes.get(kind)
    if known is None:
        pieces = [text(" ".join(getattr(kind, "_fields", ())))]
        for name, function in _methods(kind):
            pieces += text(name), code_key(function.__code__), *map(_plain_cell, function.__closure__ or ())
        known = _class_codes[kind] = part(b"c", hashlib.sha256(b"".join(pieces)).digest())
    return known


def _plain_cell(cell: Any) -> bytes:
    try:
        value = cell.cell_contents
    except ValueError:  # not assigned yet
        return b"-"
    return text(repr(value)) if isinstance(value, (bool, int, float, complex, str, bytes)) else b"?"


def _methods(kind: type) -> Iterable[Tuple[str, Any]]:
    """Yields the methods of a class and its bases that belong to the program."""
    for one in kind.__mro__:
        if not _is_own(one.__module__):
            continue
        for name, each in sorted(vars(one).items()):
            for function in (each, *(getattr(each, of, None) for of in ("__func__", "fget", "fset"))):
                if isinstance(function, types.FunctionType) and is_own_file(function.__code__.co_filename):
                    yield name, function


def _cell(cell: Any, above: Tuple[int, ...], functions: Functions) -> bytes:
    try:
        value = cell.cell_contents
    except ValueError:  # not assigned yet
        return b"-"
    return functions.encode(value, above, functions)


@functools.lru_cache(maxsize=1024)
def code_key(code: types.CodeType) -> bytes:
    """Encodes what the code does, without file and line numbers."""
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
    content = part(
        b"K",
        *map(number, numbers),
        *map(text, names),
        part(b"Y", code.co_code),
        part(b"Y", getattr(code, "co_exceptiontable", b"")),  # since Python 3.11
        *map(_constant, code.co_consts),
    )
    return part(b"K", hashlib.sha256(content).digest())


def _constant(value: Any) -> bytes:
    if isinstance(value, types.CodeType):
        return code_key(value)
    if isinstance(value, tuple):
        return part(b"L", *map(_constant, value))
    if isinstance(value, frozenset):
        return part(b"U", *sorted(map(_constant, value)))
    return text(f"{type(value).__name__} {value!r}")
