"""What keys are written with: a letter for the kind, the length of what follows, and that."""

from __future__ import annotations

import struct
from typing import Any


class Cannot(Exception):
    """Has no bytes by which it could be known again."""

    place = ""  # within the value that was asked for: ['model'].layers[2]


def part(letter: bytes, *pieces: Any) -> bytes:
    return letter + struct.pack("<Q", sum(map(len, pieces))) + b"".join(pieces)


def text(value: str) -> bytes:
    return part(b"S", value.encode(errors="surrogatepass"))


def number(value: int) -> bytes:
    return part(b"I", b"%x" % value)


def module_of(value: Any) -> str:
    """Where a class or function is from; the main program has one name, also in processes that it spawned."""
    name = getattr(value, "__module__", None) or ""
    return "__main__" if name == "__mp_main__" else name


def kind_of(value: Any) -> str:
    return f"{module_of(type(value))}.{type(value).__qualname__}".replace("builtins.", "")
