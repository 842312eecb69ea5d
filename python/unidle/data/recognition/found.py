"""What is known about a data set."""

from __future__ import annotations

import dataclasses
from typing import Any, Callable, Optional, Sequence, Tuple


@dataclasses.dataclass(frozen=True)
class Found:
    """`source` of unidle.data gives the data set's samples, through `code` ("..." marks what a person must
    add).

    `left` lists what only a person can decide; if it is empty, `open` makes the source.
    """

    source: str
    code: str
    left: Sequence[str] = ()
    open: Optional[Callable[[], Any]] = None
    where: Optional[Tuple[str, int]] = None  # file and line that identified it
    note: str = ""  # another source to consider
    random: bool = False  # samples are random and cannot be compared
    tolerance: float = 0.0  # allowed difference between values

    def but(self, **changes: Any) -> Found:
        return dataclasses.replace(self, **changes)


def is_of(value: Any, module: str, name: str) -> bool:
    """True for this very class, not for its subclasses."""
    kind = type(value)
    return kind.__name__ == name and kind.__module__.startswith(module)
