"""The syntax tree of a function, if the text is still that of the code that runs."""

import __future__

import ast
import functools
import inspect
import types

from _unidle_shim.host.exception_origin import pass_on
from _unidle_shim.source.code_parts import parts_of

_MOST = 100  # functions whose trees are kept
_CALLED = (ast.Name, ast.Attribute, ast.Call, ast.Subscript)
_ODD = (ast.Global, ast.Nonlocal, ast.Yield, ast.YieldFrom, ast.Assert, ast.Try)
_FUTURE = 0  # flags of the compiler
for _name in __future__.all_feature_names:
    _FUTURE |= getattr(__future__, _name).compiler_flag


def tree_of(function):
    """Returns (its `def`, None), or (None, a part that makes it hard to follow), or (None, None) without its
    text, or if that has changed since."""
    return _read(function, function.__code__)


@functools.lru_cache(_MOST)
def _read(function, code):
    try:
        text = inspect.getsource(function)
        if "\\" in text:  # unknown escapes, of which the parser warns
            return None, None
        around = _around(function)
        tree = ast.parse("".join(around) + text)
        ast.increment_lineno(tree, code.co_firstlineno - len(around) - 1)
        found = tree
        for _ in around:
            found = found.body[-1]
        odd = next(filter(_is_odd, ast.walk(found)), None)
        if odd is not None:
            return None, odd
        made = compile(tree, "<text>", "exec", code.co_flags & _FUTURE, True)
        same = isinstance(found, ast.FunctionDef) and any(one == code for one in parts_of(made))
        return found if same else None, None
    except Exception as failure:  # the file is gone, or is another one now
        pass_on(failure)
        return None, None


def _around(function):
    """The lines of imports, classes and functions around it. Code and private names are named after them, and
    calls of imported modules have code of their own."""
    names = {name for one in parts_of(function.__code__) for name in one.co_names}
    modules = sorted(name for name in names if type(function.__globals__.get(name)) is types.ModuleType)
    parts, lines = function.__qualname__.split(".")[:-1], ["import %s\n" % ", ".join(modules or ["sys"])]
    for part, inner in zip(parts, [*parts[1:], None]):
        if part != "<locals>":
            kind = "def %s():" if inner == "<locals>" else "class %s:"
            lines.append(" " * (len(lines) - 1) + kind % part + "\n")
    return lines


def _is_odd(node):
    """Whether it changes what other code means, or the compiler may warn of it: the program has seen that."""
    if isinstance(node, ast.Compare):
        sides = [node.left, *node.comparators]
        return any(isinstance(one, (ast.Is, ast.IsNot)) for one in node.ops) and any(
            isinstance(one, ast.Constant) and one.value is not None for one in sides
        )
    if isinstance(node, (ast.Call, ast.Subscript)):
        return not isinstance(node.func if isinstance(node, ast.Call) else node.value, _CALLED)
    return isinstance(node, _ODD)
