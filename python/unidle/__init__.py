"""unidle in Python: data pipelines that keep a device busy, and a cache for what is costly to compute.

Importing it needs nothing else. With torch, batches are its tensors; without, numpy arrays.
"""

from unidle import data
from unidle._cache import Cache
from unidle._cached import cached
from unidle._observed import note, observe, phase, step
from unidle._program import report
from unidle.errors import (
    Error,
    FileSystemError,
    ForkedError,
    InputError,
    MissingError,
    OutOfMemoryError,
    UsageError,
)

__version__ = "0.1.0"

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
