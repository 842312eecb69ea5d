"""Questions about the nodes of a program's source; each has its `parent`, see sources.py."""

import ast

LOOPS = (ast.For, ast.AsyncFor, ast.While, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


def ancestors(node):
    while node is not None:
        yield node
        node = node.parent


def is_in(node, other):
    return other in ancestors(node)


def statement_of(node):
    return next(each for each in ancestors(node) if isinstance(each, ast.stmt))


def name_of_call(node):
    """The last word of what is called: `step` of optimizer.step(); None of anything else than a call."""
    if not isinstance(node, ast.Call):
        return None
    return getattr(node.func, "attr", None) or getattr(node.func, "id", None)


def is_method(node, names):
    """A call of something.name()"""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in names


def is_call(node, names):
    """A call of name()"""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in names


def calls_in(nodes, names):
    """Calls of methods of one of the names, wherever in there."""
    return [each for one in nodes for each in ast.walk(one) if is_method(each, names)]


def names_in(*nodes):
    return {each.id for node in nodes for each in ast.walk(node) if isinstance(each, ast.Name)}


def targets_of(one):
    """Names that an assignment gives a value."""
    if isinstance(one, ast.Assign):
        return {each.id for target in one.targets for each in ast.walk(target) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)}
    return {one.target.id} if isinstance(one, (ast.AugAssign, ast.AnnAssign)) and isinstance(one.target, ast.Name) else set()


def root_of(node):
    """`a` of a.b["c"].d(); None where it is no name."""
    while isinstance(node, (ast.Attribute, ast.Subscript, ast.Call)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else None


def is_number(node, value):
    return isinstance(node, ast.Constant) and type(node.value) is int and node.value == value


def less_one(node):
    """`n` of `n - 1`; None of anything else."""
    less = isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub) and is_number(node.right, 1)
    return node.left if less else None


def is_divisor(node):
    """Of a quotient, or part of what divides there."""
    for each in ancestors(node):
        if isinstance(each, ast.stmt):
            return isinstance(each, ast.AugAssign) and isinstance(each.op, ast.Div) and each.target is not node
        if isinstance(each.parent, ast.BinOp) and isinstance(each.parent.op, ast.Div) and each is each.parent.right:
            return True
    return False


def is_time(node):
    """time.perf_counter() and the like."""
    return name_of_call(node) in ("time", "perf_counter", "monotonic", "perf_counter_ns", "time_ns") and not node.args
