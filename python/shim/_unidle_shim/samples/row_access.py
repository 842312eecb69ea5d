"""Static check whether a dataset's __getitem__ only takes rows from arrays, so that it is safe to call.

Only then may we request many rows at once when the program did not. The check reads the byte code: every name
in it must be known, and nothing may be assigned.
"""

import builtins
import dis
import sys
import types

from _unidle_shim.source.code_parts import parts_of

_DEEPEST = 3
_FUNCTIONS = {
    "int",
    "float",
    "bool",
    "tuple",
    "list",
    "dict",
    "len",
    "min",
    "max",
    "abs",
    "range",
    "zip",
    "isinstance",
    "slice",
}
_OF_ARRAYS = {
    "float",
    "long",
    "int",
    "double",
    "half",
    "bool",
    "short",
    "numpy",
    "item",
    "tolist",
    "astype",
    "clone",
    "copy",
    "reshape",
    "view",
    "flatten",
    "unsqueeze",
    "squeeze",
    "permute",
    "transpose",
    "contiguous",
    "type",
    "iloc",
    "loc",
    "values",
    "to_numpy",
    "shape",
    "ndim",
    "dtype",
    "size",
    "T",
    "sum",
    "mean",
    "ravel",
    "detach",
    "keys",
    "items",
    "get",
}
_OF_MODULES = _OF_ARRAYS | {
    "as_tensor",
    "from_numpy",
    "asarray",
    "array",
    "ascontiguousarray",
    "stack",
    "cat",
    "concatenate",
    "hstack",
    "newaxis",
    "nan_to_num",
    "clip",
    "float16",
    "float32",
    "float64",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "bool_",
    "bfloat16",
}
_SETS = (
    "STORE_ATTR",
    "STORE_GLOBAL",
    "STORE_SUBSCR",
    "STORE_SLICE",
    "DELETE_",
    "IMPORT_",
    "INPLACE_",
    "STORE_DEREF",
    "LOAD_BUILD_CLASS",
    "LOAD_SUPER",
)


def why_not(dataset):
    """None if it is safe, otherwise the reason why not."""
    function = getattr(type(dataset), "__getitem__", None)
    if not isinstance(function, types.FunctionType):
        return "its __getitem__ is no function in Python"
    return _of_function(dataset, function, 1)


def _of_function(dataset, function, depth):
    code = function.__code__
    if code.co_freevars or getattr(function, "__wrapped__", None) is not None:
        return "its %s is a closure or decorated" % code.co_name
    why = _of_code(code)
    for name in _names(code) if why is None else ():
        why = _of_name(dataset, function, name, depth)
        if why is not None:
            break
    return why


def _names(code):
    """The names that it calls and reads, in the order of its lines."""
    return [name for one in parts_of(code) for name in one.co_names]


def _of_code(code):
    for one in parts_of(code):
        for step in dis.get_instructions(one):
            name = step.opname
            if name.startswith(_SETS) or (name == "BINARY_OP" and step.argrepr.endswith("=")):
                return "its %s sets something" % code.co_name
    return None


def _of_name(dataset, function, name, depth):
    """Why the name is not safe; None if it is only read."""
    held = getattr(dataset, "__dict__", {})
    if name in held:
        if _is_data(held[name]):
            return None
        return "its %s has to do with self.%s, which is no array" % (function.__name__, name)
    if name in function.__globals__:
        return _of_global(function.__globals__[name], function, name)
    own = next((vars(kind)[name] for kind in type(dataset).__mro__ if name in vars(kind)), None)
    if own is not None:
        if isinstance(own, types.FunctionType) and depth < _DEEPEST:
            return _of_function(dataset, own, depth + 1)
        return None if _is_data(own) else "its %s calls %s" % (function.__name__, name)
    if name in _OF_MODULES or (name in _FUNCTIONS and hasattr(builtins, name)):
        return None
    found = getattr(builtins, name, None)
    return (
        None
        if isinstance(found, type) and issubclass(found, Exception)
        else "its %s calls %s" % (function.__name__, name)
    )


def _of_global(value, function, name):
    modules = [sys.modules.get(known) for known in ("torch", "numpy")]
    if _is_data(value) or any(value is module for module in modules if module is not None):
        return None
    return "its %s has to do with %s" % (function.__name__, name)


def _is_data(value, depth=2):
    """Whether it consists of arrays, numbers and texts: reading from them runs no foreign code."""
    kind = type(value)
    if value is None or kind in (int, float, str, bool, bytes):
        return True
    if kind in (list, tuple) and depth:
        return all(_is_data(each, depth - 1) for each in (value[:8] if kind is list else value[:64]))
    if kind is dict and depth:
        return all(type(key) in (str, int) for key in list(value)[:64]) and all(
            _is_data(each, depth - 1) for each in list(value.values())[:64]
        )
    name = kind.__module__.split(".")[0], kind.__name__
    return name in (
        ("torch", "Tensor"),
        ("numpy", "ndarray"),
        ("pandas", "DataFrame"),
        ("pandas", "Series"),
    ) and _is_on_host(value)


def _is_on_host(value):
    device = getattr(value, "device", None)
    return getattr(device, "type", "cpu") == "cpu" and not getattr(value, "requires_grad", False)
