"""The encoding of keys: a letter for the kind, the length of the content, the content."""

from __future__ import annotations

import struct
from typing import Any


class NotKeyable(Exception):
    """The value cannot be part of a key."""

    place = ""  # path within the encoded value: ['model'].layers[2]


def part(letter: bytes, *pieces: Any) -> bytes:
    return letter + struct.pack("<Q", sum(map(len, pieces))) + b"".join(pieces)


def text(value: str) -> bytes:
    return part(b"S", value.encode(errors="surrogatepass"))


def number(value: int) -> bytes:
    return part(b"I", b"%x" % value)


def module_of(value: Any) -> str:
    """Returns the module of a class or function. The main program has one name, also in spawned processes."""
    name = getattr(value, "__module__", None) or ""
    return "__main__" if name == "__mp_main__" else name


def kind_of(value: Any) -> str:
    return f"{module_of(type(value))}.{type(value).__qualname__}".replace("builtins.", "")
