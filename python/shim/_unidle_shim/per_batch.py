"""What a training loop does with each batch, by the source of the program: whether it would be the same with fewer and larger ones.

Known statements only: values of the batch get names, are added up, listed and logged. Whatever else goes from one batch to the
next, or decides by how many there were, is a reason to leave the loop alone.
"""

import ast

from . import sources
from .counting import place
from .sources import Unclear
from .syntax import ancestors, calls_in, is_call, is_divisor, is_in, is_method, is_time, name_of_call, names_in, root_of, statement_of, targets_of

_LOG = {"set_description", "set_postfix", "set_postfix_str", "set_description_str", "write", "debug", "info", "warning", "log",
        "add_scalar", "flush", "refresh", "print"}
_KEEP = {"append", "extend", "update"}  # of lists and meters
_NOTHING = {"train", "synchronize", "empty_cache", "sleep", "collect"}
_ONCE_A_STEP = {"step", "zero_grad", "clip_grad_norm_", "clip_grad_value_", "unscale_", "no_sync", "accumulate", "update_parameters",
                "clip_gradients", "clip_grad_norm"}
_CONTEXTS = {"autocast", "record_function", "nullcontext", "set_grad_enabled", "enable_grad", "no_backward_sync", "sdpa_kernel"}
_OF_TESTS = {"isfinite", "isnan", "isinf", "any", "all", "isinstance", "hasattr", "is_available", "get_rank", "is_main_process", "abs"}
_SETTINGS = {"args", "cfg", "config", "opt", "opts", "hparams", "conf", "FLAGS"}
_OF_LOGS = {"item", "len", "float", "int", "round", "mean", "sum", "size", "numel", "exp", "min", "max", "format", "str", "get_last_lr", "time",
            "perf_counter", "monotonic", "join", "asctime", "strftime", "localtime", "cpu", "numpy", "detach", "memory_allocated", "max_memory_allocated", "sqrt", "avg"}


class PerBatch:
    """Of a loop that was counted (counting.Counting). Raises Unclear where it depends on the number of batches."""

    def __init__(self, counting):
        self.of = counting
        self.nodes, self.source, self.unclear = counting.nodes, counting.source, counting.unclear
        self.stored = {node.id for node in self.nodes if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)}
        steps = calls_in(self.nodes[:1], {"step", "zero_grad"})
        self.optimizers = {ast.unparse(call.func.value) for call in steps} | {ast.unparse(each) for call in steps for each in call.args}
        self.kept = set()     # names of lists and meters
        self.carried = set()  # names whose value may be that of the batch before
        self._flow(counting.loop.body, names_in(counting.loop.target))
        self._statements(counting.loop.body)
        self._carried()
        self._kept()
        self._scaled()
        self._decides()
        self._lengths()

    # -- which names keep what an earlier batch gave them ---------------------------------------------------------------

    def _flow(self, statements, assigned):
        """`assigned`: in this turn of the loop; returns them behind the statements."""
        for one in statements:
            if isinstance(one, (ast.Assign, ast.AnnAssign)):
                self._loads(one, assigned)
                targets = one.targets if isinstance(one, ast.Assign) else [one.target]
                assigned = assigned | {name.id for target in targets for name in ast.walk(target) if _is_stored(name)}
            elif isinstance(one, ast.If):
                self._loads(one.test, assigned)
                assigned = self._flow(one.body, assigned) & self._flow(one.orelse, assigned)
            elif isinstance(one, ast.With):
                for item in one.items:
                    self._loads(item, assigned)
                assigned = self._flow(one.body, assigned)
            elif not isinstance(one, ast.Delete):
                self._loads(one, assigned)
        return assigned

    def _loads(self, node, assigned):
        own = {name.id for each in ast.walk(node) if isinstance(each, ast.comprehension) for name in ast.walk(each.target) if isinstance(name, ast.Name)}
        for name in ast.walk(node):
            if isinstance(name, ast.Name) and name.id in self.stored - assigned - own and (isinstance(name.ctx, ast.Load) or _is_added_to(name)):
                self.carried.add(name.id)

    # -- statements -----------------------------------------------------------------------------------------------------

    def _statements(self, statements):
        for one in statements:
            if one in self.of.guards:
                self._statements(one.orelse)
            elif isinstance(one, ast.If):
                self._test(one.test)
                if not self.only_logs(one) and not self._ends_by_steps(one):
                    if names_in(one.test) & self.stored and not _is_of_kind(one.test):
                        raise self.unclear(one, "decides by what one batch gave")
                    self._statements(one.body)
                    self._statements(one.orelse)
            elif isinstance(one, ast.With):
                for item in one.items:
                    if name_of_call(item.context_expr) not in _CONTEXTS:
                        raise self.unclear(one, "enters something with each batch that may count them,")
                self._statements(one.body)
            elif isinstance(one, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
                self._assignment(one)
            elif isinstance(one, ast.Expr):
                self._call(one)
            elif not (isinstance(one, (ast.Pass, ast.Delete, ast.Assert)) or isinstance(one, ast.Raise) and _is_of_no_number(one.parent)):
                raise self.unclear(one, "does something with each batch that may count them,")

    def _test(self, test):
        for call in [each for each in ast.walk(test) if isinstance(each, ast.Call)]:
            if name_of_call(call) not in _OF_LOGS | _OF_TESTS:
                raise self.unclear(call, "calls %s() for each batch, which may count them," % name_of_call(call))

    def _ends_by_steps(self, one):
        """`if steps >= most: break`, where `steps` changes in steps only."""
        by_batch = {name for name in self.stored if any(_is_stored(each) and each.id == name and not self.of.is_guarded(each) for each in self.nodes)}
        calls = any(isinstance(each, ast.Call) or isinstance(each, ast.Attribute) and root_of(each) not in _SETTINGS for each in ast.walk(one.test))
        ends = isinstance(one.body[-1], (ast.Break, ast.Return)) and not one.orelse and all(self._is_of_log(each) for each in one.body[:-1])
        by_step = names_in(one.test) & self.stored - by_batch
        return ends and by_step and not calls and not names_in(one.test) & (by_batch | self.kept)

    def _assignment(self, one):
        targets = one.targets if isinstance(one, ast.Assign) else [one.target]
        for target in targets:
            of_batch = isinstance(target, ast.Subscript) and root_of(target) in self.stored - self.carried
            if not of_batch and any(isinstance(each, (ast.Attribute, ast.Subscript)) for each in ast.walk(target)):
                raise self.unclear(one, "keeps something of each batch")
        if one.value is not None:
            self._expression(one.value)

    def _expression(self, value):
        """Calls are of the batch, or tell the time."""
        for call in [each for each in ast.walk(value) if isinstance(each, ast.Call)]:
            arguments = call.args + [each.value for each in call.keywords]
            optimizes = any(ast.unparse(each) in self.optimizers for one in arguments for each in ast.walk(one) if isinstance(each, (ast.Name, ast.Attribute)))
            if name_of_call(call) in _ONCE_A_STEP or optimizes:
                raise self.unclear(call, "calls %s() for each batch" % name_of_call(call))
            if not is_time(call) and not self.of.is_length(call) and not names_in(call) & self.stored:
                raise self.unclear(call, "calls %s() for each batch, which may count them," % name_of_call(call))

    def _call(self, one):
        call, name = one.value, name_of_call(one.value)
        if isinstance(call, ast.Constant) or self.is_log(call) or name in _NOTHING or is_method(call, {"backward"}):
            return
        if name in _ONCE_A_STEP:
            raise self.unclear(call, "calls %s() for each batch" % name)
        if name == "exit" and _is_of_no_number(one.parent):
            return
        bar = name == "update" and "bar" in ast.unparse(call.func).lower()
        names = names_in(*call.args) if name is not None else set()
        of_batch = names and names <= self.stored | {"len", "float", "int", "time", self.of.count.name}
        if not is_method(call, _KEEP) or not (bar or of_batch):
            raise self.unclear(one, "does something with each batch that may count them,")
        if not bar:
            if not isinstance(call.func.value, ast.Name):
                raise self.unclear(one, "keeps something of each batch")
            self.kept.add(call.func.value.id)
        for argument in call.args:
            self._expression(argument)

    # -- logging --------------------------------------------------------------------------------------------------------

    def is_log(self, value):
        if not (is_call(value, {"print"}) and "print" not in self.source.defined or is_method(value, _LOG)):
            return False
        calls = [each for each in ast.walk(value) if isinstance(each, ast.Call) and each is not value]
        return all(name_of_call(each) in _OF_LOGS for each in calls)

    def only_logs(self, one):
        """A branch of which all is there to be logged, or begins a sum anew."""
        return all(self._is_of_log(each) for each in one.body + one.orelse)

    def _is_of_log(self, one):
        if isinstance(one, ast.Pass) or isinstance(one, ast.Expr) and self.is_log(one.value):
            return True
        if isinstance(one, ast.If):
            return self.only_logs(one)
        if not isinstance(one, ast.Assign) or len(one.targets) != 1 or not isinstance(one.targets[0], ast.Name):
            return False
        name = one.targets[0].id
        if isinstance(one.value, ast.Constant) and any(_is_sum(each) and targets_of(each) == {name} for each in self.nodes):
            return name != self.of.counter
        known = all(name_of_call(each) in _OF_LOGS for each in ast.walk(one.value) if isinstance(each, ast.Call))
        return known and self._is_for_logs(one.targets[0])

    def _is_for_logs(self, name):
        """All that reads the name logs it, or computes such another name."""
        for use in self.source.uses(name, ast.Load):
            one = statement_of(use)
            if isinstance(one, ast.Expr) and self.is_log(one.value):
                continue
            if not (isinstance(one, ast.Assign) and isinstance(one.targets[0], ast.Name) and one.targets[0].id != name.id and self._is_of_log(one)):
                return False
        return True

    def is_logged(self, node):
        """In a statement that logs, or in a branch of which all does."""
        while not isinstance(node, (ast.Module, ast.FunctionDef, ast.AsyncFunctionDef)) and node is not self.of.loop:
            if isinstance(node, ast.Expr) and self.is_log(node.value) or isinstance(node, ast.If) and node not in self.of.guards and self.only_logs(node):
                return True
            if isinstance(node, ast.Assign) and self._is_of_log(node) and not isinstance(node.value, ast.Constant):
                return True
            node = node.parent
        return False

    # -- what goes from batch to batch ----------------------------------------------------------------------------------

    def _carried(self):
        if self.of.counter is not None:
            self.carried.add(self.of.counter)
        for name in sorted(self.carried):
            stores = [node for node in self.nodes if _is_stored(node) and node.id == name]
            statements = [statement_of(node) for node in stores if node is not self.of.loop.target]
            stamps = [one for one in statements if isinstance(one, ast.Assign) and is_time(one.value)]
            if len(stamps) == len(statements) and name != self.of.counter:
                continue
            sums = [one for one in statements if _is_sum(one) or isinstance(one, ast.Assign) and isinstance(one.value, ast.Constant)]
            of_loop = [one for one in statements if one is self.of.loop]
            if len(sums) + len(of_loop) + len(stamps) != len(statements):
                raise self.unclear(stores[0], "takes %s from one batch to the next" % name)
            counts = name == self.of.counter or any(_is_sum(one) and not self._adds_batches(one) for one in sums if not self.of.is_guarded(one))
            if any(not self.of.is_guarded(one) for one in sums + of_loop):
                self._reads(next(node for node in stores if node.id == name), counts)

    def _adds_batches(self, one):
        """What is added is of the batch."""
        value = one.value if isinstance(one, ast.AugAssign) else one.value.right
        return bool(names_in(value) & (self.stored - self.carried))

    def _reads(self, name, counts):
        """Of a sum: within the loop it is logged; behind it, and around it, it is anything, but a number of batches divides."""
        for use in self.source.uses(name, ast.Load):
            if use in self.of.counting or self.is_logged(use) or _is_own_sum(use):
                continue
            if is_in(use, self.of.loop) or counts and not is_divisor(use):
                raise self.unclear(use, "does more with %s than log it" % name.id)

    def _kept(self):
        for node in self.nodes:
            if isinstance(node, ast.Name) and node.id in self.kept and isinstance(node.ctx, ast.Load):
                own = isinstance(node.parent, ast.Attribute) and is_method(node.parent.parent, _KEEP | {"clear", "reset"})
                if not own and not self.is_logged(node):
                    raise self.unclear(node, "does more with %s than log it" % node.id)
        for name in self.kept:
            lists = any(is_method(node, {"append", "extend"}) and root_of(node.func) == name for node in self.nodes)
            first = next(node for node in self.nodes if isinstance(node, ast.Name) and node.id == name)
            for use in self.source.uses(first, ast.Load) if lists else ():
                known = name_of_call(use.parent) in ("mean", "sum", "average", "fmean") or name_of_call(use.parent) == "len" and is_divisor(use)
                if not is_in(use, self.of.loop) and not known and not self.is_logged(use) and not self._is_new(use):
                    raise self.unclear(use, "does more with %s than log it" % name)

    def _decides(self):
        """What a batch gave, read in a step or behind the loop: of larger batches it is something else."""
        names = {name for name in self.stored - self.kept if name != self.of.counter}
        for name in sorted(names):
            stores = [node for node in self.nodes if _is_stored(node) and node.id == name]
            if all(self.of.is_guarded(node) for node in stores) or all(is_time(getattr(statement_of(node), "value", None)) for node in stores):
                continue
            for use in self.source.uses(stores[0], ast.Load):
                inside = is_in(use, self.of.loop)
                if self.is_logged(use) or isinstance(statement_of(use), ast.Delete) or (inside and not self.of.is_guarded(use)) or self._is_new(use):
                    continue
                if inside or name not in self.carried or not (self._is_of_samples(name) or self._is_mean(use)):
                    raise self.unclear(use, "does more with %s, which is of one batch, than log it" % name)

    def _is_new(self, use):
        """Not of this loop: it is read before it, or got another value behind it."""
        if is_in(use, self.of.loop):
            return False
        stores = [each.lineno for each in self.source.uses(use, ast.Store) if not is_in(each, self.of.loop)]
        return use.lineno < self.of.loop.lineno or any(self.of.loop.end_lineno < line <= use.lineno for line in stores)

    def _is_of_samples(self, name):
        """A sum over samples: of counts, or of means times counts."""
        sums = [one for one in self.nodes if _is_sum(one) and targets_of(one) == {name}]
        counts = {"size", "numel", "sum", "len"}
        lengths = {target for one in self.nodes if isinstance(one, ast.Assign) and name_of_call(one.value) in counts for target in targets_of(one)}
        return all(any(name_of_call(each) in counts or isinstance(each, ast.Attribute) and each.attr == "shape" for each in ast.walk(one.value))
                   or names_in(one.value) & lengths for one in sums)

    def _is_mean(self, use):
        """`total / len(loader)`, `total / batches`"""
        node = use
        while isinstance(node.parent, ast.Call) and is_method(node.parent, {"item", "cpu"}) or isinstance(node.parent, ast.Attribute):
            node = node.parent
        parent = node.parent
        if isinstance(parent, ast.AugAssign):
            return False
        return (isinstance(parent, ast.BinOp) and isinstance(parent.op, ast.Div) and node is parent.left
                and any(self.of.is_length(each) or isinstance(each, ast.Name) and each.id in self.carried | {self.of.counter} for each in ast.walk(parent.right)))

    def _scaled(self):
        """Sums and lists of the loss that was divided already: it is divided by less then."""
        divisions = [one for one in map(self.of.division_in, self.nodes) if one is not None]
        divided = {name: one.lineno for one in divisions for name in targets_of(one)}
        for one in self.nodes:
            kept = isinstance(one, ast.Expr) and is_method(one.value, _KEEP) and isinstance(one.value.func.value, ast.Name)
            if not (_is_sum(one) or kept) or self.of.is_guarded(one) or one in divisions:
                continue
            value = ast.Tuple(one.value.args, ast.Load()) if kept else one.value
            scaled = any(each.id in divided and each.lineno > divided[each.id] for each in ast.walk(value) if isinstance(each, ast.Name))
            if not scaled or any(self.of.count.is_same(each) for each in ast.walk(value)):
                continue
            name = one.value.func.value if kept else next(each for each in self.nodes if _is_stored(each) and statement_of(each) is one)
            for use in self.source.uses(name, ast.Load):
                if not is_in(use, self.of.loop) and not self.is_logged(use):
                    raise self.unclear(use, "does more with the divided losses than log them")

    def _lengths(self):
        """len(loader), which is another number then."""
        for source in self.of.program:
            for node in [each for each in source.nodes[1:] if is_call(each, {"len"}) and len(each.args) == 1]:
                scope = sources.scope_around(node)
                if node in self.of.counting or not (scope is self.of.scope and self.of.is_length(node) or _is_of_training(node.args[0])):
                    continue
                total = any(isinstance(each, ast.keyword) and each.arg == "total" for each in ancestors(node))  # of a progress bar
                mean = scope is self.of.scope and not is_in(node, self.of.loop) and node.lineno > self.of.loop.lineno and is_divisor(node)
                if not (total or mean or self.is_logged(node) or source is self.source and self.of.is_before(node) or _is_evaluated(node)):
                    raise Unclear("the program does more with the number of batches of an epoch than log it at %s" % place(source, node))


def _is_of_training(node):
    """Something called a loader, and not one for validation."""
    text = ast.unparse(node).lower()
    return "loader" in text.split(".")[-1] and not any(word in text for word in ("val", "test", "eval", "dev")) and not text.endswith("dataset")


def _is_evaluated(node):
    """In a function that trains nothing."""
    function = sources.scope_around(node)
    return (isinstance(function, ast.FunctionDef) and not calls_in([function], {"backward", "step"})
            and any(name_of_call(each) in ("eval", "no_grad", "inference_mode") for each in ast.walk(function)))


def _is_stored(node):
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)


def _is_added_to(name):
    return isinstance(name.parent, ast.AugAssign) and name.parent.target is name


def _is_sum(one):
    """`total += value`, `total = total + value`"""
    if isinstance(one, ast.AugAssign):
        return isinstance(one.op, ast.Add)
    return (isinstance(one, ast.Assign) and isinstance(one.value, ast.BinOp) and isinstance(one.value.op, ast.Add)
            and ast.unparse(one.value.left) == ast.unparse(one.targets[0]))


def _is_own_sum(use):
    """`total` on the right of `total = total + value`"""
    one = statement_of(use)
    return _is_sum(one) and isinstance(one, ast.Assign) and one.value.left is use


def _is_of_no_number(one):
    """if not math.isfinite(loss.item()):"""
    return isinstance(one, ast.If) and any(name_of_call(each) in ("isfinite", "isnan", "isinf") for each in ast.walk(one.test))


def _is_of_kind(test):
    """By the kind of what a batch is, or by a loss that is no number."""
    return any(name_of_call(each) in ("isinstance", "hasattr", "isfinite", "isnan", "isinf") for each in ast.walk(test))
