"""What was met during the encoding of a function: functions, classes, and values that may change."""

from __future__ import annotations

import collections
from typing import Any, Callable, Dict, List, Optional, Tuple

from unidle._keys.parts import NotKeyable, is_namespace, text

MISSING: Any = object()
LARGE_COUNT, _LARGE_BYTES = 64, 1 << 16  # larger module values are encoded once per process
_HUGE_BYTES = 64 << 20  # larger arrays are encoded by type and shape only
_MAY_CHANGE = (list, dict, set, bytearray, collections.deque)


class Functions:
    """The functions and classes met during an encoding, each once because they may refer to each other,
    and the module names that were looked up, to detect later whether their values have changed."""

    def __init__(self, encode: Callable, large: Optional[Dict[int, tuple]] = None) -> None:
        self.encode = encode  # encodes any value: (value, above, functions) -> bytes
        self._numbers: Dict[int, int] = {}
        self._watched: List[Tuple[Any, Any, Any]] = []  # namespace, name, value
        self._large: Dict[int, tuple] = {} if large is None else large
        self._mutable: List[Tuple[Any, bytes]] = []  # module values that may change in place
        self.steady = True  # False: some other value may change in place

    def number_of(self, thing: Any) -> Tuple[int, bool]:
        """Returns its number, and whether it is new."""
        new = id(thing) not in self._numbers
        return self._numbers.setdefault(id(thing), len(self._numbers)), new

    def are_as_before(self) -> bool:
        if not self.steady:
            return False
        for names, name, value in self._watched:
            if names.get(name, MISSING) is not value:
                return False
        return all(self._or_nothing(value) == key for value, key in self._mutable)

    def look_up(self, names: Any, name: Any) -> Any:
        value = names.get(name, MISSING)
        self._watched.append((names, name, value))
        return value

    def of_module(self, value: Any) -> bytes:
        """Encodes a module value. A value that cannot be keyed (a model, an open file) is ignored."""
        if not may_change(value):
            return self._or_nothing(value)
        size = getattr(value, "nbytes", None)
        large = size > _LARGE_BYTES if size is not None else _count(value) > LARGE_COUNT
        if not large:
            key = self._or_nothing(value)
            self._mutable.append((value, key))
            return key
        if (size or 0) > _HUGE_BYTES:
            return text(f"{value.dtype} {tuple(value.shape)}")
        known = self._large.get(id(value))
        if known is None or known[0] is not value or known[1] != _count(value):
            known = self._large[id(value)] = value, _count(value), self._or_nothing(value)
        return known[2]

    def _or_nothing(self, value: Any) -> bytes:
        try:
            return self.encode(value, (), Functions(self.encode))
        except NotKeyable:
            return b"?"


def may_change(value: Any) -> bool:
    """Whether a value may change in place. REQUIRES: it can be keyed."""
    if isinstance(value, (tuple, frozenset)):
        return any(map(may_change, value))
    return (
        isinstance(value, _MAY_CHANGE)
        or hasattr(type(value), "nbytes")
        or is_data_class(value)
        or is_namespace(value)
    )


def _count(value: Any) -> int:
    return len(value) if hasattr(value, "__len__") else 0


def is_data_class(value: Any) -> bool:
    return hasattr(type(value), "__dataclass_fields__")
