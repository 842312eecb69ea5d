"""Questions about the nodes of a program's source; each has its `parent`, see sources.py."""

import ast


def is_in(node, other):
    while node is not None:
        if node is other:
            return True
        node = node.parent
    return False


def is_method(node, names):
    """A call of something.name()"""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in names


def is_call(node, names):
    """A call of name()"""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in names


def holds(nodes, names):
    """A call of a method of one of the names is somewhere in there."""
    return any(is_method(each, names) for one in nodes for each in ast.walk(one))


def names_in(node):
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}


def is_number(node, value):
    return isinstance(node, ast.Constant) and type(node.value) is int and node.value == value


def less_one(node):
    """`n` of `n - 1`; None of anything else."""
    less = isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub) and is_number(node.right, 1)
    return node.left if less else None


def is_whole_sum(node):
    """x.sum(), torch.sum(x), sum(x); not along a dimension."""
    if not is_method(node, {"sum"}) or node.keywords:
        return is_call(node, {"sum"})
    return len(node.args) == (1 if isinstance(node.func.value, ast.Name) and node.func.value.id == "torch" else 0)


def sum_of(node):
    """(target, value) of `n += value` and `n = n + value`; (None, None) of anything else."""
    if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add):
        return node.target, node.value
    if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.value, ast.BinOp) and isinstance(node.value.op, ast.Add):
        target = node.targets[0]
        if ast.unparse(target) in (ast.unparse(node.value.left), ast.unparse(node.value.right)):
            return target, node.value
    return None, None
