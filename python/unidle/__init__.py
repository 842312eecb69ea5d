"""unidle in Python: data pipelines that keep a device busy, and a cache for expensive results.

Importing it needs no other package. Batches are torch tensors if torch is installed, otherwise numpy
arrays.
"""

from typing import Any as _Any

from unidle import data
from unidle._cache import Cache
from unidle._cached import cached
from unidle._diagnosis import Diagnosis, Finding, Fix, diagnose, report
from unidle._observed import note, observe, phase, step
from unidle._version import __version__
from unidle.errors import (
    Error,
    FileSystemError,
    ForkedError,
    InputError,
    MissingError,
    OutOfMemoryError,
    UsageError,
)


def load_ipython_extension(shell: _Any) -> None:
    """`%load_ext unidle` makes the magic %%unidle, which records a cell and says why its device idles."""
    from unidle import _magics

    _magics.load(shell)


__all__ = [
    "Cache",
    "Diagnosis",
    "Error",
    "FileSystemError",
    "Finding",
    "Fix",
    "ForkedError",
    "InputError",
    "MissingError",
    "OutOfMemoryError",
    "UsageError",
    "__version__",
    "cached",
    "data",
    "diagnose",
    "note",
    "observe",
    "phase",
    "report",
    "step",
]
