"""A function's source as a syntax tree."""

from __future__ import annotations

import ast
import inspect
import textwrap
import types
from typing import Any, Dict, Optional, Tuple


class Function:
    """A function of two arguments, self and an index, whose source is available."""

    def __init__(self, function: types.FunctionType, tree: ast.FunctionDef) -> None:
        self.function, self.tree = function, tree
        names = [one.arg for one in tree.args.args]
        self.self_name, self.index = names[0], names[1]
        code = function.__code__
        self.where = (code.co_filename, code.co_firstlineno)
        self.values: Dict[str, ast.expr] = {}  # names assigned exactly once, in order

    @staticmethod
    def of(function: Any) -> Optional[Function]:
        if not isinstance(function, types.FunctionType):
            return None
        tree = parsed(function)
        if tree is None or len(tree.args.args) < 2 or tree.decorator_list:
            return None
        return Function(function, tree)

    def returned(self) -> Optional[ast.expr]:
        """Returns the returned expression if everything before it only assigns names."""
        body = list(self.tree.body)
        while body:
            step = body.pop(0)
            if isinstance(step, ast.Return):
                return step.value if not body else None
            if isinstance(step, ast.Expr) and isinstance(step.value, ast.Constant):
                continue  # its docstring
            if not self._binds(step) and not self._makes_list(step):
                return None
        return None

    def _binds(self, step: ast.stmt) -> bool:
        if not isinstance(step, ast.Assign) or len(step.targets) != 1:
            return False
        target, value = step.targets[0], step.value
        pairs = [(target, value)]
        if (
            isinstance(target, ast.Tuple)
            and isinstance(value, ast.Tuple)
            and (len(target.elts) == len(value.elts))
        ):
            pairs = list(zip(target.elts, value.elts))
        for name, one in pairs:
            if not isinstance(name, ast.Name) or name.id in self.values or name.id == self.index:
                return False
            if len(pairs) > 1 and self._uses(value, name.id):
                return False
            self.values[name.id] = one
        return True

    @staticmethod
    def _uses(value: ast.expr, name: str) -> bool:
        return any(isinstance(one, ast.Name) and one.id == name for one in ast.walk(value))

    def _makes_list(self, step: ast.stmt) -> bool:
        """Recognises the common `if torch.is_tensor(i): i = i.tolist()`; a loader passes whole numbers."""
        return (
            isinstance(step, ast.If)
            and not step.orelse
            and ast.unparse(step.test) == f"torch.is_tensor({self.index})"
            and [ast.unparse(one) for one in step.body] == [f"{self.index} = {self.index}.tolist()"]
        )


def parsed(function: Any) -> Optional[ast.FunctionDef]:
    """Returns None when the source is unavailable or not a function."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, TypeError, SyntaxError, ValueError):
        return None
    found = tree.body[0] if tree.body else None
    return found if isinstance(found, ast.FunctionDef) else None


def line_of(function: Any, node: ast.AST) -> Tuple[str, int]:
    """Returns file and line of a node of parsed(function)."""
    code = function.__code__
    return code.co_filename, code.co_firstlineno + node.lineno - 1
