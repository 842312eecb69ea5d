"""A number that a name, an attribute or an item of the program stands for, read and changed where a frame of it sees it."""

import ast
import ctypes
import sys

from . import sources
from .sources import Unclear


class Count(int):
    """A number that was put in the place of the program's `original`, and is known by that wherever it is handed on. What is saved or
    sent to another process is the original."""

    original = None

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self

    def __reduce__(self):
        return int, (self.original,)


def count(value, original):
    made = Count(value)
    made.original = original
    return made


class Variable:
    """`count`, `args.count`, `settings["count"]`, as some node of the source has it."""

    def __init__(self, source, node):
        self.source, self.node, self.key = source, node, _key(node)
        if self.key is None:
            raise Unclear("what it counts to is computed at %s:%d" % (source.module, node.lineno))

    def is_local(self):
        """Each call of its function has one of its own."""
        return isinstance(self.node, ast.Name) and not self.source.is_of_module(self.node)

    def is_same(self, node):
        """In the same function."""
        return _key(node) == self.key

    def may_be(self, source, node):
        """The node may read it, wherever in the program."""
        if not isinstance(getattr(node, "ctx", None), ast.Load):
            return False
        if isinstance(self.node, ast.Name) and isinstance(node, ast.Name) and source is self.source:
            return node.id == self.node.id and source.scope(node) is source.scope(self.node)
        if self.is_local() or (_key(node) or ("",))[-1] != self.key[-1]:
            return False
        return not isinstance(node, ast.Name) or isinstance(self.node, ast.Name) and not source.defines(node)

    def read(self, frame):
        """A whole number; Unclear where it is none."""
        value = _value(frame, self.node)
        if type(value) not in (int, Count):
            raise Unclear("%s is no whole number" % _text(self.node))
        return value

    def write(self, frame, value):
        """Unclear, and nothing is changed, where the frame does not own it."""
        node = self.node
        if isinstance(node, (ast.Attribute, ast.Subscript)):
            _write_into(_value(frame, node.value), node, value)
        elif self.source.is_of_module(node):
            frame.f_globals[node.id] = value
        elif node.id in frame.f_code.co_varnames + frame.f_code.co_cellvars:
            _write_local(frame, node.id, value)
        else:
            raise Unclear("%s belongs to another function" % node.id)
        if type(self.read(frame)) is not type(value):
            raise Unclear("%s keeps its value" % _text(node))

    def where(self):
        """The line of the only assignment of a literal to the name; None where there is another way."""
        if not isinstance(self.node, ast.Name):
            return None
        bound = self.source.uses(self.node, ast.Store)
        value = sources.bound_to(bound[0]) if len(bound) == 1 else None
        return value.lineno if isinstance(value, ast.Constant) else None


def _write_into(owner, node, value):
    try:
        if isinstance(node, ast.Attribute):
            setattr(owner, node.attr, value)
        else:
            owner[_index(node)] = value
    except (AttributeError, TypeError, ValueError) as error:
        raise Unclear("%s cannot be set: %s" % (_text(node), error)) from None


def _write_local(frame, name, value):
    frame.f_locals[name] = value
    if sys.version_info < (3, 13):  # from there on the locals of a frame are themselves, before they are a copy
        ctypes.pythonapi.PyFrame_LocalsToFast(ctypes.py_object(frame), ctypes.c_int(0))


def _key(node):
    if isinstance(node, ast.Name):
        return (node.id,)
    if isinstance(node, ast.Attribute):
        inner = _key(node.value)
        return None if inner is None else inner + (".", node.attr)
    if isinstance(node, ast.Subscript) and isinstance(_index(node), str):
        inner = _key(node.value)
        return None if inner is None else inner + ("[]", _index(node))
    return None


def _index(node):
    return getattr(node.slice, "value", None)


def _text(node):
    return ast.unparse(node)


def _value(frame, node):
    try:
        if isinstance(node, ast.Name):
            return frame.f_locals[node.id] if node.id in frame.f_locals else frame.f_globals[node.id]
        if isinstance(node, ast.Attribute):
            return getattr(_value(frame, node.value), node.attr)
        return _value(frame, node.value)[_index(node)]
    except (KeyError, AttributeError, TypeError) as error:
        raise Unclear("%s cannot be read: %s" % (_text(node), error)) from None
