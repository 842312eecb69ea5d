"""unidle in Python: data pipelines that keep a device busy, and a cache for expensive results.

Importing it needs no other package. Batches are torch tensors if torch is installed, otherwise numpy
arrays.
"""

from unidle import data
from unidle._cache import Cache
from unidle._cached import cached
from unidle._observed import note, observe, phase, step
from unidle._program import report
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

__all__ = [
    "Cache",
    "Error",
    "FileSystemError",
    "ForkedError",
    "InputError",
    "MissingError",
    "OutOfMemoryError",
    "UsageError",
    "__version__",
    "cached",
    "data",
    "note",
    "observe",
    "phase",
    "report",
    "step",
]
