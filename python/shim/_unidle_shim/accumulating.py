"""Loops that sum the gradients of several batches into a step, by the source of the program:

    for i, (x, y) in enumerate(loader):                 for step in range(steps):
        loss = criterion(model(x), y) / count               for _ in range(count):
        loss.backward()                                          x, y = next(batches)
        if (i + 1) % count == 0:                                 loss = criterion(model(x), y) / count
            optimizer.step()                                     loss.backward()
            optimizer.zero_grad()                            optimizer.step()

and whether anything there would be another thing with larger batches and a smaller count. What is not known to be the same
is a reason to leave the loop alone.
"""

import ast

from . import places, sources
from .sources import Unclear
from .variables import Variable

_WRAPPERS = {"enumerate", "tqdm", "track"}  # of what is iterated over
_OF_A_BATCH = {"backward", "append", "train", "synchronize"}  # methods that may be called for each batch
_LOG = {"set_description", "set_postfix", "set_postfix_str", "set_description_str", "write", "debug", "info", "warning", "log",
        "add_scalar", "flush", "refresh"}
_ONCE_A_STEP = {"step", "zero_grad", "clip_grad_norm_", "clip_grad_value_", "unscale_", "no_sync", "accumulate", "update_parameters"}
_UNDO = {"item", "detach", "float"}  # of the loss: its scale is taken back for the log


def find(source, scope):
    """The Accumulation of the training loop in the scope. None where no loop there calls backward(); Unclear: it cannot be changed."""
    loops = [node for node in source.nodes if isinstance(node, (ast.For, ast.AsyncFor, ast.While)) and sources.scope_around(node) is scope
             and _holds([node], {"backward"})]
    inner = [one for one in loops if not any(other is not one and _is_in(other, one) for other in loops)]
    if not inner:
        return None
    if len(inner) > 1:
        raise Unclear("there are several loops with a backward pass: %s and %s" % tuple(_place(source, one) for one in inner[:2]))
    return Accumulation(source, inner[0])


class Accumulation:
    """Of one loop. `count`: the Variable that says how many batches make a step; `flushes`: the end of an epoch makes one of
    the batches that are left; `counts_steps`: the loop is gone through once for each step."""

    def __init__(self, source, loop):
        self.source, self.loop = source, loop
        self.nodes = list(ast.walk(loop))
        self.where = _place(source, loop)
        for node in self.nodes:
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
                raise self._not(node, "defines a function in the loop")
        self.guards, self.flushes, self.allowed = [], False, set()
        self.counters = self._counters()
        self.counts_steps = _is_call(loop.iter, {"range"}) if isinstance(loop, ast.For) else False
        self.count = self._of_range() if self.counts_steps else self._of_guards()
        self.counters = self._counters()
        self._look_at_uses_of_the_count()
        self._look_at_what_each_batch_does(loop.body)
        self._look_at_counters()
        self._look_at_the_loss()

    def _not(self, node, what):
        return Unclear("the program %s at %s" % (what, _place(self.source, node)))

    # -- what counts -----------------------------------------------------------------------------------------------

    def _of_range(self):
        """for _ in range(count)"""
        arguments = self.loop.iter.args
        if len(arguments) != 1 or self.loop.iter.keywords:
            raise self._not(self.loop, "goes through other numbers than 0 to a count")
        self.allowed.add(arguments[0])
        return self._variable(arguments[0])

    def _of_guards(self):
        """if (i + 1) % count == 0"""
        loop = self.loop
        if not isinstance(loop, ast.For) or _loader_in(loop.iter) is None:
            raise self._not(loop, "counts the batches itself")
        steps = [node for node in self.nodes if isinstance(node, ast.If) and _holds(node.body, {"step"})]
        found = [(node, self._guard(node.test)) for node in steps]
        self.guards = [node for node, count in found if count is not None]
        if not self.guards:
            raise Unclear("no `if (i + 1) %% count == 0:` decides when the loop at %s steps" % self.where)
        counts = [count for _, count in found if count is not None]
        variable = self._variable(counts[0])
        for guard, count in zip(self.guards, counts):
            if not variable.is_same(count):
                raise self._not(guard, "counts to another number too")
        return variable

    def _guard(self, test):
        """The node of the count, where the test is true for the last batch of a step."""
        if isinstance(test, ast.Name):
            bound = [name for name in self.source.uses(test, ast.Store)]
            value = sources.bound_to(bound[0]) if len(bound) == 1 and bound[0] in self.nodes else None
            if value is None or isinstance(value, ast.Name):
                return None
            return self._guard(value)
        if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.Or):
            parts = [(part, self._guard(part)) for part in test.values]
            counts = [count for _, count in parts if count is not None]
            rest = [part for part, count in parts if count is None]
            if len(counts) != 1 or not all(self._is_last_batch(part) for part in rest):
                return None
            self.flushes = True
            self.allowed.update(each for part in rest for each in ast.walk(part))
            return counts[0]
        return self._remainder(test)

    def _remainder(self, test):
        """(i + 1) % count == 0, not (i + 1) % count, i % count == count - 1"""
        ahead = True  # the batch counts for one more than the counter says
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            left = test.operand
        elif isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.Eq):
            left, right = test.left, test.comparators[0]
            if _is_less_one(right) and isinstance(left, ast.BinOp) and ast.dump(right.left) == ast.dump(left.right):
                ahead = False
            elif not (isinstance(right, ast.Constant) and right.value == 0):
                return None
        else:
            return None
        if not isinstance(left, ast.BinOp) or not isinstance(left.op, ast.Mod):
            return None
        counter = left.left
        plus_one = (isinstance(counter, ast.BinOp) and isinstance(counter.op, ast.Add) and isinstance(counter.left, ast.Name)
                    and isinstance(counter.right, ast.Constant) and counter.right.value == 1)
        name = counter.left if plus_one else counter
        if not isinstance(name, ast.Name) or name.id not in self.counters:
            return None
        if plus_one != (ahead and not self._counts_from_one(name, test)):
            raise self._not(test, "does not step when the count is complete")
        self.allowed.update(ast.walk(test))
        return left.right

    def _is_last_batch(self, test):
        """i + 1 == len(loader), i == len(loader) - 1"""
        if not isinstance(test, ast.Compare) or len(test.ops) != 1 or not isinstance(test.ops[0], ast.Eq) or not self._counts_in(test):
            return False
        length = test.comparators[0]
        length = length.left if _is_less_one(length) else length
        return _is_call(length, {"len"}) and len(length.args) == 1 and ast.dump(length.args[0]) == ast.dump(_loader_in(self.loop.iter))

    def _counts_from_one(self, name, test):
        """By enumerate(..., 1), or `name += 1` before the test."""
        if name.id == _index_of(self.loop):
            return _starts_at_one(self.loop.iter)
        return any(isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name) and node.target.id == name.id
                   and node.lineno < test.lineno for node in self.nodes)

    def _counters(self):
        """Names that go up with each batch."""
        names = {_index_of(self.loop)} - {None}
        if isinstance(self.loop, ast.For) and isinstance(self.loop.target, ast.Name) and _is_call(self.loop.iter, {"range"}):
            names.add(self.loop.target.id)
        for node in self.nodes:
            if (isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name) and isinstance(node.value, ast.Constant)
                    and not self._is_guarded(node)):
                names.add(node.target.id)
        return names

    def _variable(self, node):
        if isinstance(node, ast.Constant):
            raise self._not(node, "has the number of batches of a step, %s, in the loop and no name for it," % node.value)
        variable = Variable(self.source, node)
        for each in self.nodes:
            if variable.is_same(each) and not isinstance(each.ctx, ast.Load):
                raise self._not(each, "changes the count in the loop")
        return variable

    def _is_guarded(self, node):
        return any(_is_in(node, each) for guard in self.guards for each in guard.body)

    # -- what else there is ----------------------------------------------------------------------------------------

    def _look_at_uses_of_the_count(self):
        divided = []
        for node in self.nodes:
            if not self.count.is_same(node) or node in self.allowed:
                continue
            parent = node.parent
            if _is_divisor(node, parent):
                divided.append(parent)
            elif isinstance(parent, ast.BinOp) and isinstance(parent.op, ast.Mult) and _takes_back(parent):
                continue
            elif not self._is_logged(node):
                raise self._not(node, "does more with the number of batches of a step than count to it")
        if not divided:
            raise Unclear("the loop at %s does not divide its loss by the number of batches of a step" % self.where)
        self.divided = divided

    def _look_at_what_each_batch_does(self, statements):
        for one in statements:
            if one in self.guards:
                self._look_at_what_each_batch_does(one.orelse)
            elif isinstance(one, ast.If) and self._counts_in(one.test):
                if not self._only_logs(one.body + one.orelse):
                    raise self._not(one, "does something after a number of batches")
            elif isinstance(one, (ast.If, ast.With, ast.Try, ast.For, ast.While)):
                for field in ("body", "orelse", "finalbody"):
                    self._look_at_what_each_batch_does(getattr(one, field, []))
                for handler in getattr(one, "handlers", []):
                    self._look_at_what_each_batch_does(handler.body)
            elif isinstance(one, ast.Expr) and not self._is_known(one.value):
                raise self._not(one, "does something with each batch that may count them,")
        for node in self.nodes:
            if _is_method(node, _ONCE_A_STEP) and not self._is_guarded(node):
                raise self._not(node, "calls %s() for each batch" % node.func.attr)

    def _is_known(self, value):
        if isinstance(value, ast.Constant) or not isinstance(value, ast.Call):
            return isinstance(value, ast.Constant)
        if _is_method(value, {"update"}):  # of a progress bar or a meter; of a model's average it is something else
            return all(isinstance(each, ast.Constant) or _is_method(each, {"item", "size", "numel"}) or _is_call(each, {"len"})
                       for each in value.args) and not value.keywords
        return _is_method(value, _OF_A_BATCH) or self._is_log(value)

    def _is_log(self, value):
        return _is_call(value, {"print"}) and "print" not in self.source.defined or _is_method(value, _LOG)

    def _only_logs(self, statements):
        return all(isinstance(one, (ast.Pass, ast.Assign, ast.AugAssign)) and not self._counts_on(one)
                   or isinstance(one, ast.Expr) and self._is_log(one.value)
                   or isinstance(one, ast.If) and self._only_logs(one.body + one.orelse) for one in statements)

    def _counts_on(self, statement):
        """The count, or a counter, is changed there."""
        return any(isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load) and node.id in self.counters for node in ast.walk(statement))

    def _counts_in(self, node):
        return any(isinstance(each, ast.Name) and each.id in self.counters and each not in self.allowed for each in ast.walk(node))

    def _is_logged(self, node):
        """In a statement that logs, or in a branch of which all does."""
        while node is not self.loop:
            if isinstance(node, ast.Expr) and self._is_log(node.value) or isinstance(node, ast.If) and node not in self.guards and self._only_logs([node]):
                return True
            node = node.parent
        return False

    def _look_at_counters(self):
        for node in self.nodes:
            if isinstance(node, ast.Name) and node.id in self.counters and isinstance(node.ctx, ast.Load) and node not in self.allowed:
                if not self._is_logged(node):
                    raise self._not(node, "does more with the number of its batches than log it")

    def _look_at_the_loss(self):
        """A mean over more samples is the mean of the means; a sum is not."""
        for node in self.source.nodes:
            if isinstance(node, ast.keyword) and node.arg == "reduction" and getattr(node.value, "value", None) == "sum":
                raise self._not(node.value, "adds up the losses of a batch")
        for divided in self.divided:
            names = {each.id for each in ast.walk(divided) if isinstance(each, ast.Name)}
            for node in self.nodes:
                own = _is_in(node, divided) or isinstance(node.parent, ast.Assign) and any(
                    isinstance(each, ast.Name) and each.id in names for each in node.parent.targets)
                if own and any(_is_method(each, {"sum"}) or _is_call(each, {"sum"}) for each in ast.walk(node)):
                    raise self._not(node, "adds up the losses of a batch")


def _place(source, node):
    return "%s:%d" % (places.short(source.name), node.lineno)


def _is_in(node, other):
    while node is not None:
        if node is other:
            return True
        node = node.parent
    return False


def _is_method(node, names):
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in names


def _holds(statements, names):
    return any(_is_method(each, names) for one in statements for each in ast.walk(one))


def _is_call(node, names):
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in names


def _loader_in(node):
    """What is iterated over, without enumerate() and progress bars; None where it has no name."""
    while isinstance(node, ast.Call) and (_is_call(node, _WRAPPERS) or _is_method(node, _WRAPPERS)) and node.args:
        node = node.args[0]
    return node if isinstance(node, (ast.Name, ast.Attribute)) else None


def _enumerate(node):
    while isinstance(node, ast.Call) and node.args:
        if _is_call(node, {"enumerate"}):
            return node
        node = node.args[0]
    return None


def _index_of(loop):
    """`i` of `for i, batch in enumerate(...)`."""
    if not isinstance(loop, ast.For) or _enumerate(loop.iter) is None or not isinstance(loop.target, ast.Tuple):
        return None
    first = loop.target.elts[0]
    return first.id if isinstance(first, ast.Name) else None


def _starts_at_one(node):
    call = _enumerate(node)
    start = call.args[1] if len(call.args) > 1 else next((each.value for each in call.keywords if each.arg == "start"), None)
    return isinstance(start, ast.Constant) and start.value == 1


def _is_less_one(node):
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub) and isinstance(node.right, ast.Constant) and node.right.value == 1


def _is_divisor(node, parent):
    if isinstance(parent, ast.BinOp):
        return isinstance(parent.op, ast.Div) and node is parent.right
    return isinstance(parent, ast.AugAssign) and isinstance(parent.op, ast.Div) and node is parent.value


def _takes_back(product):
    return any(_is_method(each, _UNDO) for each in ast.walk(product))
