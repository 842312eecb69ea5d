"""Follows __getitem__ with values that stand for those of a row (row_values.py), without running it.

It passes if it does for many indices at once what it does for each of them, and changes nothing: if it takes
rows of arrays, converts them, and puts them into tuples, lists and dictionaries. Anything else is refused.
What it reads on the way may change later: it is followed again for each batch.
"""

import ast
import builtins
import types

from _unidle_shim.samples import row_values
from _unidle_shim.samples.row_values import INDEX, Fixed, Rows
from _unidle_shim.source import syntax

_MISSING = object()
_PLAIN = (int, float, str, bool, type(None))
_MOST = 64  # entries of a container that are gone through
_LONGEST = 60  # characters of code in a reason
_NO_TEXT = "the text of its __getitem__ is not known"
_CLOSURE = "its __getitem__ is a closure or decorated"
_MORE = "its __getitem__ takes more than an index"
_SETS = "its __getitem__ sets %s"
_CALLS = "its __getitem__ calls %s"
_UNKNOWN = "its __getitem__ has %s, which may give something else for many rows at once"


class Refused(Exception):
    pass


def follow(function, dataset):
    """Returns (the value of function(dataset, index), the arrays whose rows are in it)."""
    code = function.__code__
    if code.co_freevars not in ((), ("__class__",)) or hasattr(function, "__wrapped__"):
        raise Refused(_CLOSURE)
    tree, odd = syntax.tree_of(function)
    if odd is not None:
        raise _unknown(odd)
    if tree is None or tree.decorator_list:
        raise Refused(_NO_TEXT)
    if code.co_argcount != 2 or code.co_kwonlyargcount or tree.args.vararg or tree.args.kwarg:
        raise Refused(_MORE)
    followed = _Followed(function, dict(zip(code.co_varnames, (Fixed(dataset), INDEX))))
    return followed.run(tree.body), followed.arrays


class _Followed:
    def __init__(self, function, names):
        self.names, self.globals, self.arrays = names, function.__globals__, []
        code = function.__code__
        self.local = {*code.co_varnames, *code.co_cellvars, *code.co_freevars}

    def run(self, body):
        """The value that is returned; None if none is."""
        for step in body:
            found = self._step(step)
            if found is not None:
                return found
        return None

    def _step(self, step):
        if isinstance(step, ast.Return) and step.value is not None:
            return self.value(step.value)
        if isinstance(step, ast.If):
            return self.run(step.body if self._truth(step.test) else step.orelse)
        if isinstance(step, ast.Assign) and len(step.targets) == 1:
            self._bind(step.targets[0], self.value(step.value))
        elif isinstance(step, ast.AugAssign):
            raise Refused(_SETS % _text(step.target))
        elif not (isinstance(step, ast.Expr) and isinstance(step.value, ast.Constant)):  # a docstring
            raise _unknown(step)
        return None

    def _bind(self, target, value):
        if isinstance(target, ast.Name):
            self.names[target.id] = value
        elif isinstance(target, ast.Tuple):
            if type(value) not in (tuple, list) or len(value) != len(target.elts):
                raise _unknown(target)
            for one, each in zip(target.elts, value):
                self._bind(one, each)
        else:
            held = self.value(target.value) if isinstance(target, ast.Subscript) else None
            if type(held) is not dict:  # one that was made on the way
                raise Refused(_SETS % _text(target))
            held[self._key(target.slice)] = value

    def _truth(self, node):
        value = self._fixed(node)
        if type(value) not in _PLAIN:
            raise _unknown(node)
        return bool(value)

    def value(self, node):
        """INDEX, a Rows, a Fixed, or a tuple, list or dict of these that is made on the way."""
        follows = getattr(self, "_" + type(node).__name__.lower(), None)
        if follows is None:
            raise _unknown(node)
        return follows(node)

    def _fixed(self, node):
        value = None if node is None else self.value(node)
        if not isinstance(value, Fixed):
            raise _unknown(node)
        return value.value

    def _key(self, node):
        key = self._fixed(node)
        if type(key) not in (str, int):
            raise _unknown(node)
        return key

    def _constant(self, node):
        return Fixed(node.value)

    def _name(self, node):
        if node.id in self.names:
            return self.names[node.id]
        if node.id in self.local or node.id.startswith("__"):
            raise _unknown(node)
        return _known(self.globals.get(node.id, vars(builtins).get(node.id, _MISSING)), node)

    def _attribute(self, node):
        return _known(_read(self._fixed(node.value), node.attr), node)

    def _tuple(self, node):
        return tuple(self.value(one) for one in node.elts)

    def _list(self, node):
        return [self.value(one) for one in node.elts]

    def _dict(self, node):
        return {self._key(key): self.value(each) for key, each in zip(node.keys, node.values)}

    def _ifexp(self, node):
        return self.value(node.body if self._truth(node.test) else node.orelse)

    def _unaryop(self, node):
        if isinstance(node.op, ast.USub) and type(self._fixed(node.operand)) is int:
            return Fixed(-self._fixed(node.operand))
        raise _unknown(node)

    def _compare(self, node):
        other = node.comparators[0]
        if len(node.ops) == 1 and isinstance(other, ast.Constant) and other.value is None:
            if isinstance(node.ops[0], (ast.Is, ast.IsNot)):
                return Fixed((self._fixed(node.left) is None) is isinstance(node.ops[0], ast.Is))
        raise _unknown(node)

    def _subscript(self, node):
        held = self._fixed(node.value)
        rows = row_values.rows_of(held)
        if rows is None:
            key = self.value(node.slice) if type(held) in (list, tuple, dict) else None
            try:
                return Fixed(held[key.value])
            except (AttributeError, KeyError, IndexError, TypeError):  # no container, or no fixed key
                raise _unknown(node) from None
        self.arrays.append(held)
        keys = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        known = 0 < len(keys) <= rows.axes + 1 and self.value(keys[0]) is INDEX
        if not known or not all(map(self._is_part, keys[1:])):
            raise _unknown(node)
        left = rows.axes - sum(not isinstance(key, ast.Slice) for key in keys[1:])
        return Rows(rows.library, left, rows.whole)

    def _is_part(self, key):
        """Whether it is a fixed part of a row, behind the index."""
        if isinstance(key, ast.Slice):
            ends = [self._fixed(one) for one in (key.lower, key.upper, key.step) if one]
            return all(end is None or type(end) is int for end in ends)
        return type(self._fixed(key)) is int

    def _call(self, node):
        words = {one.arg: self._fixed(one.value) for one in node.keywords}
        given = [
            self._each(one) if isinstance(one, ast.GeneratorExp) else self.value(one) for one in node.args
        ]
        owner = self.value(node.func.value) if isinstance(node.func, ast.Attribute) else None
        found = None
        if isinstance(owner, Rows):
            if not words and all(isinstance(one, Fixed) for one in given):
                found = row_values.method(owner, node.func.attr, [one.value for one in given])
        elif len(given) == 1:
            function = self._fixed(node.func)
            if function is tuple and type(given[0]) in (tuple, list) and not words:
                found = tuple(given[0])
            elif given[0] is INDEX or isinstance(given[0], Rows):
                found = row_values.called(function, given[0], words)
        if found is None:
            raise Refused(_CALLS % _text(node.func))
        return found

    def _each(self, node):
        """What a comprehension makes of the entries of a list, tuple or dictionary."""
        loop, before, made = node.generators[0], dict(self.names), []
        if len(node.generators) != 1 or loop.ifs or loop.is_async:
            raise _unknown(node)
        for entry in self._entries(loop.iter):
            self._bind(loop.target, entry)
            dictionary = isinstance(node, ast.DictComp)
            made.append((self._key(node.key), self.value(node.value)) if dictionary else self.value(node.elt))
        self.names = before
        return made

    _listcomp = _each

    def _dictcomp(self, node):
        return dict(self._each(node))

    def _entries(self, node):
        items = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and not node.args
        items = items and node.func.attr == "items"
        held = self._fixed(node.func.value if items else node)
        if type(held) not in ((dict,) if items else (list, tuple)) or len(held) > _MOST:
            raise _unknown(node)
        return [(Fixed(key), Fixed(each)) for key, each in held.items()] if items else list(map(Fixed, held))


def _read(owner, name):
    """The attribute; _MISSING if reading it may run code of the program. Names with two underscores have
    another name in the object."""
    kind = type(owner)
    if kind is types.ModuleType:
        return vars(owner).get(name, _MISSING)
    if name.startswith("__") or kind.__getattribute__ is not object.__getattribute__:
        return _MISSING
    of_class = next((vars(one)[name] for one in kind.__mro__ if name in vars(one)), _MISSING)
    if hasattr(type(of_class), "__set__"):
        return _MISSING
    held = getattr(owner, "__dict__", {}).get(name, _MISSING)
    return of_class if held is _MISSING and not hasattr(type(of_class), "__get__") else held


def _known(value, node):
    if value is _MISSING:
        raise _unknown(node)
    return Fixed(value)


def _text(node):
    text = ast.unparse(node).split("\n")[0]
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."


def _unknown(node):
    return Refused(_UNKNOWN % ("**" if node is None else _text(node)))
