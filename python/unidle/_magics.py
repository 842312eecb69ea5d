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
    tree = ast.parse(source, name)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, name, "exec"), shell.user_ns)
    if last is None:
        return None
    return eval(compile(ast.Expression(last.value), name, "eval"), shell.user_ns)


def _tell(record: Any) -> None:
    if record is None:  # recorded by somebody else, or not at all
        return
    try:
        print(diagnose(record).answer)
    except Error as failure:
        print(f"unidle: {failure}")
