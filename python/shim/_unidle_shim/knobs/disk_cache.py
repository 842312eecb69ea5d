"""The feature cache (unidle_cache.h), as the store of `cache.features=disk`: bytes by key, for all processes
and later runs."""

import ctypes
import hashlib
import os


class _Found(ctypes.Structure):
    _fields_ = [
        ("entry", ctypes.c_void_p),
        ("data", ctypes.c_void_p),
        ("bytes", ctypes.c_uint64),
        ("layout", ctypes.c_void_p),
        ("layout_bytes", ctypes.c_uint64),
    ]


class _Array(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("dtype", ctypes.c_char_p),
        ("data", ctypes.c_char_p),
        ("shape", ctypes.POINTER(ctypes.c_uint64)),
        ("axes", ctypes.c_uint64),
    ]


_KEY = 0  # an entry's name is its key


class DiskCache:
    """The entries of one dataset, identified by `identity`. Raises OSError without a cache. Both sides of a
    fork may use it."""

    def __init__(self, identity):
        self._identity = identity
        self._library = library = ctypes.CDLL(os.environ.get("UNIDLE_LIBRARY", "libunidle.so"))
        pointer = ctypes.c_void_p
        library.unidle_cache_open.restype = pointer
        library.unidle_cache_open.argtypes = [ctypes.c_char_p, ctypes.c_char_p]
        library.unidle_cache_get.argtypes = [
            pointer,
            ctypes.c_int,
            ctypes.c_char_p,
            ctypes.c_size_t,
            ctypes.POINTER(_Found),
        ]
        library.unidle_cache_claim.argtypes = [pointer, ctypes.c_char_p, ctypes.POINTER(pointer)]
        library.unidle_claim_put.argtypes = [pointer, pointer, ctypes.POINTER(_Array), ctypes.c_size_t]
        library.unidle_claim_release.argtypes = library.unidle_entry_release.argtypes = [pointer]
        folder = os.environ["UNIDLE_CACHE"]
        self._cache = library.unidle_cache_open(os.fsencode(folder), b'{"durable":false,"quiet":true}')
        if not self._cache:
            text = ctypes.c_char_p()
            library.unidle_data_error(ctypes.byref(text))
            raise OSError((text.value or b"it cannot be opened").decode(errors="replace"))
        files = os.statvfs(folder)
        self.free_bytes = files.f_bavail * files.f_frsize

    def get(self, what):
        """Returns the bytes stored under that name, or None."""
        found, key = _Found(), self._key(what)
        if self._library.unidle_cache_get(self._cache, _KEY, key, len(key), ctypes.byref(found)) != 1:
            return None
        data = ctypes.string_at(found.data, found.bytes)
        self._library.unidle_entry_release(found.entry)
        return data

    def put(self, what, data):
        """Stores the bytes, unless another process is about to. A failed store is retried at a later miss."""
        claim, key = ctypes.c_void_p(), self._key(what)
        if self._library.unidle_cache_claim(self._cache, key, ctypes.byref(claim)) != 1:
            return
        shape = (ctypes.c_uint64 * 1)(len(data))
        array = _Array(b"packed", b"uint8", data, shape, 1)
        self._library.unidle_claim_put(self._cache, claim, ctypes.byref(array), 1)
        self._library.unidle_claim_release(claim)

    def poison(self):
        """An entry of this dataset was wrong: no run may use any of them."""
        self.put("poisoned", b"1")

    def is_poisoned(self):
        return self.get("poisoned") is not None

    def _key(self, what):
        return hashlib.sha256(
            b"unidle cache.features\0" + self._identity + what.encode("utf-8", "replace")
        ).digest()


class DiskCalls:
    """Results of one function, in place of the dict in KeptFunction."""

    def __init__(self, disk, name):
        self._disk, self._name = disk, name

    def get(self, key):
        return self._disk.get(self._what(key))

    def __contains__(self, key):
        return self.get(key) is not None

    __getitem__ = get

    def __setitem__(self, key, data):
        self._disk.put(self._what(key), data)

    def _what(self, key):
        return "call %s %s" % (self._name, key)
