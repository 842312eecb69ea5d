"""Whether a value that the program reads somewhere is logged and nothing else, by the program's source.

The value is followed from where it is read: through + - * /, names, appended lists, results of functions and their
callers, until it is formatted or printed. Anything else (a comparison, an attribute, another function) is a reason to
leave it alone. Names are compared more generously than Python does: what might be the value counts as the value.
"""

import ast
import linecache
import os
import sys

from . import places

_ARITHMETIC = (ast.Add, ast.Sub, ast.Mult, ast.Div)
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef, ast.Module)
_PASS_ON = {"float", "int", "round", "abs", "min", "max", "sum"}
_FORMAT = {"print", "str", "repr", "format"}
_LOG = {"set_postfix", "set_postfix_str", "set_description", "set_description_str", "debug", "info", "warning", "format", "add_scalar"}
_MATHS = {"math", "np", "numpy"}
_MATHS_ONE = {"exp", "sqrt", "log", "log2", "log10"}
_BLIND = {"eval", "exec", "locals", "vars", "globals"}
_MOST_FOLLOWED = 1000  # places


class _NotLogged(Exception):
    """And why."""


def why_not(frame):
    """None where what `.item()` gives there is logged, and later than it is read."""
    if not places.is_own(frame.f_code):
        return "a library reads it"
    try:
        source = _source_of(frame.f_code.co_filename)
        trail = _Trail(source)
        for call in source.reads_at(frame):
            trail.follow(source, call)
        while frame is not None and (frame.f_code.co_filename, frame.f_code.co_name) in trail.returning:
            frame = frame.f_back
            if frame is None or not places.is_own(frame.f_code):
                raise _NotLogged("a library gets it")
        return None if trail.later else "it is used where it is read"
    except _NotLogged as why:
        return str(why)


class _Source:
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
        self.blind = next((node.id for node in self.names if node.id in _BLIND), None)
        self.bound = {}  # scope -> names that it binds
        self.defined = set()  # all of them, wherever
        elsewhere = set()
        for node in self.nodes[1:]:
            for name in _bound_by(node):
                self.bound.setdefault(_scope_around(node), set()).add(name)
                self.defined.add(name)
            if isinstance(node, (ast.Global, ast.Nonlocal)):
                elsewhere.update((_scope_around(node), name) for name in node.names)
        for scope, name in elsewhere:
            self.bound.get(scope, set()).discard(name)

    def reads_at(self, frame):
        """The call that is made there; before Python 3.11, which does not tell the column, all of that line."""
        calls = [node for node in self.nodes if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "item"]
        if hasattr(frame.f_code, "co_positions"):
            place = list(frame.f_code.co_positions())[frame.f_lasti // 2]
            found = [call for call in calls if (call.lineno, call.end_lineno, call.col_offset, call.end_col_offset) == place]
        else:
            found = [call for call in calls if call.lineno <= frame.f_lineno <= call.end_lineno]
        if not found or self.blind:
            raise _NotLogged("%s is called in this file" % self.blind if self.blind else "the source does not show the call")
        return found

    def scope(self, node):
        """Where a name belongs to."""
        scope = first = _scope_around(node)
        while not isinstance(scope, ast.Module):
            if node.id in self.bound.get(scope, ()) and (scope is first or not isinstance(scope, ast.ClassDef)):
                return scope
            scope = _scope_around(scope)
        return scope

    def uses(self, name, kind):
        """Nodes that read (ast.Load) or bind (ast.Store) what that name is."""
        scope = self.scope(name)
        return [node for node in self.names if node.id == name.id and isinstance(node.ctx, kind) and self.scope(node) is scope]

    def is_of_module(self, name):
        return isinstance(self.scope(name), ast.Module)


_sources = {}  # file name -> _Source


def _source_of(name):
    if name not in _sources:
        try:
            _sources[name] = _Source("".join(linecache.getlines(name)), name)
        except (SyntaxError, ValueError, RecursionError):
            raise _NotLogged("its source cannot be read") from None
    return _sources[name]


def _bound_by(node):
    if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
        return [node.id]
    if isinstance(node, ast.alias):
        return [(node.asname or node.name).split(".")[0]]
    if isinstance(node, ast.arg):
        return [node.arg]
    name = getattr(node, "name", None)  # of functions, classes, handlers of exceptions
    return [name] if isinstance(name, str) else []


def _scope_around(node):
    node = node.parent
    while not isinstance(node, _SCOPES):
        node = node.parent
    return node


class _Trail:
    """Where one value goes."""

    def __init__(self, source):
        self.source = source
        self.seen = set()
        self.later = False  # it is kept in a name or handed on before it is logged
        self.returning = set()  # (file, name) of functions that return it

    def follow(self, source, node):
        """`node` has the value."""
        if node in self.seen:
            return
        self.seen.add(node)
        if len(self.seen) > _MOST_FOLLOWED:
            raise _NotLogged("it goes too far to be followed")
        parent = node.parent
        step = getattr(self, "_in_" + type(parent).__name__, None)
        if step is None or step(source, parent, node) is False:
            raise self._not(source, parent)

    def _not(self, source, node):
        kind = "decides by it" if isinstance(node, (ast.Compare, ast.If, ast.While, ast.IfExp, ast.BoolOp, ast.Assert)) else "does more than log it"
        while not hasattr(node, "lineno"):
            node = node.parent
        return _NotLogged("the program %s at %s:%d" % (kind, places.short(source.name), node.lineno))

    def _in_BinOp(self, source, parent, node):
        if isinstance(parent.op, ast.Mod) and node is parent.right and _is_text(parent.left):
            return True
        return isinstance(parent.op, _ARITHMETIC) and self._goes_on(source, parent)

    def _in_FormattedValue(self, source, parent, node):
        return True

    def _in_Expr(self, source, parent, node):
        return True

    def _in_Tuple(self, source, parent, node):
        around, index = parent.parent, parent.elts.index(node)
        if isinstance(around, ast.BinOp):
            return isinstance(around.op, ast.Mod) and _is_text(around.left)
        if isinstance(around, ast.Return):
            return self._returned(source, around, index)
        if isinstance(around, ast.Assign) and all(isinstance(one, ast.Tuple) and len(one.elts) == len(parent.elts) for one in around.targets):
            return all(self._named(source, one.elts[index]) for one in around.targets)
        return False

    def _in_Dict(self, source, parent, node):
        return node in parent.values and isinstance(parent.parent, ast.Call) and self._logs(source, parent.parent, parent)

    def _in_Assign(self, source, parent, node):
        return all(self._named(source, target) for target in parent.targets)

    def _in_AnnAssign(self, source, parent, node):
        return self._named(source, parent.target)

    def _in_AugAssign(self, source, parent, node):
        if not isinstance(parent.op, _ARITHMETIC) or not isinstance(parent.target, ast.Name):
            return False
        bound = [name for name in source.uses(parent.target, ast.Store) if not isinstance(name.parent, ast.AugAssign)]
        return bool(bound) and all(self._is_number(source, name) for name in bound) and self._named(source, parent.target)

    def _is_number(self, source, name):
        """What it is bound to there: a tensor would be changed in place, but not by a number of ours."""
        value = _bound_to(name)
        return value in self.seen or isinstance(value, ast.Constant) and type(value.value) in (int, float)

    def _in_Return(self, source, parent, node):
        return self._returned(source, parent, None)

    def _in_keyword(self, source, parent, node):
        return isinstance(parent.parent, ast.Call) and self._logs(source, parent.parent, parent)

    def _in_Call(self, source, parent, node):
        function = parent.func
        if node is function:
            return False
        if isinstance(function, ast.Attribute) and function.attr == "append" and isinstance(function.value, ast.Name):
            return self._list(source, function.value)
        if isinstance(function, ast.Name) and function.id in _PASS_ON and function.id not in source.defined:
            return self._goes_on(source, parent)
        if _is_maths(function, _MATHS_ONE):
            return self._goes_on(source, parent)
        return self._logs(source, parent, node)

    def _logs(self, source, call, argument):
        function = call.func
        if isinstance(function, ast.Name):
            return function.id in _FORMAT and function.id not in source.defined
        return isinstance(function, ast.Attribute) and function.attr in _LOG and argument is not function

    def _goes_on(self, source, node):
        self.follow(source, node)
        return True

    def _named(self, source, target):
        if not isinstance(target, ast.Name):
            return False
        self._kept(source, target)
        for load in source.uses(target, ast.Load):
            self.follow(source, load)
        return True

    def _kept(self, source, name):
        self.later = True
        if source.is_of_module(name):
            self._not_imported(source, name.id)

    def _list(self, source, name):
        """What is appended is what may be taken out."""
        self._kept(source, name)
        bound = source.uses(name, ast.Store)
        if not bound or not all(_is_new_list(_bound_to(node)) for node in bound):
            return False
        for load in source.uses(name, ast.Load):
            self._list_used(source, load)
        return True

    def _list_used(self, source, node):
        parent = node.parent
        if isinstance(parent, ast.Subscript) and parent.value is node and isinstance(parent.ctx, ast.Load):
            return self._list_used(source, parent) if isinstance(parent.slice, ast.Slice) else self.follow(source, parent)
        if isinstance(parent, ast.Attribute) and parent.attr in ("append", "clear") and isinstance(parent.parent, ast.Call):
            return None
        if isinstance(parent, ast.Call) and node in parent.args:
            function = parent.func
            if isinstance(function, ast.Name) and function.id == "len":
                return None
            if isinstance(function, ast.Name) and function.id in ("sum", "min", "max") or _is_maths(function, {"mean", "sum"}):
                return self.follow(source, parent)
        raise self._not(source, parent)

    def _returned(self, source, node, index):
        """To every place that may call the function."""
        function = _scope_around(node)
        self.later = True
        self.returning.add((source.name, getattr(function, "name", None)))
        if not isinstance(function, ast.FunctionDef) or function.decorator_list or _yields(function):
            return False
        calls = 0
        for other in _own_sources(source):
            for use in _uses(other, function.name):
                call = use.parent
                if not isinstance(call, ast.Call) or call.func is not use:
                    raise self._not(other, use)
                calls += 1
                if index is None:
                    self.follow(other, call)
                else:
                    self._unpacked(other, call, index)
        return calls > 0

    def _unpacked(self, source, call, index):
        parent = call.parent
        if isinstance(parent, ast.Expr):
            return
        if not isinstance(parent, ast.Assign):
            raise self._not(source, parent)
        for target in parent.targets:
            if not isinstance(target, ast.Tuple) or index >= len(target.elts) or any(isinstance(one, ast.Starred) for one in target.elts):
                raise self._not(source, parent)
            if not self._named(source, target.elts[index]):
                raise self._not(source, target)

    def _not_imported(self, source, name):
        """A name of a module may be read from outside of it."""
        for other in _own_sources(source):
            if other is not source and any(_reads_of_module(node, source.module, name) for node in other.nodes):
                raise _NotLogged("%s may be read in %s" % (name, places.short(other.name)))


def _reads_of_module(node, module, name):
    if isinstance(node, ast.alias):
        return node.asname is not None and node.name.split(".")[-1] == module
    if isinstance(node, ast.ImportFrom):
        return (node.module or "").split(".")[-1] == module and any(one.name in (name, "*") for one in node.names)
    if isinstance(node, ast.Attribute) and node.attr == name:
        return module in (getattr(node.value, "id", None), getattr(node.value, "attr", None))
    return False


def _own_sources(first):
    """All files of the program that are loaded."""
    names = {first.name}
    for module in list(sys.modules.values()):
        name = getattr(module, "__file__", None)
        if isinstance(name, str) and name.endswith(".py") and places.is_own_file(name):
            names.add(name)
    return [_source_of(name) for name in sorted(names)]


def _uses(source, name):
    """Nodes that may be the function of that name; its import under another name cannot be followed."""
    for node in source.nodes:
        if isinstance(node, ast.alias) and node.name == name and node.asname not in (None, name):
            raise _NotLogged("%s has another name in %s" % (name, places.short(source.name)))
        if isinstance(node, ast.Name) and node.id == name or isinstance(node, ast.Attribute) and node.attr == name:
            yield node


def _yields(function):
    return any(isinstance(node, (ast.Yield, ast.YieldFrom)) for node in ast.walk(function))


def _bound_to(name):
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


def _is_new_list(value):
    return (isinstance(value, ast.List)
            or isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "list" and not value.args)


def _is_text(node):
    return isinstance(node, ast.JoinedStr) or isinstance(node, ast.Constant) and isinstance(node.value, str)


def _is_maths(function, names):
    return (isinstance(function, ast.Attribute) and function.attr in names
            and isinstance(function.value, ast.Name) and function.value.id in _MATHS)
