"""What is known of a data set."""

from __future__ import annotations

import dataclasses
from typing import Any, Callable, Optional, Sequence, Tuple


@dataclasses.dataclass(frozen=True)
class Found:
    """`source` of unidle.data gives what the data set gives, as `code` says it ("..." where a person has to).

    `left` tells what only a person can say; without it, `open` makes the source.
    """

    source: str
    code: str
    left: Sequence[str] = ()
    open: Optional[Callable[[], Any]] = None
    where: Optional[Tuple[str, int]] = None  # file and line that it was known by
    note: str = ""  # another source that may be worth it
    random: bool = False  # samples are drawn at random, and cannot be compared
    tolerance: float = 0.0  # by which values may differ

    def but(self, **changes: Any) -> Found:
        return dataclasses.replace(self, **changes)


def is_of(value: Any, module: str, name: str) -> bool:
    """The class itself, none that inherits from it."""
    kind = type(value)
    return kind.__name__ == name and kind.__module__.startswith(module)
