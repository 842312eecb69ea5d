"""Files that are not in memory when a measurement begins."""

import os
from pathlib import Path


def forget(folder):
    """The system writes what is new of the files under `folder`, and keeps none of them in memory."""
    for path in Path(folder).rglob("*"):
        if path.is_file():
            with open(path, "rb") as file:
                os.fsync(file.fileno())
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
