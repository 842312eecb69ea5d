"""Finds calls whose arguments are drawn at random: what such a call returns never comes again, so there is no
use in keeping it."""

import ast
import inspect
import textwrap

from _unidle_shim.facts import random_draws

# What these give is one of few values, which do come again.
_OF_FEW = {"choice", "choices", "sample", "shuffle", "permutation", "randperm"}
_DRAWS = random_draws.NAMES - _OF_FEW
_ROUNDS = 2  # in a loop, a later line may come before an earlier one


def called_with_drawn(function):
    """The names of what `function` calls with arguments drawn in it; empty if its text is not known."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, TypeError, SyntaxError, ValueError):
        return frozenset()
    drawn = set()
    for _ in range(_ROUNDS):
        for node in ast.walk(tree):
            if isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.NamedExpr)) and node.value:
                if _is_drawn(node.value, drawn):
                    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                    drawn.update(name for target in targets for name in _names(target))
    return frozenset(
        _name_of(node.func)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and any(_is_drawn(one, drawn) for one in [*node.args, *(word.value for word in node.keywords)])
    )


def _name_of(function):
    return getattr(function, "id", None) or getattr(function, "attr", None)


def _names(target):
    return {node.id for node in ast.walk(target) if isinstance(node, ast.Name)}


def _is_drawn(value, drawn):
    """Whether `value` comes from a draw. What a drawn number selects from a sequence is one of few values."""
    if isinstance(value, ast.Subscript):
        return _is_drawn(value.value, drawn)
    if isinstance(value, ast.Name):
        return value.id in drawn
    if isinstance(value, ast.Call) and _name_of(value.func) in _DRAWS:
        return True
    return any(_is_drawn(part, drawn) for part in ast.iter_child_nodes(value))
