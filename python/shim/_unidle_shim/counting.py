"""How a training loop counts the batches of a step, by the source of the program: by `(i + 1) % count == 0` where it steps, or
with a loop of its own for the batches of each step."""

import ast
from collections import namedtuple

from . import places, sources
from .sources import Unclear
from .syntax import holds, is_call, is_in, is_method, is_number, less_one, names_in, sum_of
from .variables import Variable

_WRAPPERS = {"enumerate", "tqdm", "track"}  # of what is iterated over
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)

# Of a test that is true for the last batch of a step: the node of the count, all nodes that belong to counting, and whether it is
# true for the last batch of an epoch as well.
_Guard = namedtuple("_Guard", "count nodes flushes")


class Counting:
    """Of one loop. `count`: the Variable that says how many batches make a step; `counts_steps`: the loop is gone through once for
    each step; `flushes`: the batches that are left at the end of an epoch make a step; `zeroes`: what they left is thrown away."""

    def __init__(self, source, loop):
        self.source, self.loop = source, loop
        self.where = place(source, loop)
        self.nodes = list(ast.walk(loop))
        for node in self.nodes:
            if isinstance(node, _FUNCTIONS):
                raise self.unclear(node, "defines a function in the loop")
        self.bound = {node.id for node in self.nodes if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)}
        self.counting = set()  # nodes that are there to count to a step
        self.guards, self.flushes = [], False
        self.counters = self._counters()
        self.counts_steps = isinstance(loop, ast.For) and is_call(loop.iter, {"range"}) and not holds(loop.body, {"step"})
        self.count = self._of_range() if self.counts_steps else self._of_guards()
        self.counters = self._counters()
        self._behind_the_loop()
        self.zeroes = any(isinstance(one, ast.Expr) and is_method(one.value, {"zero_grad"}) for one in self._before_the_loop())

    def unclear(self, node, what):
        return Unclear("the program %s at %s" % (what, place(self.source, node)))

    def is_guarded(self, node):
        """It happens once a step."""
        return any(is_in(node, each) for guard in self.guards for each in guard.body)

    def _of_range(self):
        """for _ in range(count)"""
        call = self.loop.iter
        if len(call.args) != 1 or call.keywords:
            raise self.unclear(self.loop, "goes through other numbers than 0 to a count")
        self.counting.add(call.args[0])
        return self._variable(call.args[0])

    def _of_guards(self):
        """if (i + 1) % count == 0"""
        loop = self.loop
        if not isinstance(loop, ast.For) or self._loader(loop.iter) is None:
            raise self.unclear(loop, "counts the batches itself")
        tests = [node for node in self.nodes if isinstance(node, ast.If)]
        steps = [node for node in tests if holds(node.body, {"step"})]
        if not steps:
            raise Unclear("the loop at %s does not sum the gradients of several batches: the effective batch would change" % self.where)
        guards = {node: self._guard(node.test) for node in steps}
        if None in guards.values():
            raise Unclear("not `(i + 1) %% count == 0` alone decides when the loop at %s steps" % self.where)
        variable = self._variable(guards[steps[0]].count)
        guards.update((node, self._guard_or_none(node.test)) for node in tests if node not in guards)
        for node, guard in guards.items():
            if guard is not None and variable.is_same(guard.count):
                self.guards.append(node)
                self.counting |= guard.nodes
                self.flushes |= guard.flushes and node in steps
            elif node in steps:
                raise self.unclear(node, "counts to another number too")
        return variable

    def _guard(self, test):
        if isinstance(test, ast.Name):
            bound = self.source.uses(test, ast.Store)
            value = sources.bound_to(bound[0]) if len(bound) == 1 and bound[0] in self.nodes else None
            return None if value is None or isinstance(value, ast.Name) else self._guard(value)
        if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.Or):
            last = [part for part in test.values if self._is_last_batch(part)]
            others = [part for part in test.values if part not in last]
            guard = self._guard(others[0]) if len(others) == 1 else None
            return None if guard is None else _Guard(guard.count, guard.nodes.union(*map(ast.walk, last)), guard.flushes or bool(last))
        return self._remainder(test)

    def _guard_or_none(self, test):
        try:
            return self._guard(test)
        except Unclear:
            return None

    def _remainder(self, test):
        """(i + 1) % count == 0, not (i + 1) % count, i % count == count - 1"""
        one_behind = False  # the counter, when the step is complete
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            left = test.operand
        elif isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.Eq):
            left, right = test.left, test.comparators[0]
            one_behind = less_one(right) is not None and isinstance(left, ast.BinOp) and ast.dump(less_one(right)) == ast.dump(left.right)
            if not one_behind and not is_number(right, 0):
                return None
        else:
            return None
        if not isinstance(left, ast.BinOp) or not isinstance(left.op, ast.Mod):
            return None
        plus_one = isinstance(left.left, ast.BinOp) and isinstance(left.left.op, ast.Add) and is_number(left.left.right, 1)
        name = left.left.left if plus_one else left.left
        if not isinstance(name, ast.Name) or name.id not in self.counters:
            return None
        if plus_one == (one_behind or self._counts_from_one(name, test)):
            raise self.unclear(test, "does not step when the count is complete")
        return _Guard(left.right, set(ast.walk(test)), False)

    def _is_last_batch(self, test):
        """i + 1 == len(loader), i == len(loader) - 1"""
        if not isinstance(test, ast.Compare) or len(test.ops) != 1 or not isinstance(test.ops[0], ast.Eq) or not names_in(test.left) & self.counters:
            return False
        return self._is_length(less_one(test.comparators[0]) or test.comparators[0])

    def _is_length(self, node):
        return is_call(node, {"len"}) and len(node.args) == 1 and ast.dump(node.args[0]) in map(ast.dump, self._loaders(self.loop.iter))

    def _loaders(self, node):
        """What is iterated over, in enumerate() and progress bars and without them."""
        while node is not None:
            while isinstance(node, ast.Call):
                node = node.args[0] if node.args and (is_call(node, _WRAPPERS) or is_method(node, _WRAPPERS)) else None
            if not isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)):
                return
            yield node
            bound = self.source.uses(node, ast.Store) if isinstance(node, ast.Name) else []
            value = sources.bound_to(bound[0]) if len(bound) == 1 else None
            node = value if isinstance(value, ast.Call) else None

    def _loader(self, node):
        return next(self._loaders(node), None)

    def _counts_from_one(self, name, test):
        """By enumerate(..., 1), or `name += 1` before the test."""
        if name.id == _index_of(self.loop):
            call = _enumerate(self.loop.iter)
            start = call.args[1] if len(call.args) > 1 else next((each.value for each in call.keywords if each.arg == "start"), None)
            return is_number(start, 1)
        return any(getattr(self._counted(node), "id", None) == name.id and node.lineno < test.lineno for node in self.nodes)

    def _counters(self):
        """Names that go up with each batch."""
        loop = self.loop
        names = {_index_of(loop)} - {None}
        if isinstance(loop, ast.For) and isinstance(loop.target, ast.Name) and is_call(loop.iter, {"range"}):
            names.add(loop.target.id)
        for node in self.nodes:
            target = self._counted(node)
            if isinstance(target, ast.Name) and not self.is_guarded(node):
                names.add(target.id)
        return names

    def _counted(self, node):
        """What a statement counts up, by something that is not of the batch; None where it does not."""
        target, value = sum_of(node)
        if target is None:
            return None
        of_batch = (names_in(value) - names_in(target)) & self.bound or any(isinstance(each, ast.Call) for each in ast.walk(value))
        return None if of_batch else target

    def _variable(self, node):
        if isinstance(node, ast.Constant):
            raise self.unclear(node, "has the number of batches of a step, %s, in the loop and no name for it," % node.value)
        variable = Variable(self.source, node)
        for each in self.nodes:
            if variable.is_same(each) and not isinstance(each.ctx, ast.Load):
                raise self.unclear(each, "changes the count in the loop")
        return variable

    def _before_the_loop(self):
        for block in (getattr(self.loop.parent, field, []) for field in ("body", "orelse", "finalbody")):
            if self.loop in block:
                return block[:block.index(self.loop)]
        return []

    def _behind_the_loop(self):
        """if len(loader) % count != 0: optimizer.step()"""
        scope, inside = sources.scope_around(self.loop), set(self.nodes)
        for node in self.source.nodes:
            if (node in inside or not self.count.is_same(node) or sources.scope_around(node) is not scope
                    or not isinstance(node.parent, ast.BinOp) or not isinstance(node.parent.op, ast.Mod)):
                continue
            test = node.parent
            while isinstance(test.parent, (ast.Compare, ast.BoolOp, ast.UnaryOp)):
                test = test.parent
            known = isinstance(test.parent, ast.If) and test is test.parent.test
            if not known or not self._is_length(node.parent.left) or not holds(test.parent.body, {"step"}):
                raise self.unclear(node, "does more with the number of batches of a step than count to it")
            self.flushes = True


def place(source, node):
    return "%s:%d" % (places.short(source.name), node.lineno)


def _enumerate(node):
    while isinstance(node, ast.Call) and node.args:
        if is_call(node, {"enumerate"}):
            return node
        node = node.args[0]
    return None


def _index_of(loop):
    """`i` of `for i, batch in enumerate(...)`."""
    if not isinstance(loop, ast.For) or _enumerate(loop.iter) is None or not isinstance(loop.target, ast.Tuple):
        return None
    first = loop.target.elts[0]
    return first.id if isinstance(first, ast.Name) else None
