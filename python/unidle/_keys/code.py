"""The code of a cached function, as part of its keys."""

from __future__ import annotations

import types
from typing import Any, Dict, Iterable, List, Optional, Tuple

from unidle._keys.arguments import encode
from unidle._keys.functions import Functions, code_key, read_keys
from unidle._keys.parts import NotKeyable, part, text
from unidle._keys.reads import is_own_file

_MOST_DECORATORS = 100


class Code:
    """The code of one cached function."""

    def __init__(self, function: Any) -> None:
        self._function, self._decorators = _within_decorators(function)
        self._last: Optional[Tuple[Functions, bytes]] = None
        self._large: Dict[int, tuple] = {}

    def key(self) -> bytes:
        """The code and the module values it reads; computed again when one of these changes."""
        last = self._last
        if last is None or not last[0].are_as_before():
            seen = Functions(encode, self._large)
            seen.number_of(self._function)
            key = part(b"f", self._decorators, self.own(), *read_keys(self._function, seen))
            self._last = last = seen, key
        return last[1]

    def own(self) -> bytes:
        """The code alone, including wrapped functions."""
        return b"".join(code_key(each.__code__) for each in _chain(self._function))

    def free_values(self) -> Iterable[Tuple[str, Any]]:
        """The variables of the enclosing function, except the function itself."""
        names, cells = self._function.__code__.co_freevars, self._function.__closure__ or ()
        for name, cell in zip(names, cells):
            try:
                value = cell.cell_contents
            except ValueError:  # not assigned yet
                continue
            if self._function not in _chain(value):
                yield name, value


def _chain(function: Any) -> List[Any]:
    """Returns a function, the one it wraps, the one that wraps, and so on."""
    found = []
    while isinstance(function, types.FunctionType) and len(found) < _MOST_DECORATORS:
        found.append(function)
        function = getattr(function, "__wrapped__", None)
    return found


def _within_decorators(function: Any) -> Tuple[Any, bytes]:
    """Returns the program's function inside library decorators (torch.no_grad), and the key of these
    decorators: their names and plain values."""
    decorators, chain = b"", _chain(function)
    for outer, inner in zip(chain, chain[1:]):
        if is_own_file(outer.__code__.co_filename):
            break
        names = outer.__globals__.get("__name__", ""), outer.__code__.co_name
        decorators += part(b"w", *map(text, names), *map(_state, outer.__closure__ or ()))
        function = inner
    return function, decorators


def _state(cell: Any) -> bytes:
    value = cell.cell_contents
    if isinstance(value, types.FunctionType):
        return b""
    value = getattr(value, "__self__", value)  # of a bound method
    members = getattr(value, "__dict__", None) or {"": value}
    pieces = []
    for name, each in sorted(members.items()):
        try:
            pieces += text(name), encode(each, (), None)
        except NotKeyable:
            continue
    return part(b"s", *pieces)
