"""Loops that sum the gradients of several batches into a step, by the source of the program:

    for i, (x, y) in enumerate(loader):
        loss = criterion(model(x), y) / count
        loss.backward()
        if (i + 1) % count == 0:
            optimizer.step()
            optimizer.zero_grad()

and whether anything would be another thing with larger batches and a smaller count. What is not known to be the same is a
reason to leave the loop alone: how it counts (counting.py), what it does with each batch (per_batch.py), and here where else the
count, the batch size and the loss come in.
"""

import ast

from . import sources
from .counting import Counting, place
from .means import Means
from .per_batch import PerBatch
from .sources import Unclear
from .syntax import LOOPS, ancestors, calls_in, is_in, is_method, name_of_call, statement_of, targets_of

_UNDO = {"item", "detach", "float"}  # of the loss: its scale is taken back for the log
_HOOKS = {"register_hook", "register_full_backward_hook", "register_backward_hook", "register_post_accumulate_grad_hook", "make_private"}
_SHAPES = {"view", "reshape", "zeros", "ones", "empty", "randn", "rand", "arange", "eye", "expand", "repeat"}
_MOST_CALLS = 8


def find(source, scope, program=None):
    """The Accumulation of the training loop in the scope. None where no loop there calls backward(); Unclear: it cannot be changed.
    `program`: all of its sources; None: those that are loaded."""
    loops = [node for node in source.nodes if isinstance(node, (ast.For, ast.AsyncFor, ast.While)) and sources.scope_around(node) is scope
             and calls_in([node], {"backward"})]
    inner = [one for one in loops if not any(other is not one and is_in(other, one) for other in loops)]
    if not inner:
        return None
    if len(inner) > 1:
        raise Unclear("there are several loops with a backward pass: %s and %s" % tuple(place(source, one) for one in inner[:2]))
    return Accumulation(source, inner[0], program or sources.own_sources(source))


class Accumulation(Counting):
    """A loop in which nothing but the step depends on how many batches make one."""

    def __init__(self, source, loop, program):
        super().__init__(source, loop)
        self.program = program
        self.runs_at = self._runs_at(self.scope, 0)
        self.per_batch = PerBatch(self)
        self._look_at_the_loss()
        self._look_at_uses_of_the_count()
        self._look_at_the_batch_size()

    def begins_at(self, line):
        """A DataLoader that is iterated over in that line is the one that the loop gets its batches of."""
        return self.loop.lineno <= line <= self.loop.iter.end_lineno

    # -- what runs once, before the loop ---------------------------------------------------------------------------------

    def _runs_at(self, scope, depth):
        """The line of the module in which the function is called, once; None where it may be called oftener."""
        if isinstance(scope, ast.Module):
            return self.outermost.lineno
        if not isinstance(scope, ast.FunctionDef) or scope.decorator_list or depth > _MOST_CALLS:
            return None
        uses = [(each, node) for each in self.program for node in each.nodes if each.may_be(node, scope)]
        call = uses[0][1].parent if len(uses) == 1 and uses[0][0] is self.source else None
        if not isinstance(call, ast.Call) or call.func is not uses[0][1] or _is_in_a_loop(call):
            return None
        around = sources.scope_around(call)
        return call.lineno if isinstance(around, ast.Module) else self._runs_at(around, depth + 1)

    def is_before(self, node, fresh=False):
        """It is computed before the first batch, and never again. `fresh`: each call of the function begins with its own value."""
        scope = sources.scope_around(node)
        if scope is self.scope and (fresh or self.runs_at is not None):
            return node.lineno < self.outermost.lineno and not _is_in_a_loop(node)
        return isinstance(scope, ast.Module) and self.runs_at is not None and node.lineno < self.runs_at and not _is_in_a_loop(node)

    # -- the count -------------------------------------------------------------------------------------------------------

    def _look_at_uses_of_the_count(self):
        for source in self.program:
            for node in source.nodes:
                if not self.count.may_be(source, node) or node in self.counting:
                    continue
                if source is self.source and (is_in(node, self.loop) and self._is_scale(node) or self.per_batch.is_logged(node)):
                    continue
                if source is not self.source or not self.is_before(node, fresh=self.count.is_local()):
                    raise Unclear("the program does more with the number of batches of a step than count to it at %s" % place(source, node))

    def _is_scale(self, node):
        """Divides the loss that goes backward, or multiplies what was read of it."""
        parent = node.parent
        if isinstance(parent, ast.BinOp) and isinstance(parent.op, ast.Mult):
            return any(is_method(each, _UNDO) for each in ast.walk(parent))
        return node in self.divisions

    # -- the loss: a mean over more samples is the mean of the means, divided by fewer of them ----------------------------

    def _look_at_the_loss(self):
        flat = _in_order(self.loop.body)
        made, self.divisions = set(), set()  # losses; nodes that divide them
        for call in calls_in([self.loop], {"backward"}):
            one = statement_of(call)
            loss = self._loss_of(call)
            if any(guard.lineno < one.lineno for guard in self.guards):
                raise self.unclear(call, "goes backward behind the step")
            if one not in flat:
                raise self.unclear(call, "goes backward in some turns of the loop")
            division = loss if self.is_divided(loss) else self._division_of(loss.id, flat[:flat.index(one)]) if isinstance(loss, ast.Name) else None
            if division is None:
                raise Unclear("the loop at %s does not divide its loss by the number of batches of a step" % self.where)
            made.add(loss)
            self.divisions |= {each for each in ast.walk(division) if self.count.is_same(each)}
        means = Means(self.program)
        for loss in made:
            if not means.is_mean(loss, self.nodes):
                raise self.unclear(loss, "goes backward from something else than a mean over samples that is known for one,")
        if means.pads() is not None:
            raise Unclear("the program fills samples up, or leaves some out of the loss, at line %d: what a sample counts depends on its batch" % means.pads().lineno)
        for node in [each for source in self.program for each in source.nodes if name_of_call(each) in _HOOKS]:
            raise Unclear("the program does something with the gradient of each batch at line %d" % node.lineno)

    def _loss_of(self, call):
        """loss.backward(), scaler.scale(loss).backward(), accelerator.backward(loss)"""
        loss = call.args[0] if call.args else call.func.value
        return loss.args[0] if is_method(loss, {"scale"}) and len(loss.args) == 1 else loss

    def _division_of(self, name, statements):
        """The last of the statements that give it a value, where that divides it by the count."""
        stores = [node for node in self.nodes if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store)]
        flat = [self.division_in(one) or one for one in _in_order(self.loop.body)]
        if any(statement_of(node) not in flat for node in stores):
            return None
        last = next((one for one in reversed(statements) if name in targets_of(self.division_in(one) or one)), None)
        return last if last is not None and self.division_in(last) is not None else None

    # -- the batch size ----------------------------------------------------------------------------------------------------

    def _look_at_the_batch_size(self):
        """Under the name that a DataLoader gets it by, or a usual one."""
        loaders = [node for source in self.program for node in source.nodes if name_of_call(node) == "DataLoader"]
        sizes = [each.value for call in loaders for each in call.keywords if each.arg == "batch_size"] + [call.args[1] for call in loaders if len(call.args) > 1]
        makers = {sources.scope_around(call).name for call in loaders if isinstance(sources.scope_around(call), ast.FunctionDef)} | {"DataLoader"}
        words = {_word(each) for size in sizes for each in ast.walk(size)} - {None}
        for source in self.program:
            for node in [each for each in source.nodes[1:] if self._is_size(each, words) and isinstance(each.ctx, ast.Load)]:
                stored = isinstance(node, ast.Name) and sources.scope_around(node) is self.scope and node.id in self.per_batch.stored
                makes = any(name_of_call(each) in makers or "loader" in str(name_of_call(each)).lower() for each in ancestors(node))
                if not stored and not makes and not self.per_batch.is_logged(node) and not self._is_renamed(node, words):
                    raise Unclear("the program does more with the batch size than make a DataLoader at %s" % place(source, node))

    @staticmethod
    def _is_size(node, words):
        word = _word(node)
        return word is not None and (word in words or "batch_size" in word[1].lower() or word[1].lower() in ("bs", "batchsize"))

    def _is_renamed(self, node, words):
        """`batch_size = args.batch_size`"""
        one = statement_of(node)
        if not isinstance(one, ast.Assign) or node.parent not in (one, one.value) or not isinstance(node.parent, (ast.Assign, ast.Tuple)):
            return False
        return any(self._is_size(each, words) for target in one.targets for each in ast.walk(target))

    def numbers_read(self):
        """Names that the loop reads and does not set, and whole numbers that it has: one of them may be the batch size."""
        nodes = [node for node in self.nodes if isinstance(node, (ast.Name, ast.Constant)) and not self.per_batch.is_logged(node)]
        names = {node.id for node in nodes if isinstance(node, ast.Name)} - self.per_batch.stored
        shapes = [each for source in self.program for node in source.nodes if name_of_call(node) in _SHAPES
                  and not isinstance(sources.scope_around(node), ast.Module) for each in node.args[:2]]
        return names, {node.value for node in nodes + shapes if isinstance(node, ast.Constant) and type(node.value) is int}


def _is_in_a_loop(node):
    scope = sources.scope_around(node)
    return any(isinstance(each, LOOPS) for each in ancestors(node) if is_in(each, scope))


def _in_order(statements):
    """Those that are run in each turn of the loop."""
    found = []
    for one in statements:
        found += _in_order(one.body) if isinstance(one, ast.With) else [one]
    return found


def _word(node):
    """`batch_size` of args.batch_size and args["batch_size"], and of which kind it is."""
    if isinstance(node, ast.Name):
        return "name", node.id
    if isinstance(node, ast.Attribute):
        return "attribute", node.attr
    key = getattr(node.slice, "value", None) if isinstance(node, ast.Subscript) else None
    return ("item", key) if isinstance(key, str) else None
