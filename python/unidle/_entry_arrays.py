"""The arrays of a cache entry, backed by its file."""

from __future__ import annotations

import ctypes
import struct
import weakref
from typing import Any, Dict

from unidle import _native
from unidle._tensors import numpy

Arrays = Dict[str, Any]

# Reserved array names, hidden from users. An entry contains its name so that it can be listed.
OWN = "unidle:"
# By the type numbers of docs/cache-format.md.
TYPES = (
    "bool uint8 int8 uint16 int16 uint32 int32 uint64 int64 float16 bfloat16 float32 float64"
    " complex64 complex128"
).split()
_ROW = struct.Struct("=HBBIQQ")
_READ_ONLY = 0x100  # PyBUF_READ
_LAYOUTS = 4096  # remembered layouts; entries of one function mostly share a few

_memory_at = ctypes.pythonapi.PyMemoryView_FromMemory
_memory_at.restype = ctypes.py_object
_memory_at.argtypes = [ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int]

_layouts: Dict[bytes, _Layout] = {}
_holds: Dict[int, Any] = {}


class _Hold(weakref.ref):
    """Keeps an entry until the memory of its arrays is no longer used."""

    __slots__ = ("entry",)


def _let_go(hold: Any, holds: dict = _holds) -> None:
    if holds.pop(hold.entry, None) is not None:
        _native.library().unidle_entry_release(hold.entry)


def dtype_of(number: int) -> Any:
    if TYPES[number] != "bfloat16":
        return numpy().dtype(TYPES[number])
    try:
        import ml_dtypes
    except ImportError:
        return numpy().dtype("V2")  # raw bits; numpy alone lacks bfloat16
    return numpy().dtype(ml_dtypes.bfloat16)


class _Layout:
    """The (name, type, shape, offset) of all arrays of an entry, and of the visible ones. The offset is
    None for an array without bytes."""

    __slots__ = ("all", "shown")

    def __init__(self, text: bytes) -> None:
        self.all, at = [], 0
        while at < len(text):
            length, number, axes, _, offset, size = _ROW.unpack_from(text, at)
            at += _ROW.size
            shape = struct.unpack_from(f"={axes}Q", text, at)
            at += 8 * axes
            name = text[at : at + length].decode(errors="surrogatepass")
            at += length
            self.all.append((name, dtype_of(number), shape, offset if size else None))
        self.shown = [row for row in self.all if not row[0].startswith(OWN)]


def layout_of(found: Any) -> _Layout:
    text = ctypes.string_at(found.layout, found.layout_bytes)
    layout = _layouts.get(text)
    if layout is None:
        layout = _Layout(text)
        if len(_layouts) < _LAYOUTS:
            _layouts[text] = layout
    return layout


def over(found: Any, rows: list) -> Arrays:
    """Creates these arrays of an entry over its own memory."""
    np, entry = numpy(), found.entry
    empty, array = np.empty, np.ndarray
    if not found.bytes:
        _native.library().unidle_entry_release(entry)
        return {name: empty(shape, dtype) for name, dtype, shape, _ in rows}
    memory = _memory_at(found.data, found.bytes, _READ_ONLY)
    _holds[entry] = hold = _Hold(memory, _let_go)
    hold.entry = entry
    return {
        name: empty(shape, dtype) if offset is None else array(shape, dtype, memory, offset)
        for name, dtype, shape, offset in rows
    }
