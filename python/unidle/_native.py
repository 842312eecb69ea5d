"""The C ABI of data pipeline and cache (unidle_data.h and unidle_cache.h in src/unidle), through ctypes.

One library serves every Python from 3.9 on. Calls release the interpreter lock while they run.
"""

from __future__ import annotations

import ctypes
import os
from pathlib import Path
from typing import Any

from unidle._places import places
from unidle.errors import (
    Error,
    FileSystemError,
    ForkedError,
    InputError,
    MissingError,
    OutOfMemoryError,
    UsageError,
)

VERSION = 5  # of the headers
_ERRORS = {1: UsageError, 2: InputError, 3: FileSystemError, 4: OutOfMemoryError, 5: ForkedError}


class Device(ctypes.Structure):
    _fields_ = [("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32)]


class Type(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class Tensor(ctypes.Structure):
    """DLTensor."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device", Device),
        ("ndim", ctypes.c_int32),
        ("dtype", Type),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class Managed(ctypes.Structure):
    """DLManagedTensor."""


_Deleter = ctypes.CFUNCTYPE(None, ctypes.POINTER(Managed))
Managed._fields_ = [("tensor", Tensor), ("manager", ctypes.c_void_p), ("deleter", _Deleter)]


class Facts(ctypes.Structure):
    _fields_ = [
        ("samples", ctypes.c_int64),
        ("epoch", ctypes.c_int64),
        ("epoch_offset", ctypes.c_int64),
        ("waited_ns", ctypes.c_int64),
        ("skipped", ctypes.c_int64),
        ("ready", ctypes.c_int32),
        ("reserved", ctypes.c_int32),
    ]


class Costs(ctypes.Structure):
    _fields_ = [(name, ctypes.c_int64) for name in ("samples", "busy_ns", "slowest_ns", "cpu_ns")]


class Pace(ctypes.Structure):
    _fields_ = [("workers", ctypes.c_int64), ("depth", ctypes.c_int64)]


Lender = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_size_t)


class Found(ctypes.Structure):
    _fields_ = [
        ("entry", ctypes.c_void_p),
        ("data", ctypes.c_void_p),
        ("bytes", ctypes.c_uint64),
        ("layout", ctypes.c_void_p),
        ("layout_bytes", ctypes.c_uint64),
    ]


class CacheArray(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("dtype", ctypes.c_char_p),
        ("data", ctypes.c_void_p),
        ("shape", ctypes.POINTER(ctypes.c_uint64)),
        ("axes", ctypes.c_uint64),
    ]


class CacheNewEntry(ctypes.Structure):
    _fields_ = [
        ("key", ctypes.c_char_p),
        ("arrays", ctypes.POINTER(CacheArray)),
        ("count", ctypes.c_size_t),
    ]


def _library_paths() -> list[Path]:
    if "UNIDLE_LIBRARY" in os.environ:
        return [Path(os.environ["UNIDLE_LIBRARY"])]
    return places("lib/libunidle.so")


def _declare(library: ctypes.CDLL) -> None:
    pointer, text, number = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int64
    signatures = {
        "unidle_usable_cpus": (ctypes.c_int, []),
        "unidle_data_error": (ctypes.c_int, [ctypes.POINTER(text)]),
        "unidle_source_open": (pointer, [text, text, ctypes.POINTER(Tensor), ctypes.c_size_t]),
        "unidle_source_close": (None, [pointer]),
        "unidle_source_subset": (pointer, [pointer, ctypes.POINTER(number), ctypes.c_size_t]),
        "unidle_source_describe": (pointer, [pointer]),
        "unidle_data_free": (None, [pointer]),
        "unidle_loader_open_ordered": (pointer, [pointer, text, pointer, Lender]),
        "unidle_order_open": (pointer, [text, text, ctypes.POINTER(Tensor)]),
        "unidle_order_close": (None, [pointer]),
        "unidle_order_samples": (number, [pointer]),
        "unidle_loader_close": (None, [pointer]),
        "unidle_loader_batches_per_epoch": (number, [pointer]),
        "unidle_loader_batches_in_first_epoch": (number, [pointer]),
        "unidle_loader_workers": (ctypes.c_int, [pointer]),
        "unidle_loader_pace_now": (ctypes.c_int, [pointer, ctypes.POINTER(Pace)]),
        "unidle_loader_extents": (number, [pointer, ctypes.c_size_t, ctypes.POINTER(ctypes.POINTER(number))]),
        "unidle_loader_next": (ctypes.c_int, [pointer, number, pointer, ctypes.POINTER(Facts)]),
        "unidle_loader_pass_over": (ctypes.c_int, [pointer, ctypes.POINTER(Facts)]),
        "unidle_tensor_take_back": (ctypes.c_int, [pointer]),
        "unidle_loader_work": (ctypes.c_int, [pointer, ctypes.POINTER(Costs)]),
        "unidle_loader_stages": (ctypes.c_int, [pointer, ctypes.POINTER(number)]),
        "unidle_cache_open": (pointer, [text, text]),
        "unidle_cache_close": (None, [pointer]),
        "unidle_cache_key_of": (ctypes.c_int, [ctypes.c_int, text, ctypes.c_size_t, text]),
        "unidle_cache_get": (
            ctypes.c_int,
            [pointer, ctypes.c_int, text, ctypes.c_size_t, ctypes.POINTER(Found)],
        ),
        "unidle_cache_peek": (ctypes.c_int, [pointer, text, ctypes.POINTER(Found)]),
        "unidle_entry_release": (None, [pointer]),
        "unidle_cache_contains": (ctypes.c_int, [pointer, text]),
        "unidle_cache_erase": (ctypes.c_int, [pointer, text]),
        "unidle_cache_claim": (ctypes.c_int, [pointer, text, ctypes.POINTER(pointer)]),
        "unidle_claim_release": (None, [pointer]),
        "unidle_claim_put": (ctypes.c_int, [pointer, pointer, ctypes.POINTER(CacheArray), ctypes.c_size_t]),
        "unidle_cache_put_many": (number, [pointer, ctypes.POINTER(CacheNewEntry), ctypes.c_size_t]),
        "unidle_cache_keys": (number, [pointer, ctypes.c_int, ctypes.POINTER(pointer)]),
        "unidle_cache_statistics": (pointer, [pointer]),
    }
    for name, (result, arguments) in signatures.items():
        function = getattr(library, name)
        function.restype = result
        function.argtypes = arguments


def _check_version(library: ctypes.CDLL, path: Path) -> None:
    """Runs before anything else: a library of another version may lack functions."""
    try:
        version = library.unidle_data_version
    except AttributeError:
        raise MissingError(f"{path}: is no library of unidle") from None
    version.restype, version.argtypes = ctypes.c_int, []
    if version() != VERSION:
        raise MissingError(f"{path}: is of version {version()}; the package expects {VERSION}")


def _load() -> ctypes.CDLL:
    tried = []
    for path in _library_paths():
        try:
            library = ctypes.CDLL(str(path))
        except OSError as error:
            tried.append(f"{path}: {error}" if path.exists() else str(path))
            continue
        _check_version(library, path)
        _declare(library)
        return library
    raise MissingError(
        "libunidle.so: cannot be loaded; looked for "
        + ", ".join(tried)
        + " (build it with ./dev build core, "
        "or set UNIDLE_LIBRARY to its path)"
    )


_library: Any = None


def library() -> Any:
    """Returns the library. Loads it at first use, so that importing unidle never fails."""
    global _library
    if _library is None:
        _library = _load()
    return _library


def raise_failure() -> None:
    """Raises the error of this thread's last call."""
    text = ctypes.c_char_p()
    code = library().unidle_data_error(ctypes.byref(text))
    message = (text.value or b"").decode(errors="replace")
    raise _ERRORS.get(code, Error)(message)
