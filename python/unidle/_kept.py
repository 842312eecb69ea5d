"""Entries of a cache that were asked for by name, for the next time."""

from __future__ import annotations

import ctypes
from typing import Any, Dict, List, Optional, Tuple

_MOST = 16384
_MOST_HITS = 3  # that count, as unidle_cache.h has it


class Kept:
    """Arrays over the memory of entries. As long as the counters that all processes share say that they are
    the ones, who asks again gets them without a call of the library.

    Any thread may use it: reading and changing a dict is atomic, and nothing else must be right.
    """

    def __init__(self) -> None:
        # A str and bytes of the same letters must not be compared: with -bb that is an error.
        self._entries: Dict[type, dict] = {str: {}, bytes: {}}
        self._bytes = 0
        self._pressure: Any = None  # a counter, once there is an entry
        self._pressed = 0  # what it was

    def find(self, name: Any) -> Optional[List[Tuple[str, Any]]]:
        """(name, array) of each array; None where the library has to be asked."""
        if self._pressure is None:
            return None
        if self._pressure.value != self._pressed:  # somebody needs room
            self.clear()
            return None
        entries = self._entries.get(type(name))
        entry = entries.get(name) if entries else None
        if entry is None:
            return None
        arrays, generation, seen, hits = entry
        if generation.value != seen:  # it was replaced or removed, or another that shares the counter was
            return None
        if hits.value < _MOST_HITS:
            hits.value += 1
        return arrays

    def add(self, name: Any, arrays: List[Tuple[str, Any]], watched: Any) -> None:
        """`watched`: what the library told of them, a Watched."""
        entries = self._entries.get(type(name))
        if entries is None or not watched.generation or watched.bytes * 16 > watched.room:
            return
        if self._pressure is None:
            pressure = ctypes.c_uint32.from_address(watched.pressure)
            self._pressed, self._pressure = pressure.value, pressure
        if self._bytes + watched.bytes > watched.room or len(entries) >= _MOST:
            self.clear()
        generation = ctypes.c_uint32.from_address(watched.generation)
        entries[name] = arrays, generation, watched.seen, ctypes.c_uint8.from_address(watched.hits)
        self._bytes += watched.bytes  # of two threads at once only one may count, until all are cleared

    def clear(self) -> None:
        """Lets go of them; who holds their arrays keeps those."""
        if self._pressure is not None:
            self._pressed = self._pressure.value
        self._bytes = 0
        for entries in self._entries.values():
            entries.clear()
