"""Static analysis: whether the program only logs a value that it reads at a certain place.

The value is followed from where it is read: through + - * /, names, appended lists, results of functions and
their callers, until it is formatted or printed. Anything else (a comparison, an attribute, another function)
is a reason to leave it alone. Names are compared more generously than Python does: what might be the value
counts as the value.
"""

import ast

from _unidle_shim.host import places
from _unidle_shim.source import program_text
from _unidle_shim.source.program_text import Unclear

_ARITHMETIC = (ast.Add, ast.Sub, ast.Mult, ast.Div)
_PASS_ON = {"float", "int", "round", "abs", "min", "max", "sum"}
_FORMAT = {"print", "str", "repr", "format"}
# Methods of texts, of progress bars, of Python's loggers and of TensorBoard's writer.
_LOG = {
    "format",
    "set_description",
    "set_description_str",
    "set_postfix_str",
    "debug",
    "info",
    "warning",
    "add_scalar",
}
_LOG_BY_NAME = {"format", "set_postfix", "add_scalar"}
_MATHS = {"math", "np", "numpy"}
_MATHS_ONE = {"exp", "sqrt", "log", "log2", "log10"}
_MOST_FOLLOWED = 1000  # places


def why_not(frame):
    """None where what `.item()` gives there is logged, and later than it is read."""
    if not places.is_own(frame.f_code):
        return "a library reads it"
    try:
        source = program_text.source_of(frame.f_code.co_filename)
        trail = _Trail()
        for call in source.reads_at(frame):
            trail.follow(source, call)
        while frame is not None and (frame.f_code.co_filename, frame.f_code.co_name) in trail.returning:
            frame = frame.f_back
            if frame is None or not places.is_own(frame.f_code):
                raise Unclear("a library gets it")
        return None if trail.later else "it is used where it is read"
    except Unclear as why:
        return str(why)


class _Trail:
    """Where one value goes."""

    def __init__(self):
        self.seen = set()
        self.later = False  # it is kept in a name or handed on before it is logged
        self.returning = set()  # (file, name) of functions that return it

    def follow(self, source, node):
        """`node` has the value."""
        if node in self.seen:
            return
        self.seen.add(node)
        if len(self.seen) > _MOST_FOLLOWED:
            raise Unclear("it goes too far to be followed")
        parent = node.parent
        step = getattr(self, "_in_" + type(parent).__name__, None)
        if step is None or step(source, parent, node) is False:
            raise self._not(source, parent)

    def _not(self, source, node):
        kind = (
            "decides by it"
            if isinstance(node, (ast.Compare, ast.If, ast.While, ast.IfExp, ast.BoolOp, ast.Assert))
            else "does more than log it"
        )
        while not hasattr(node, "lineno"):
            node = node.parent
        return Unclear("the program %s at %s:%d" % (kind, places.short(source.name), node.lineno))

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
        if isinstance(around, ast.Assign) and all(
            isinstance(one, ast.Tuple) and len(one.elts) == len(parent.elts) for one in around.targets
        ):
            return all(self._named(source, one.elts[index]) for one in around.targets)
        return False

    def _in_Dict(self, source, parent, node):
        return (
            node in parent.values
            and isinstance(parent.parent, ast.Call)
            and self._logs(source, parent.parent, _LOG_BY_NAME)
        )

    def _in_Assign(self, source, parent, node):
        return all(self._named(source, target) for target in parent.targets)

    def _in_AnnAssign(self, source, parent, node):
        return self._named(source, parent.target)

    def _in_AugAssign(self, source, parent, node):
        if not isinstance(parent.op, _ARITHMETIC) or not isinstance(parent.target, ast.Name):
            return False
        bound = [
            name
            for name in source.uses(parent.target, ast.Store)
            if not isinstance(name.parent, ast.AugAssign)
        ]
        return (
            bool(bound)
            and all(self._is_number(source, name) for name in bound)
            and self._named(source, parent.target)
        )

    def _is_number(self, source, name):
        """What it is bound to there: a tensor would be changed in place, but not by a number of ours."""
        value = program_text.bound_to(name)
        return value in self.seen or isinstance(value, ast.Constant) and type(value.value) in (int, float)

    def _in_Return(self, source, parent, node):
        return self._returned(source, parent, None)

    def _in_keyword(self, source, parent, node):
        return isinstance(parent.parent, ast.Call) and self._logs(source, parent.parent, _LOG_BY_NAME)

    def _in_Call(self, source, parent, node):
        function = parent.func
        if node is function:
            return False
        if (
            isinstance(function, ast.Attribute)
            and function.attr == "append"
            and isinstance(function.value, ast.Name)
        ):
            return self._list(source, function.value)
        if isinstance(function, ast.Name) and function.id in _PASS_ON and function.id not in source.defined:
            return self._goes_on(source, parent)
        if _is_maths(function, _MATHS_ONE):
            return self._goes_on(source, parent)
        return self._logs(source, parent, _LOG)

    def _logs(self, source, call, methods):
        function = call.func
        if isinstance(function, ast.Name):
            return function.id in _FORMAT and function.id not in source.defined
        return (
            isinstance(function, ast.Attribute)
            and function.attr in methods
            and not any(function.attr in other.functions for other in program_text.own_sources(source))
        )

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
        if source.blind:
            raise Unclear("%s is called in %s" % (source.blind, places.short(source.name)))
        if source.is_of_module(name):
            self._not_imported(source, name.id)

    def _list(self, source, name):
        """What is appended is what may be taken out."""
        self._kept(source, name)
        bound = source.uses(name, ast.Store)
        if not bound or not all(_is_new_list(program_text.bound_to(node)) for node in bound):
            return False
        for load in source.uses(name, ast.Load):
            self._list_used(source, load)
        return True

    def _list_used(self, source, node):
        parent = node.parent
        if isinstance(parent, ast.Subscript) and parent.value is node and isinstance(parent.ctx, ast.Load):
            return (
                self._list_used(source, parent)
                if isinstance(parent.slice, ast.Slice)
                else self.follow(source, parent)
            )
        if (
            isinstance(parent, ast.Attribute)
            and parent.attr in ("append", "clear")
            and isinstance(parent.parent, ast.Call)
        ):
            return None
        if isinstance(parent, ast.Call) and node in parent.args:
            function = parent.func
            if isinstance(function, ast.Name) and function.id == "len":
                return None
            if (
                isinstance(function, ast.Name)
                and function.id in ("sum", "min", "max")
                or _is_maths(function, {"mean", "sum"})
            ):
                return self.follow(source, parent)
        raise self._not(source, parent)

    def _returned(self, source, node, index):
        """To every place that may call the function."""
        function = program_text.scope_around(node)
        self.later = True
        self.returning.add((source.name, getattr(function, "name", None)))
        if not isinstance(function, ast.FunctionDef) or function.decorator_list or _yields(function):
            return False
        calls = 0
        for other in program_text.own_sources(source):
            for use in _uses(other, function):
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
            if (
                not isinstance(target, ast.Tuple)
                or index >= len(target.elts)
                or any(isinstance(one, ast.Starred) for one in target.elts)
            ):
                raise self._not(source, parent)
            if not self._named(source, target.elts[index]):
                raise self._not(source, target)

    def _not_imported(self, source, name):
        """A name of a module may be read from outside of it."""
        for other in program_text.own_sources(source):
            if other is not source and any(
                _reads_of_module(node, source.module, name) for node in other.nodes
            ):
                raise Unclear("%s may be read in %s" % (name, places.short(other.name)))


def _reads_of_module(node, module, name):
    if isinstance(node, ast.alias):
        return node.asname is not None and node.name.split(".")[-1] == module
    if isinstance(node, ast.ImportFrom):
        return (node.module or "").split(".")[-1] == module and any(
            one.name in (name, "*") for one in node.names
        )
    if isinstance(node, ast.Attribute) and node.attr == name:
        return module in (getattr(node.value, "id", None), getattr(node.value, "attr", None))
    return False


def _uses(source, function):
    """Nodes that may be the function; its import under another name cannot be followed."""
    for node in source.nodes:
        if (
            isinstance(node, ast.alias)
            and node.name == function.name
            and node.asname not in (None, function.name)
        ):
            raise Unclear("%s has another name in %s" % (function.name, places.short(source.name)))
        if source.may_be(node, function):
            yield node


def _yields(function):
    return any(isinstance(node, (ast.Yield, ast.YieldFrom)) for node in ast.walk(function))


def _is_new_list(value):
    return (
        isinstance(value, ast.List)
        or isinstance(value, ast.Call)
        and isinstance(value.func, ast.Name)
        and value.func.id == "list"
        and not value.args
    )


def _is_text(node):
    return isinstance(node, ast.JoinedStr) or isinstance(node, ast.Constant) and isinstance(node.value, str)


def _is_maths(function, names):
    return (
        isinstance(function, ast.Attribute)
        and function.attr in names
        and isinstance(function.value, ast.Name)
        and function.value.id in _MATHS
    )
