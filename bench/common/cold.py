"""Files that are not in memory when a measurement begins."""

import os
from pathlib import Path


def forget(folder):
    """The system is told to forget what it keeps of the files under `folder`, and writes first what is new."""
    for path in Path(folder).rglob("*"):
        if path.is_file():
            with open(path, "rb") as file:
                os.fsync(file.fileno())
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
