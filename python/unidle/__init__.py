"""unidle in Python: data pipelines that keep a device busy.

Importing it needs nothing else. With torch, batches are its tensors; without, numpy arrays.
"""

from unidle import data
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
    "Error",
    "FileSystemError",
    "ForkedError",
    "InputError",
    "MissingError",
    "OutOfMemoryError",
    "UsageError",
    "data",
]
