"""How a training loop counts the batches of a step, by the source of the program: `(i + 1) % count == 0` where it steps."""

import ast
from collections import namedtuple

from . import places, sources
from .sources import Unclear
from .syntax import FUNCTIONS, ancestors, calls_in, is_call, is_in, is_method, is_number, less_one, names_in
from .variables import Variable

_WRAPPERS = {"enumerate", "tqdm", "track"}  # of what is iterated over

# Of a test that is true for the last batch of a step: the node of the count, and all nodes that belong to counting.
_Guard = namedtuple("_Guard", "count nodes")


class Counting:
    """Of one loop. `count`: the Variable that says how many batches make a step; `zeroes`: gradients that are left at the end of an
    epoch are thrown away; `flushes`: they make a step; `counter`: the name that counts the batches."""

    def __init__(self, source, loop):
        self.source, self.loop = source, loop
        self.where = place(source, loop)
        self.nodes = list(ast.walk(loop))
        for node in self.nodes:
            if isinstance(node, FUNCTIONS):
                raise self.unclear(node, "defines a function in the loop")
        self.scope = sources.scope_around(loop)
        self.outermost = [each for each in ancestors(loop) if isinstance(each, (ast.For, ast.While)) and is_in(each, self.scope)][-1]
        self.counting = set()  # nodes that are there to count to a step
        self.guards, self.flushes = [], False
        self.counter = None
        steps = self._steps()
        self.zeroes = any(isinstance(one, ast.Expr) and is_method(one.value, {"zero_grad"}) for one in self._block()[0])
        self.count = self._count(steps)
        self._behind_the_loop()

    def unclear(self, node, what):
        return Unclear("the program %s at %s" % (what, place(self.source, node)))

    def is_guarded(self, node):
        """It happens once a step."""
        return any(is_in(node, each) for guard in self.guards for each in guard.body)

    def _steps(self):
        """Branches in which the loop steps, without branches of these."""
        steps = [node for node in self.nodes if isinstance(node, ast.If) and calls_in(node.body, {"step"})]
        steps = [node for node in steps if not any(other is not node and is_in(node, other) for other in steps)]
        if not steps:
            raise Unclear("the loop at %s does not sum the gradients of several batches: the effective batch would change" % self.where)
        if not isinstance(self.loop, ast.For) or next(self.loaders(), None) is None:
            raise self.unclear(self.loop, "counts the batches itself")
        return steps

    def _count(self, steps):
        variable = None
        for node in self.nodes:
            guard = self._guard(node.test, node in steps) if isinstance(node, ast.If) else None
            if guard is None:
                if node in steps:
                    raise Unclear("not `(i + 1) %% count == 0` alone decides when the loop at %s steps" % self.where)
                continue
            if node in steps and variable is None:
                variable = self._variable(guard.count)
            if variable is not None and variable.is_same(guard.count):
                self.guards.append(node)
                self.counting |= guard.nodes
            elif node in steps:
                raise self.unclear(node, "counts to another number too")
        return variable

    def _guard(self, test, steps):
        if isinstance(test, ast.Name):
            bound = self.source.uses(test, ast.Store)
            value = sources.bound_to(bound[0]) if len(bound) == 1 and bound[0] in self.nodes else None
            return None if value is None or isinstance(value, ast.Name) else self._guard(value, steps)
        if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.Or):
            last = [part for part in test.values if self._is_last_batch(part)]
            others = [part for part in test.values if part not in last]
            guard = self._guard(others[0], steps) if len(others) == 1 else None
            self.flushes |= guard is not None and bool(last)
            return None if guard is None else _Guard(guard.count, guard.nodes.union(*map(ast.walk, last)))
        return self._remainder(test, steps)

    def _remainder(self, test, steps):
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
        name, ahead = _plus_one(left.left)
        begin = self._begin(name)
        if begin is None:
            return None
        if ahead + begin != (0 if one_behind else 1):
            if steps:
                raise self.unclear(test, "does not step when the count is complete")
            return None
        self.counter = name.id
        return _Guard(left.right, set(ast.walk(test)))

    def _begin(self, name):
        """What the counter is for the first batch of an epoch where it is tested; None where that does not show, or is neither 0 nor 1."""
        if not isinstance(name, ast.Name):
            return None
        call = _enumerate(self.loop.iter)
        if call is not None and isinstance(self.loop.target, ast.Tuple) and getattr(self.loop.target.elts[0], "id", None) == name.id:
            start = call.args[1] if len(call.args) > 1 else next((each.value for each in call.keywords if each.arg == "start"), ast.Constant(0))
            return next((value for value in (0, 1) if is_number(start, value)), None)
        stores = [use for use in self.source.uses(name, ast.Store) if use in self.nodes]
        block = self._block()[0]
        resets = [one for one in block if isinstance(one, ast.Assign) and name.id in names_in(*one.targets)]
        if len(stores) != 1 or not resets or not is_number(resets[-1].value, 0) or not counts_one(stores[0].parent) or stores[0].parent not in self.loop.body:
            return None
        return 1 if stores[0].lineno < name.lineno else 0

    def _is_last_batch(self, test):
        """i + 1 == len(loader), i == len(loader) - 1"""
        if not isinstance(test, ast.Compare) or len(test.ops) != 1 or not isinstance(test.ops[0], ast.Eq):
            return False
        name, ahead = _plus_one(test.left)
        length, less = test.comparators[0], 0
        if less_one(length) is not None:
            length, less = less_one(length), 1
        begin = self._begin(name)
        return begin is not None and self.is_length(length) and ahead + begin + less == 1

    def is_length(self, node):
        return is_call(node, {"len"}) and len(node.args) == 1 and ast.dump(node.args[0]) in map(ast.dump, self.loaders())

    def loaders(self):
        """What is iterated over, in enumerate() and progress bars and without them."""
        node = self.loop.iter
        while node is not None:
            while isinstance(node, ast.Call):
                node = node.args[0] if node.args and (is_call(node, _WRAPPERS) or is_method(node, _WRAPPERS)) else None
            if not isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)):
                return
            yield node
            bound = self.source.uses(node, ast.Store) if isinstance(node, ast.Name) else []
            value = sources.bound_to(bound[0]) if len(bound) == 1 else None
            node = value if isinstance(value, ast.Call) else None

    def is_divided(self, value):
        return isinstance(value, ast.BinOp) and isinstance(value.op, ast.Div) and self.count.is_same(value.right)

    def division_in(self, one):
        """`loss = loss / count`, `loss /= count`, and `if count > 1:` with one of them in it; None of anything else."""
        if isinstance(one, ast.If) and len(one.body) == 1 and not one.orelse and isinstance(one.test, ast.Compare):
            known = self.count.is_same(one.test.left) and isinstance(one.test.ops[0], ast.Gt) and is_number(one.test.comparators[0], 1)
            return self.division_in(one.body[0]) if known and not isinstance(one.body[0], ast.If) else None
        if isinstance(one, ast.AugAssign):
            return one if isinstance(one.op, ast.Div) and self.count.is_same(one.value) and isinstance(one.target, ast.Name) else None
        return one if isinstance(one, ast.Assign) and isinstance(one.targets[0], ast.Name) and self.is_divided(one.value) else None

    def _variable(self, node):
        if isinstance(node, ast.Constant):
            raise self.unclear(node, "has the number of batches of a step, %s, in the loop and no name for it," % node.value)
        variable = Variable(self.source, node)
        for each in self.nodes:
            if variable.is_same(each) and not isinstance(each.ctx, ast.Load):
                raise self.unclear(each, "changes the count in the loop")
        return variable

    def _block(self):
        """Statements before the loop and behind it, where it stands."""
        for block in (getattr(self.loop.parent, field, []) for field in ("body", "orelse", "finalbody")):
            if self.loop in block:
                at = block.index(self.loop)
                return block[:at], block[at + 1:]
        return [], []

    def _behind_the_loop(self):
        """if len(loader) % count != 0: optimizer.step()"""
        for one in self._block()[1]:
            for call in calls_in([one], {"step"}):
                test = one.test if isinstance(one, ast.If) else None
                left = test.left if isinstance(test, ast.Compare) else test
                rest = (isinstance(left, ast.BinOp) and isinstance(left.op, ast.Mod) and self.is_length(left.left) and self.count.is_same(left.right))
                if rest:
                    self.flushes = True
                    self.counting |= set(ast.walk(test))
                elif isinstance(one, (ast.For, ast.While)) or "sched" not in ast.unparse(call.func).lower():
                    raise self.unclear(call, "steps behind the loop")


def place(source, node):
    return "%s:%d" % (places.short(source.name), node.lineno)


def counts_one(node):
    """`n += 1`, `n = n + 1`"""
    if isinstance(node, ast.AugAssign):
        return isinstance(node.op, ast.Add) and is_number(node.value, 1)
    return isinstance(node, ast.Assign) and _plus_one(node.value)[1] == 1 and ast.unparse(node.value.left) == ast.unparse(node.targets[0])


def _plus_one(node):
    """(i, 1) of `i + 1`, (i, 0) of `i`"""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add) and is_number(node.right, 1):
        return node.left, 1
    return node, 0


def _enumerate(node):
    while isinstance(node, ast.Call) and node.args:
        if is_call(node, {"enumerate"}):
            return node
        node = node.args[0]
    return None
