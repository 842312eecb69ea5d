"""Drops files from memory before a measurement begins."""

import os
from pathlib import Path


def forget(folder):
    """Writes new data of the files under `folder` to disk and drops all of them from the page cache."""
    for path in Path(folder).rglob("*"):
        if path.is_file():
            with open(path, "rb") as file:
                os.fsync(file.fileno())
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
