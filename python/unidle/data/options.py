"""Validates options: invalid values raise a UsageError in one line."""

from __future__ import annotations

import json
import operator
import os
import sys
from typing import Any, Iterable, Optional, Tuple

from unidle.errors import UsageError

MOST = 2**63 - 1  # maximum that the library can count


def default_tensors() -> str:
    """ "torch" if it is installed, otherwise "numpy"."""
    try:
        import torch  # noqa: F401
    except ImportError:
        return "numpy"
    return "torch"


def default_rank() -> Tuple[int, int]:
    """Rank and world of torch.distributed if initialised, otherwise of the environment (torchrun and
    others)."""
    distributed = sys.modules.get("torch.distributed")
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        return distributed.get_rank(), distributed.get_world_size()
    try:
        return int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    except (KeyError, ValueError):
        return 0, 1


def refuse(kind: str, name: str, expected: str, found: Any) -> UsageError:
    text = repr(found)
    text = text if len(text) <= 80 else text[:77] + "..."
    return UsageError(f"{kind} option {name}: expected {expected}, found {' '.join(text.split())}")


def whole(kind: str, name: str, value: Any, least: int = 0, most: int = MOST) -> int:
    """Accepts whole numbers, including numpy's."""
    try:
        number = operator.index(value)
    except TypeError:
        raise refuse(kind, name, "a whole number", value) from None
    if isinstance(value, bool):
        raise refuse(kind, name, "a whole number", value)
    if not least <= number <= most:
        raise refuse(kind, name, f"{least} or more" if most == MOST else f"{least} to {most}", value)
    return number


def flag(kind: str, name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise refuse(kind, name, "True or False", value)
    return value


def function(kind: str, name: str, value: Any) -> Any:
    if value is not None and not callable(value):
        raise refuse(kind, name, "a function", value)
    return value


def path(kind: str, value: Any, name: str = "path") -> str:
    """Accepts paths; keeps bytes that are not UTF-8 (os.fsdecode)."""
    try:
        text = os.fsdecode(value)
    except TypeError:
        raise refuse(kind, name, "a path", value) from None
    if not text or "\0" in text:
        raise refuse(kind, name, "a path", value)
    return text


def several(kind: str, name: str, values: Any) -> Optional[list]:
    """Returns the elements of a list, tuple or array; None stays None."""
    if values is None:
        return None
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise refuse(kind, name, "a list", values)
    return list(values)


def _plain(value: Any) -> Any:
    """Converts numpy and torch numbers for JSON."""
    for convert in (operator.index, float):
        try:
            return convert(value)
        except (TypeError, ValueError):
            pass
    raise TypeError


def _text(value: Any) -> Any:
    """Converts paths that are not UTF-8 to objects with their bytes, since JSON cannot hold them."""
    if isinstance(value, list):
        return [_text(one) for one in value]
    if isinstance(value, dict):
        return {name: _text(one) for name, one in value.items()}
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            return {"hex": os.fsencode(value).hex()}
    return value


def encode(kind: str, values: dict) -> bytes:
    """Encodes the options for the library."""
    written = []
    for name, value in values.items():
        try:
            text = json.dumps(_text(value), default=_plain, allow_nan=False)
            written.append(f"{json.dumps(name)}: {text}")
        except (TypeError, ValueError):
            raise refuse(kind, name, "finite numbers, texts or lists of them", value) from None
    return ("{" + ", ".join(written) + "}").encode()
