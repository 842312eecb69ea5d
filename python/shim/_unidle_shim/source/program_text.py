"""The program's source as syntax trees: which functions and variables its names refer to."""

import ast
import linecache
import os
import sys

from _unidle_shim.host import places

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef, ast.Module)
_RUNS_TEXT = {"eval", "exec"}
_ALL_NAMES = {"locals", "vars", "globals", "dir"}  # without an argument


class Unclear(Exception):
    """And why."""


class Source:
    """One file of the program. `parent` of each node is the node that it stands in."""

    def __init__(self, text, name):
        self.name, tree = name, ast.parse(text)
        self.module = os.path.splitext(os.path.basename(name))[0]
        tree.parent = None
        self.nodes = list(ast.walk(tree))
        for node in self.nodes:
            for child in ast.iter_child_nodes(node):
                child.parent = node
        self.names = [node for node in self.nodes if isinstance(node, ast.Name)]
        self.blind = next((node.id for node in self.names if _may_read_any_name(node)), None)
        self.functions = {
            node.name for node in self.nodes if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        }
        self.bound = {}  # scope -> names that it binds
        self.made = {}  # of these, scope -> names of imports, functions and classes
        self.defined = set()  # all of them, wherever
        elsewhere = set()
        for node in self.nodes[1:]:
            for name in _bound_by(node):
                self.bound.setdefault(scope_around(node), set()).add(name)
                self.defined.add(name)
                if not isinstance(node, (ast.Name, ast.arg)):
                    self.made.setdefault(scope_around(node), set()).add(name)
            if isinstance(node, (ast.Global, ast.Nonlocal)):
                elsewhere.update((scope_around(node), name) for name in node.names)
        for scope, name in elsewhere:
            self.bound.get(scope, set()).discard(name)

    def reads_at(self, frame):
        """The call that is made there; before Python 3.11, which does not tell the column, all of that
        line."""
        calls = [
            node
            for node in self.nodes
            if isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr == "item"
        ]
        if hasattr(frame.f_code, "co_positions"):
            place = list(frame.f_code.co_positions())[frame.f_lasti // 2]
            found = [
                call
                for call in calls
                if (call.lineno, call.end_lineno, call.col_offset, call.end_col_offset) == place
            ]
        else:
            found = [call for call in calls if call.lineno <= frame.f_lineno <= call.end_lineno]
        if not found:
            raise Unclear("the source does not show the call")
        return found

    def scope(self, node):
        """Where a name belongs to."""
        scope = first = scope_around(node)
        while not isinstance(scope, ast.Module):
            if node.id in self.bound.get(scope, ()) and (
                scope is first or not isinstance(scope, ast.ClassDef)
            ):
                return scope
            scope = scope_around(scope)
        return scope

    def uses(self, name, kind):
        """Nodes that read (ast.Load) or bind (ast.Store) what that name is."""
        scope = self.scope(name)
        return [
            node
            for node in self.names
            if node.id == name.id and isinstance(node.ctx, kind) and self.scope(node) is scope
        ]

    def defines(self, name):
        """The name is bound in this file by something else than an import."""
        imported = any(
            isinstance(node, ast.ImportFrom)
            and any((each.asname or each.name) == name.id for each in node.names)
            for node in self.nodes
        )
        return name.id in self.defined and not imported

    def is_of_module(self, name):
        return isinstance(self.scope(name), ast.Module)

    def may_be(self, node, function):
        """The node may read the function, which this or another file defines."""
        if isinstance(node, ast.Name) and node.id == function.name:
            scope = self.scope(node)
            return node.id not in self.bound.get(scope, ()) or node.id in self.made.get(scope, ())
        if isinstance(node, ast.Attribute) and node.attr == function.name:
            of_object = isinstance(function.parent, ast.ClassDef)
            return (
                of_object
                or isinstance(node.value, ast.Name)
                and any(node.value.id in names for names in self.made.values())
            )
        return False


_sources = {}  # file name -> Source


def source_of(name):
    if name not in _sources:
        try:
            _sources[name] = Source("".join(linecache.getlines(name)), name)
        except (SyntaxError, ValueError, RecursionError):
            raise Unclear("its source cannot be read") from None
    return _sources[name]


def _may_read_any_name(name):
    if name.id in _ALL_NAMES:
        return not (isinstance(name.parent, ast.Call) and name.parent.args)
    return name.id in _RUNS_TEXT


def _bound_by(node):
    if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
        return [node.id]
    if isinstance(node, ast.alias):
        return [(node.asname or node.name).split(".")[0]]
    if isinstance(node, ast.arg):
        return [node.arg]
    name = getattr(node, "name", None)  # of functions, classes, handlers of exceptions
    return [name] if isinstance(name, str) else []


def scope_around(node):
    node = node.parent
    while not isinstance(node, _SCOPES):
        node = node.parent
    return node


def own_sources(first):
    """All files of the program that are loaded."""
    names = {first.name}
    for module in list(sys.modules.values()):
        name = getattr(module, "__file__", None)
        if isinstance(name, str) and name.endswith(".py") and places.is_own_file(name):
            names.add(name)
    return [source_of(name) for name in sorted(names)]


def bound_to(name):
    """What an assignment gives to the name; None where that does not show."""
    node, index = name.parent, None
    if isinstance(node, ast.Tuple):
        node, index = node.parent, node.elts.index(name)
    if not isinstance(node, (ast.Assign, ast.AnnAssign)):
        return None
    if index is None:
        return node.value
    values = node.value.elts if isinstance(node.value, ast.Tuple) else []
    return values[index] if len(values) == len(name.parent.elts) else None
