"""What a data set reads for each sample, from the calls in its source: only enough to name a source."""

from __future__ import annotations

import ast
import types
from typing import Any, Dict, Iterator, List, Optional, Set, Tuple

from . import pictures
from .found import Found
from .function import Function, line_of, parsed

_PICTURES = {"Image.open", "imread", "read_image", "decode_image", "pil_loader", "default_loader"}
_DEEPEST = 2  # depth of the program's functions called by __getitem__

Place = Tuple[str, int]


def of(dataset: Any, function: Function) -> Optional[Found]:
    """Considers calls whose arguments depend on the sample's number."""
    seen: Dict[str, List[Place]] = {}
    for kind, place in _reads(function.function, {function.index}, dataset, _DEEPEST):
        seen.setdefault(kind, []).append(place)
    if len(seen.get("picture", ())) == 1:
        return _picture(dataset, seen["picture"][0])
    if "picture" in seen:
        return Found(
            "pairs",
            "unidle.data.pairs(folder, crop=..., scale=...)",
            ["the folder needs high/ and low/ with files of the same names, and both are cropped alike"],
            where=seen["picture"][0],
        )
    if "npy" in seen:
        return Found(
            "npy",
            "unidle.data.npy(folder, fields=(...))",
            ["say which files are which field, and what is done with their rows"],
            where=seen["npy"][0],
        )
    place = seen["table"][0] if "table" in seen else _of_frame(dataset, function)
    if place is None:
        return None
    return Found(
        "table",
        "unidle.data.table(paths, features=[...], targets=[...])",
        ["say which columns are features and which are targets"],
        where=place,
    )


def _picture(dataset: Any, place: Place) -> Found:
    options: dict = {}
    left = ["the folder needs a subfolder for each class, or a text file with lines PATH LABEL"]
    for value in vars(dataset).values():
        if type(value).__module__.startswith("torchvision.transforms"):
            options, more = pictures.options_of(value)
            left += more
            break
    else:
        left.append("check that the data set transforms its pictures as unidle.data.images does")
    named = "".join(f", {name}={value!r}" for name, value in options.items())
    return Found("images", f"unidle.data.images(folder{named})", left, where=place)


def _of_frame(dataset: Any, function: Function) -> Optional[Place]:
    """Recognises rows of a pandas table, taken one by one; returns where its file is read, if the class
    reads it."""
    text = ast.dump(function.tree)
    for name, value in vars(dataset).items():
        if (
            type(value).__module__.split(".")[0] == "pandas"
            and hasattr(value, "columns")
            and (f"attr='{name}'" in text)
        ):
            return readers(type(dataset).__init__) or function.where
    return None


def readers(function: Any) -> Optional[Place]:
    """Returns where a function calls pandas.read_csv."""
    tree = parsed(function) if isinstance(function, types.FunctionType) else None
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, ast.Call) and _name(node.func).split(".")[-1] == "read_csv":
            return line_of(function, node)
    return None


def _reads(function: Any, given: Set[str], dataset: Any, deepest: int) -> Iterator[Tuple[str, Place]]:
    tree = parsed(function) if isinstance(function, types.FunctionType) else None
    if tree is None:
        return
    known = _dependent(tree, given)
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        moved = [_mentions(one, known) for one in (*node.args, *(word.value for word in node.keywords))]
        if not any(moved):
            continue
        name = _name(node.func)
        last = name.split(".")[-1]
        if name in _PICTURES or last in _PICTURES or name.endswith(".Image.open"):
            yield "picture", line_of(function, node)
        elif last == "load" and _module(function, name) == "numpy":
            yield "npy", line_of(function, node)
        elif last == "read_csv":
            yield "table", line_of(function, node)
        elif deepest > 0:
            yield from _within(function, node, name, known, dataset, deepest - 1)


def _within(
    function: Any, call: ast.Call, name: str, known: Set[str], dataset: Any, deepest: int
) -> Iterator[Tuple[str, Place]]:
    """The same for a method of the data set, or a function in its module."""
    parts = name.split(".")
    inner: Any = None
    skip = 0
    if len(parts) == 2 and parts[0] == "self":
        inner, skip = getattr(type(dataset), parts[1], None), 1
    elif len(parts) == 1:
        inner = function.__globals__.get(name)
    if not isinstance(inner, types.FunctionType) or inner.__module__ != type(dataset).__module__:
        return
    names = inner.__code__.co_varnames[skip : inner.__code__.co_argcount]
    given = {one for one, value in zip(names, call.args) if _mentions(value, known)}
    given |= {word.arg for word in call.keywords if word.arg and _mentions(word.value, known)}
    yield from _reads(inner, given, dataset, deepest)


def _dependent(tree: ast.FunctionDef, given: Set[str]) -> Set[str]:
    """Returns the names whose values depend on the given ones."""
    known = set(given)
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and _mentions(node.value, known):
            known |= {
                one.id for target in node.targets for one in ast.walk(target) if isinstance(one, ast.Name)
            }
        elif isinstance(node, ast.withitem) and node.optional_vars is not None:
            if _mentions(node.context_expr, known):
                known |= {one.id for one in ast.walk(node.optional_vars) if isinstance(one, ast.Name)}
    return known - {"self"}


def _mentions(node: ast.AST, names: Set[str]) -> bool:
    return any(isinstance(one, ast.Name) and one.id in names for one in ast.walk(node))


def _name(node: ast.expr) -> str:
    """Returns for example "Image.open"; empty if the node is not a name."""
    if isinstance(node, ast.Attribute):
        inner = _name(node.value)
        return f"{inner}.{node.attr}" if inner else node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _module(function: Any, name: str) -> str:
    return getattr(function.__globals__.get(name.split(".")[0]), "__name__", "")
