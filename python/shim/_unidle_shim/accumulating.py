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

from . import sources
from .counting import Counting, place
from .sources import Unclear
from .syntax import holds, is_call, is_in, is_method, is_whole_sum, names_in, sum_of

_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_OF_A_BATCH = {"backward", "append", "train", "synchronize", "empty_cache", "sleep", "collect"}  # methods that may be called for each
_LOG = {"set_description", "set_postfix", "set_postfix_str", "set_description_str", "write", "debug", "info", "warning", "log",
        "add_scalar", "flush", "refresh"}
_ONCE_A_STEP = {"step", "zero_grad", "clip_grad_norm_", "clip_grad_value_", "unscale_", "no_sync", "accumulate", "update_parameters"}
_UNDO = {"item", "detach", "float"}  # of the loss: its scale is taken back for the log


def find(source, scope):
    """The Accumulation of the training loop in the scope. None where no loop there calls backward(); Unclear: it cannot be changed."""
    loops = [node for node in source.nodes if isinstance(node, _LOOPS) and sources.scope_around(node) is scope and holds([node], {"backward"})]
    inner = [one for one in loops if not any(other is not one and is_in(other, one) for other in loops)]
    if not inner:
        return None
    if len(inner) > 1:
        raise Unclear("there are several loops with a backward pass: %s and %s" % tuple(place(source, one) for one in inner[:2]))
    return Accumulation(source, inner[0])


class Accumulation(Counting):
    """A loop in which nothing but the step depends on how many batches make one."""

    def __init__(self, source, loop):
        super().__init__(source, loop)
        self.differentiated = self._differentiated()
        self._look_at_uses_of_the_count()
        self._look_at_what_each_step_does()
        self._look_at_what_each_batch_does(loop.body)
        self._look_at_counters()
        self._look_at_the_loss()

    def begins_at(self, line):
        """A DataLoader that is iterated over in that line is the one that the loop gets its batches of."""
        return self.counts_steps or self.loop.lineno <= line <= self.loop.iter.end_lineno

    def _look_at_uses_of_the_count(self):
        divides = False
        for node in self.nodes:
            if not self.count.is_same(node) or node in self.counting:
                continue
            parent = node.parent
            if _is_divisor(node, parent):
                divides |= self._is_differentiated(parent)
            elif isinstance(parent, ast.BinOp) and isinstance(parent.op, ast.Mult) and any(is_method(each, _UNDO) for each in ast.walk(parent)):
                continue
            elif not self._is_logged(node):
                raise self.unclear(node, "does more with the number of batches of a step than count to it")
        if not divides:
            raise Unclear("the loop at %s does not divide its loss by the number of batches of a step" % self.where)

    def _look_at_what_each_step_does(self):
        for node in self.nodes:
            if is_method(node, _ONCE_A_STEP) and not self.is_guarded(node):
                raise self.unclear(node, "calls %s() for each batch" % node.func.attr)
            if is_call(node, {"next"}) and not self.counts_steps:
                raise self.unclear(node, "asks something else for the next value")
            if not isinstance(self._counted(node) or ast.Name(), ast.Name) and not self.is_guarded(node):
                raise self.unclear(node, "counts in something other than a name")

    def _look_at_what_each_batch_does(self, statements):
        for one in statements:
            if one in self.guards:
                self._look_at_what_each_batch_does(one.orelse)
            elif isinstance(one, ast.If) and self._counts_in(one.test):
                if not self._only_logs(one.body + one.orelse):
                    raise self.unclear(one, "does something after a number of batches")
            elif isinstance(one, (ast.If, ast.With, ast.Try) + _LOOPS):
                for field in ("body", "orelse", "finalbody"):
                    self._look_at_what_each_batch_does(getattr(one, field, []))
                for handler in getattr(one, "handlers", []):
                    self._look_at_what_each_batch_does(handler.body)
            elif isinstance(one, ast.Expr) and not self._is_known(one.value):
                raise self.unclear(one, "does something with each batch that may count them,")

    def _is_known(self, value):
        if isinstance(value, ast.Constant) or not isinstance(value, ast.Call):
            return isinstance(value, ast.Constant)
        if is_method(value, {"update"}):  # of a progress bar, or of a meter with what the batch gave; of a model's average it counts
            of_batch = set().union(*map(names_in, value.args)) <= self.bound | {"len"}
            return bool(value.args) and of_batch or "bar" in ast.unparse(value.func).lower()
        return is_method(value, _OF_A_BATCH) or self._is_log(value)

    def _is_log(self, value):
        return is_call(value, {"print"}) and "print" not in self.source.defined or is_method(value, _LOG)

    def _only_logs(self, statements):
        return all(isinstance(one, (ast.Pass, ast.Assign, ast.AugAssign)) and not self._counts_on(one)
                   or isinstance(one, ast.Expr) and self._is_log(one.value)
                   or isinstance(one, ast.If) and self._only_logs(one.body + one.orelse) for one in statements)

    def _counts_on(self, statement):
        """A counter is changed there."""
        return any(isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load) and node.id in self.counters for node in ast.walk(statement))

    def _counts_in(self, node):
        return any(isinstance(each, ast.Name) and each.id in self.counters and each not in self.counting for each in ast.walk(node))

    def _is_logged(self, node):
        """In a statement that logs, or in a branch of which all does."""
        while not isinstance(node, (ast.Module, ast.FunctionDef, ast.AsyncFunctionDef)) and node is not self.loop:
            if isinstance(node, ast.Expr) and self._is_log(node.value) or isinstance(node, ast.If) and node not in self.guards and self._only_logs([node]):
                return True
            node = node.parent
        return False

    def _look_at_counters(self):
        """Also behind the loop and around it, which may end by them."""
        first = {node.id: node for node in self.nodes if isinstance(node, ast.Name) and node.id in self.counters}
        for node in [use for name in first.values() for use in self.source.uses(name, ast.Load)]:
            own_sum = getattr(sum_of(node.parent.parent)[0], "id", None) == node.id  # of n = n + 1
            if node not in self.counting and not (own_sum or self._is_logged(node) or self._is_mean(node)):
                raise self.unclear(node, "does more with the number of its batches than log it")

    def _is_mean(self, node):
        """Behind the loop: total / (i + 1)"""
        if is_in(node, self.loop):
            return False
        while not isinstance(node, ast.stmt):
            if isinstance(node.parent, ast.BinOp) and isinstance(node.parent.op, ast.Div) and node is node.parent.right:
                return True
            node = node.parent
        return False

    # -- the loss: a mean over more samples is the mean of the means, a sum is not -------------------------------------

    def _differentiated(self):
        """Names that the loss is computed of, and nodes of backward passes."""
        calls = [node for node in self.nodes if is_method(node, {"backward"})]
        names, more = set(), set().union(*map(names_in, calls))
        while more - names:
            names |= more
            values = [node.value for node in self.nodes if isinstance(node, ast.Assign) and set().union(*map(names_in, node.targets)) & names]
            more = set().union(*map(names_in, values))
        return names, {each for call in calls for each in ast.walk(call)}

    def _is_differentiated(self, node):
        names, nodes = self.differentiated
        while not isinstance(node, ast.stmt):
            if node in nodes:
                return True
            node = node.parent
        targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AugAssign) else []
        return bool(set().union(*map(names_in, targets)) & names)

    def _look_at_the_loss(self):
        for node in self.source.nodes:
            if isinstance(node, ast.keyword) and node.arg == "reduction" and getattr(node.value, "value", None) == "sum":
                raise self.unclear(node.value, "adds up the losses of a batch")
        for node in self.nodes:
            if is_whole_sum(node) and self._is_differentiated(node):
                raise self.unclear(node, "adds up the losses of a batch")


def _is_divisor(node, parent):
    if isinstance(parent, ast.BinOp):
        return isinstance(parent.op, ast.Div) and node is parent.right
    return isinstance(parent, ast.AugAssign) and isinstance(parent.op, ast.Div) and node is parent.value
