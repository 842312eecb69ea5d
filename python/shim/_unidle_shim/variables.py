"""A number that a name of the program stands for, read and changed where a frame of it sees it."""

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
    """The name of a whole number, as some node of the source has it."""

    def __init__(self, source, node):
        if not isinstance(node, ast.Name):
            raise Unclear("%s, which the loop counts to, is no name of its own: others may read it too" % ast.unparse(node))
        self.source, self.node, self.name = source, node, node.id

    def is_local(self):
        """Each call of its function has one of its own."""
        return not self.source.is_of_module(self.node)

    def is_same(self, node):
        """In the same function."""
        return isinstance(node, ast.Name) and node.id == self.name

    def may_be(self, source, node):
        """The node may read it, wherever in the program."""
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id == self.name:
            if source is self.source:
                return source.scope(node) is source.scope(self.node)
            return not self.is_local() and not source.defines(node)
        return isinstance(node, ast.Attribute) and node.attr == self.name and not self.is_local()

    def read(self, frame):
        """A whole number; Unclear where it is none."""
        value = frame.f_locals[self.name] if self.name in frame.f_locals else frame.f_globals.get(self.name)
        if type(value) not in (int, Count):
            raise Unclear("%s is no whole number" % self.name)
        return value

    def write(self, frame, value):
        """Unclear, and nothing is changed, where the frame does not own it."""
        if self.source.is_of_module(self.node):
            frame.f_globals[self.name] = value
        elif self.name in frame.f_code.co_varnames + frame.f_code.co_cellvars:
            _write_local(frame, self.name, value)
        else:
            raise Unclear("%s belongs to another function" % self.name)

    def where(self):
        """The line of the only assignment of a literal to the name; None where there is another way."""
        bound = self.source.uses(self.node, ast.Store)
        value = sources.bound_to(bound[0]) if len(bound) == 1 else None
        return value.lineno if isinstance(value, ast.Constant) else None


def _write_local(frame, name, value):
    frame.f_locals[name] = value
    if sys.version_info < (3, 13):  # from there on the locals of a frame are themselves, before they are a copy
        ctypes.pythonapi.PyFrame_LocalsToFast(ctypes.py_object(frame), ctypes.c_int(0))
