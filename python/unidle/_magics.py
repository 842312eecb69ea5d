"""The magic %%unidle of IPython and notebooks, loaded by `%load_ext unidle`."""

from __future__ import annotations

import ast
from typing import Any

from unidle._diagnosis import diagnose
from unidle._observed import observe
from unidle.errors import Error


def load(shell: Any) -> None:
    def observed_cell(line: str, cell: str) -> Any:
        """%%unidle [RECORD]: records the cell, and prints the first sentence of its diagnosis;
        `unidle.diagnose()` says the rest."""
        with observe(line.strip() or None) as watch:
            record = watch.record
            value = _run(shell, cell)
        _tell(record)
        return value

    shell.register_magic_function(observed_cell, magic_kind="cell", magic_name="unidle")


def _run(shell: Any, cell: str) -> Any:
    """Runs the cell as without the magic. Returns the value of its last expression, which is then shown."""
    source = "\n" + shell.transform_cell(cell)  # below the line of the magic
    name = shell.compile.cache(source, shell.execution_count)
    tree = shell.compile.ast_parse(source, name)  # with the __future__ features of earlier cells
    hidden = _ends_with_semicolon(source, tree)
    tree = shell.transform_ast(tree)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(shell.compile(tree, name, "exec"), shell.user_ns)
    if last is None:
        return None
    value = eval(shell.compile(ast.Expression(last.value), name, "eval"), shell.user_ns)
    return None if hidden else value


def _ends_with_semicolon(source: str, tree: ast.Module) -> bool:
    if not tree.body:
        return False
    last = tree.body[-1]
    lines = source.replace("\r\n", "\n").replace("\r", "\n").encode().split(b"\n")  # as Python counts them
    return lines[last.end_lineno - 1][last.end_col_offset :].lstrip().startswith(b";")


def _tell(record: Any) -> None:
    if record is None:  # recorded by somebody else, or not at all
        return
    try:
        print(diagnose(record).answer)
    except Error as failure:
        print(f"unidle: {failure}")
