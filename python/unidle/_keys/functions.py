"""Keys of functions and classes: their code, the values they hold, and the module values they read."""

from __future__ import annotations

import enum
import functools
import hashlib
import importlib.util
import os
import sys
import threading
import types
import weakref
from typing import Any, Callable, Dict, FrozenSet, Iterable, Optional, Tuple

from unidle._keys.parts import NotKeyable, module_of, number, part, text
from unidle._keys.reads import ITEM, Read, changes, imports, is_own_file, reads
from unidle._keys.seen import LARGE_COUNT, MISSING, Functions, is_data_class, may_change

_INNER = ("__wrapped__", "py_func", "pyfunc")  # of lru_cache, numba.jit, numpy.vectorize
_MOST_OBJECTS = 200  # long chains of objects would exceed the stack
_CONSTRUCTORS = ("__init__", "__new__", "__post_init__", "__setstate__")


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
        if not read.assigned:
            yield from _read_key(function.__globals__, read, functions)
    for module, name, steps in imports(function.__code__):
        names = _imported(module, name, function.__globals__, functions)
        if names is not None:
            yield from _read_key(
                names, Read(name or module.partition(".")[0], steps, False, False), functions
            )


def _read_key(names: Any, read: Read, functions: Functions) -> Iterable[bytes]:
    value, owner, taken = _followed(names, read, functions)
    if value is MISSING or (read.changed and (taken or may_change(value))):
        return
    yield text(f"{read.name} {taken!r}")
    yield _of_module(value, functions)
    if owner is not None and _is_method(value):  # which may read the rest of it
        yield _of_module(owner, functions)


def _followed(names: Any, read: Read, functions: Functions) -> Tuple[Any, Any, tuple]:
    """Returns the value of the name, or the attribute or item of it that is read, the class or object of
    which it is an attribute, and the steps to it."""
    value, owner, taken = functions.look_up(names, read.name), None, []
    for kind, name in read.steps:
        within = _names_within(value, kind, name)
        if within is None:
            break
        taken.append(name)
        owner = None if kind == ITEM or isinstance(value, types.ModuleType) else value
        value = functions.look_up(within, name)
    return value, owner, tuple(taken)


def _is_method(value: Any) -> bool:
    return isinstance(value, types.FunctionType) or bool(_within_descriptor(value))


def _imported(module: str, name: Optional[str], names: dict, functions: Functions) -> Any:
    """Returns the names in which an import within a function finds its value; None if that is not a part of
    the program. Imports the module, as the function will."""
    try:
        module = importlib.util.resolve_name(module, names.get("__package__") or "")
        top = module.partition(".")[0]
        if not _is_own_spec(top):
            return None
        loaded = importlib.import_module(module)
        if name is None:
            return {top: importlib.import_module(top)}
        if not hasattr(loaded, name):
            importlib.import_module(f"{module}.{name}")
        return vars(loaded)
    except Exception:  # as the function may expect
        return None


def _is_own_spec(top: str) -> bool:
    if top in sys.modules:
        return _is_own(top)
    spec = importlib.util.find_spec(top)
    places = [] if spec is None else [spec.origin or "", *(spec.submodule_search_locations or ())]
    return any(os.path.exists(place) and is_own_file(place + os.sep) for place in places)


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
    if isinstance(value, types.MethodType):
        return _of_module(value.__func__, functions) + _of_module(value.__self__, functions)
    held = _held(value)
    inner = [held.get(name) for name in _INNER]
    for each in (*inner, *_within_descriptor(value)):
        if isinstance(each, types.FunctionType):
            return _of_module(each, functions)
    if _is_own(type(value).__module__) and not _is_value(value):
        return object_key(value, functions)
    key = functions.of_module(value)
    if key == b"?" and type(value) in (list, tuple, dict) and len(value) <= LARGE_COUNT:
        functions.steady = False
        return _items_key(value, functions)
    return key


def _items_key(value: Any, functions: Functions) -> bytes:
    """Encodes the items that can be encoded."""
    count, new = functions.number_of(value)
    if not new:
        return part(b"r", number(count))
    items = (*value, *value.values()) if isinstance(value, dict) else value
    return part(b"i", *(_of_module(each, functions) for each in items))


def _within_descriptor(value: Any) -> Tuple[Any, ...]:
    """Returns what a method or property is made of."""
    if isinstance(value, (staticmethod, classmethod)):
        return (value.__func__,)
    if isinstance(value, property):
        return tuple(each for each in (value.fget, value.fset) if each is not None)
    if isinstance(value, functools.cached_property):
        return (value.func,)
    if isinstance(value, functools.partialmethod):
        return (value.func, value.args, value.keywords)
    return ()


def _function_of_module(value: Any, named: bytes, functions: Functions) -> bytes:
    if not is_own_file(value.__code__.co_filename):
        inner = getattr(value, "__wrapped__", None)  # the program's function inside a library decorator
        chosen = getattr(value, "registry", None)  # of singledispatch
        inside = [inner, *(chosen.values() if isinstance(chosen, types.MappingProxyType) else ())]
        return named + b"".join(_of_module(each, functions) for each in inside if each is not None)
    try:
        return function_key(value, (), functions)
    except NotKeyable:  # it holds a value that cannot be keyed
        return named + part(b"f", *_method_key(value, functions))


def _is_own(module: str) -> bool:
    if module in ("__main__", "__mp_main__"):
        return True
    loaded = sys.modules.get(module)
    file = getattr(loaded, "__file__", None)
    return is_own_file(file) if file else getattr(loaded, "__spec__", None) is None


def is_own_class(kind: Any) -> bool:
    """Whether it is a class of the program."""
    return isinstance(kind, type) and _is_own(kind.__module__)


def class_key(kind: type, functions: Functions) -> bytes:
    """Encodes the names of a class's bases, and the methods and values of those of the program. Values that
    its methods set on the class, or change in place, are left out."""
    count, new = functions.number_of(kind)
    if not new:
        return part(b"r", number(count))
    changed = frozenset().union(*(_changed_on_class(*method) for method in _methods(kind)))
    pieces = [number(count)]
    for one in (*kind.__mro__, *type(kind).__mro__):
        pieces.append(text(f"{module_of(one)}.{one.__qualname__}"))
        if _is_own(one.__module__):
            for name in sorted(set(vars(one)) - changed):
                pieces += text(name), _of_class(one, name, functions)
    return part(b"c", *pieces)


def _of_class(kind: type, name: str, functions: Functions) -> bytes:
    value = functions.look_up(vars(kind), name)
    if isinstance(value, types.FunctionType) and is_own_file(value.__code__.co_filename):
        return part(b"f", *_method_key(value, functions))
    inside = _within_descriptor(value)
    if inside:
        return part(b"m", *(_of_module(each, functions) for each in inside))
    if name.startswith("__") or name == "_abc_impl":
        return b""
    if isinstance(kind, enum.EnumMeta):
        return functions.of_module(value.value) if isinstance(value, kind) else b""
    return _of_module(value, functions)


def _method_key(function: Any, functions: Functions) -> Iterable[bytes]:
    """Encodes a function like function_key(), without the values that cannot be keyed."""
    yield code_key(function.__code__)
    held = [each for cell in function.__closure__ or () for each in _contents(cell)]
    named = sorted((function.__kwdefaults__ or {}).items())
    for each in (*(function.__defaults__ or ()), *(default for _, default in named), *held):
        yield _of_module(each, functions)
    yield from read_keys(function, functions)


def _contents(cell: Any) -> Tuple[Any, ...]:
    try:
        return (cell.cell_contents,)
    except ValueError:  # not assigned yet
        return ()


def object_key(value: Any, functions: Functions) -> bytes:
    """Encodes a module value of the program's class: the class, and those attributes with plain values that
    are set by the constructor and never changed by other methods."""
    kind, pieces = type(value), [class_key(type(value), functions)]
    count, new = functions.number_of(value)
    if not new or count > _MOST_OBJECTS:
        return part(b"o", *pieces)
    changed = set()
    for name, _, method in _methods(kind):
        found = changes(method.__code__)
        changed |= found.others if name in _CONSTRUCTORS else found.others | found.own
    for name, each in sorted(_held(value).items()):
        if name not in changed and (_is_plain(each) or _is_made_of_code(each)):
            functions.look_up(_held(value), name)
            pieces += text(name), _of_module(each, functions)
    return part(b"o", *pieces)


def _is_made_of_code(value: Any) -> bool:
    return isinstance(value, (types.FunctionType, type)) or is_own_class(type(value))


def _is_value(value: Any) -> bool:
    return is_data_class(value) or isinstance(value, (enum.Enum, tuple))


def _is_plain(value: Any, depth: int = 0) -> bool:
    """Whether it holds numbers, texts and the like alone, and few of them."""
    if not isinstance(value, (list, tuple, set, frozenset, dict)):
        plain = (bool, int, float, complex, str, bytes, os.PathLike, enum.Enum)
        return value is None or isinstance(value, plain)
    if len(value) > LARGE_COUNT or depth > 2:
        return False
    items = (*value, *value.values()) if isinstance(value, dict) else value
    return all(_is_plain(each, depth + 1) for each in items)


_class_codes: Any = weakref.WeakKeyDictionary()  # class -> (Functions, key)
_encoding: Any = threading.local()


def class_code(kind: type, encode: Callable) -> bytes:
    """Encodes the class of a value: two classes may have one name."""
    known = _class_codes.get(kind)
    if known is not None and known[0].are_as_before():
        return known[1]
    above = _encoding.__dict__.setdefault("classes", [])
    if kind in above:  # it holds a value of itself
        return b"^"
    above.append(kind)
    try:
        seen = Functions(encode)
        key = part(b"c", hashlib.sha256(class_key(kind, seen)).digest())
    finally:
        above.pop()
    if not above:  # otherwise the key may depend on the classes above
        _class_codes[kind] = seen, key
    return key


def _changed_on_class(_: str, attribute: Any, method: Any) -> FrozenSet[str]:
    found = changes(method.__code__)
    return found.own | found.others if isinstance(attribute, classmethod) else found.others


def _methods(kind: type) -> Iterable[Tuple[str, Any, Any]]:
    """Yields the methods of a class and its bases that belong to the program: name, attribute, function."""
    for one in kind.__mro__:
        if not _is_own(one.__module__):
            continue
        for name, each in sorted(vars(one).items()):
            for function in (each, *_within_descriptor(each)):
                if isinstance(function, types.FunctionType) and is_own_file(function.__code__.co_filename):
                    yield name, each, function


def _cell(cell: Any, above: Tuple[int, ...], functions: Functions) -> bytes:
    return b"".join(functions.encode(each, above, functions) for each in _contents(cell)) or b"-"


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
