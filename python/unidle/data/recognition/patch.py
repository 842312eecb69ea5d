"""Creates a patch that replaces a DataLoader in a program by a Loader of unidle.data, for review."""

from __future__ import annotations

import ast
import difflib
from typing import Dict, List, NamedTuple, Optional, Tuple

_POSITIONS = (
    "dataset",
    "batch_size",
    "shuffle",
    "sampler",
    "batch_sampler",
    "num_workers",
    "collate_fn",
    "pin_memory",
)


class Live(NamedTuple):
    """State of the loader in the running program."""

    batch_size: int
    shuffle: bool
    drop_last: bool


def patch(text: str, name: str, line: int, live: Live) -> str:
    """Returns a unified diff of the file `name` that replaces the DataLoader on that line; empty if that
    is uncertain."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return ""
    calls = [node for node in ast.walk(tree) if _makes_loader(node) and node.lineno <= line <= _end(node)]
    if len(calls) != 1:
        return ""
    call = _call(calls[0], text, live)
    if call is None:
        return ""
    changed = _replaced(text, calls[0], call)
    place = _import_at(tree)
    if place is None:
        return ""
    lines = changed.splitlines(keepends=True)
    if place >= 0:
        ending = "\r\n" if lines and lines[0].endswith("\r\n") else "\n"
        lines.insert(place, "import unidle.data" + ending)
    return _diff(text.splitlines(keepends=True), lines, name)


def _makes_loader(node: ast.AST) -> bool:
    if not isinstance(node, ast.Call):
        return False
    called = node.func
    name = called.id if isinstance(called, ast.Name) else getattr(called, "attr", "")
    return name == "DataLoader"


def _end(node: ast.AST) -> int:
    return getattr(node, "end_lineno", None) or node.lineno


def _call(call: ast.Call, text: str, live: Live) -> Optional[str]:
    given: Dict[str, str] = {}
    if len(call.args) > len(_POSITIONS) or any(isinstance(one, ast.Starred) for one in call.args):
        return None
    pairs: List[Tuple[Optional[str], ast.expr]] = list(zip(_POSITIONS, call.args))
    unpacked = None
    for word in call.keywords:
        if word.arg is None:
            if unpacked is not None or not isinstance(word.value, (ast.Name, ast.Attribute)):
                return None  # the source is ambiguous
            unpacked = ast.unparse(word.value)
        else:
            pairs.append((word.arg, word.value))
    for name, value in pairs:
        given[name or ""] = ast.get_source_segment(text, value) or ""
    if not given.get("dataset"):
        return None
    arguments = [f"unidle.data.like({given['dataset']})"]
    if given.get("batch_size"):
        arguments.append("batch_size=" + given["batch_size"])
    elif live.batch_size != 1:
        if unpacked is None:
            return None
        arguments.append(f'batch_size={unpacked}["batch_size"]')
    # An expression stays: the same call may make the loader of the test set, with another value.
    if _is_computed(given.get("shuffle")):
        arguments.append("shuffle=" + given["shuffle"])
    elif not live.shuffle:
        arguments.append("shuffle=False")
    elif given.get("shuffle") == "True":  # the default, but who reads the change looks for it
        arguments.append("shuffle=True")
    if live.drop_last or _is_computed(given.get("drop_last")):
        arguments.append("drop_last=" + given.get("drop_last", "True"))
    if given.get("pin_memory", "False") != "False":
        arguments.append("pin_memory=" + given["pin_memory"])
    return f"unidle.data.Loader({', '.join(arguments)})"


def _is_computed(source: Optional[str]) -> bool:
    return source is not None and source not in ("True", "False", "None")


def _replaced(text: str, node: ast.Call, by: str) -> str:
    """Positions in the tree count UTF-8 bytes."""
    lines = [line.encode() for line in text.splitlines(keepends=True)]
    before = sum(map(len, lines[: node.lineno - 1])) + node.col_offset
    behind = sum(map(len, lines[: (node.end_lineno or 0) - 1])) + (node.end_col_offset or 0)
    whole = b"".join(lines)
    return (whole[:before] + by.encode() + whole[behind:]).decode()


def _import_at(tree: ast.Module) -> Optional[int]:
    """Returns the line, from 0, before which to insert the import; -1 if it exists."""
    place = None
    for node in tree.body:
        if isinstance(node, ast.Import) and any(one.name == "unidle.data" for one in node.names):
            return -1
        of_future = isinstance(node, ast.ImportFrom) and node.module == "__future__"
        if isinstance(node, (ast.Import, ast.ImportFrom)) and not of_future and place is None:
            place = node.lineno - 1
    return place


def _diff(before: List[str], after: List[str], name: str) -> str:
    lines = []
    for line in difflib.unified_diff(before, after, name, name):
        lines.append(line)
        if not line.endswith("\n"):
            lines.append("\n\\ No newline at end of file\n")
    return "".join(lines)
