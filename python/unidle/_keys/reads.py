"""Finds the module names that a function reads, from its bytecode, and recognises the program's own files."""

from __future__ import annotations

import dis
import functools
import os
import sysconfig
import types
from typing import Any, List, NamedTuple, Tuple

ATTRIBUTE, ITEM = "attribute", "item"
_LOADS = ("LOAD_GLOBAL", "LOAD_NAME")
_ATTRIBUTES = ("LOAD_ATTR", "LOAD_METHOD")
_CONSTANTS = ("LOAD_CONST", "LOAD_SMALL_INT")
_NOTHING = ("PUSH_NULL", "EXTENDED_ARG", "CACHE")  # between a name and its attribute or item
_COPIES = ("COPY", "DUP_TOP", "DUP_TOP_TWO")  # before `x[i] += 1`
# Methods that modify their object.
_CHANGES = frozenset(
    "append appendleft extend extendleft insert remove pop popleft popitem clear sort reverse add discard "
    "update setdefault fill put resize copy_ fill_ zero_ add_ mul_".split()
)
_OURS = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_LIBRARY = tuple(
    {os.path.join(path, "") for path in map(sysconfig.get_path, ("stdlib", "platstdlib")) if path}
)


class Read(NamedTuple):
    """A module name, the attributes and items read from it, and whether the code modifies it."""

    name: str
    steps: Tuple[Tuple[str, Any], ...]  # (ATTRIBUTE or ITEM, its name or constant)
    changed: bool
    assigned: bool  # by `global`: each call may find another value


@functools.lru_cache(maxsize=1024)
def reads(code: types.CodeType) -> Tuple[Read, ...]:
    found, changed, assigned = set(), set(), set()
    for each in _with_inner(code):
        ops = [one for one in dis.get_instructions(each) if one.opname not in _NOTHING]
        for at, one in enumerate(ops):
            if one.opname in ("STORE_GLOBAL", "DELETE_GLOBAL"):
                assigned.add(one.argval)
            elif one.opname in _LOADS:
                steps = _steps(ops, at + 1)
                found.add((one.argval, steps))
                if _is_changed(ops, at, steps):
                    changed.add(one.argval)
    return tuple(
        Read(name, steps, name in changed, name in assigned) for name, steps in sorted(found, key=repr)
    )


def is_own_file(name: str) -> bool:
    """True if a file belongs to the program, not to Python, an installed package, or unidle."""
    if name.startswith("<"):
        return not name.startswith("<frozen")
    return not name.startswith((_OURS, *_LIBRARY)) and not {"site-packages", "dist-packages"} & set(
        name.split(os.sep)
    )


def _with_inner(code: types.CodeType) -> List[types.CodeType]:
    codes = [code]
    for each in codes:
        codes += (one for one in each.co_consts if isinstance(one, types.CodeType))
    return codes


def _steps(ops: list, at: int) -> Tuple[Tuple[str, Any], ...]:
    steps: List[Tuple[str, Any]] = []
    while at < len(ops):
        if ops[at].opname in _ATTRIBUTES:
            steps.append((ATTRIBUTE, ops[at].argval))
            at += 1
        elif ops[at].opname in _CONSTANTS and at + 1 < len(ops) and _takes_item(ops[at + 1]):
            steps.append((ITEM, ops[at].argval))
            at += 2
        else:
            break
    return tuple(steps)


def _takes_item(op: dis.Instruction) -> bool:
    return op.opname == "BINARY_SUBSCR" or (op.opname == "BINARY_OP" and op.argrepr == "[]")


def _is_changed(ops: list, at: int, steps: tuple) -> bool:
    if steps and steps[-1][0] == ATTRIBUTE and steps[-1][1] in _CHANGES:
        return True
    attribute, item = (ops[at + ahead].opname if at + ahead < len(ops) else "" for ahead in (1, 2))
    return attribute in ("STORE_ATTR", "DELETE_ATTR", *_COPIES) or item in (
        "STORE_SUBSCR",
        "DELETE_SUBSCR",
        *_COPIES,
    )
