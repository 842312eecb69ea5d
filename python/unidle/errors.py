"""The exceptions of unidle, in one family. The message is one line: what, where, what to do."""

from __future__ import annotations


class Error(Exception):
    """Base class of all exceptions raised by unidle."""


class UsageError(Error, ValueError):
    """An invalid argument."""


class InputError(Error, ValueError):
    """An invalid file: missing, truncated, damaged."""


class FileSystemError(Error, OSError):
    """A system call failed: permission, a broken disk."""


class OutOfMemoryError(Error, MemoryError):
    """Out of memory."""


class ForkedError(Error, RuntimeError):
    """A loader was used in a process forked after its creation."""


class MissingError(Error, ImportError):
    """A missing dependency: the native library, numpy."""
