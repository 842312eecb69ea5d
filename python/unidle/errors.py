"""What goes wrong, as exceptions of one family. The message is one line: what, where, what to do."""

from __future__ import annotations


class Error(Exception):
    """Anything that unidle raises by itself."""


class UsageError(Error, ValueError):
    """A value that makes no sense: the caller's mistake."""


class InputError(Error, ValueError):
    """A file that is not what it should be: missing, cut off, damaged."""


class FileSystemError(Error, OSError):
    """The system refused: permission, a broken disk."""


class OutOfMemoryError(Error, MemoryError):
    """Memory ran out."""


class ForkedError(Error, RuntimeError):
    """A loader was used in a process that was forked after it was made."""


class MissingError(Error, ImportError):
    """Something that must be there is not: the native library, numpy."""
