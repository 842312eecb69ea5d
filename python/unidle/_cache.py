"""The feature cache: named arrays in a folder, shared by all processes and later runs."""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import json
import os
import time
import weakref
from collections.abc import MutableMapping
from typing import Any, Callable, Dict, Iterator, Mapping, Optional, Tuple, Union

from unidle import _native
from unidle._entry_arrays import OWN, TYPES, Arrays, dtype_of, layout_of, over
from unidle._tensors import numpy, values_of
from unidle.errors import UsageError

_KEY, _NAME, _BYTES = 0, 1, 2  # kinds of keys in unidle_cache.h
_KEY_BYTES = 32
_PARTS = 256
_AS_NUMBERS = {"U": "uint32", "S": "uint8", "M": "int64", "m": "int64"}  # numpy's texts, dates, durations
_OWN_NAMES = {_NAME: OWN + "name", _BYTES: OWN + "bytes name"}
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.0005, 0.02  # between checks whether another process is done

_TOGETHER, _TOGETHER_BYTES = 128, 32 << 20  # entries of update() that share a wait for the disk


def _shown(arrays: Arrays) -> Arrays:
    return {name: array for name, array in arrays.items() if not name.startswith(OWN)}


def as_stored(name: str, value: Any) -> tuple:
    """Returns the values as a numpy array in C order, and the name of their type."""
    np = numpy()
    if hasattr(value, "detach"):  # a torch tensor
        if not can_be_stored(value):
            raise UsageError(
                f"array {name}: expected a dense tensor with values, of a type that numpy has or bfloat16; "
                f"found {value.dtype} of layout {value.layout} on {value.device}"
            )
        value = values_of(value)
        if str(value.dtype) == "torch.bfloat16":
            import torch

            return value.view(torch.int16).numpy(), "bfloat16"
        value = value.numpy()
    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        raise UsageError(
            f"array {name}: has masked values, which would not come back masked; fill them first"
        )
    array = np.asarray(value)
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    if array.dtype.name not in TYPES:
        as_numbers = _AS_NUMBERS.get(array.dtype.kind)
        advice = f" (array.view({as_numbers!r}) has numbers, and .view of its dtype has them back)"
        found = f"{array.dtype}{advice if as_numbers else ''}"
        raise UsageError(f"array {name}: expected numbers or booleans, found {found}")
    return (array if array.flags.c_contiguous else array.copy("C")), array.dtype.name


def can_be_stored(tensor: Any) -> bool:
    dense = str(tensor.layout) == "torch.strided" and not tensor.is_quantized and not tensor.is_meta
    return dense and str(tensor.dtype).replace("torch.", "") in TYPES


def bytes_array(text: bytes) -> Any:
    return numpy().frombuffer(text, "uint8") if text else numpy().empty(0, "uint8")


def _kept(name: str, value: Any) -> Any:
    """Returns a read-only copy, like the arrays of a cache."""
    array, dtype = as_stored(name, value)
    array = array.view(dtype_of(TYPES.index(dtype))).copy()
    array.flags.writeable = False
    return array


class Cache(MutableMapping):
    """A mapping of names to dicts of named arrays, stored in a folder for all processes and later runs.

        cache = unidle.Cache("features", max_bytes=20 * 2**30)
        cache["1ubq"] = {"distances": distances, "angles": angles}
        cache["1ubq"]["distances"]       # a read-only numpy array, mapped from the file: not copied

    path       the folder; created if missing
    max_bytes  maximum size of all entries; the least used are evicted first. Stored with the cache: None
               keeps the current bound, and a new cache has none
    durable    whether a stored entry survives a power failure at once, which costs a wait for the disk. Every
               entry survives the end of any process

    Names are str or bytes; "a" and b"a" are two entries. Arrays are numbers or booleans, of numpy, torch or
    anything that numpy converts. bfloat16 is returned as the type of ml_dtypes if that is installed,
    otherwise as raw bits (V2).

    Any number of threads, processes, DataLoader workers (forked or spawned) and ranks may share a cache; a
    pickled Cache is reopened when unpickled. Arrays stay valid and unchanged as long as they are held, even
    when the entry is removed. When entries cannot be stored (disk full, folder not writable, no room), the
    cache says so once on stderr, and the program continues without storing them; a damaged entry is set aside
    and counts as missing.

    Iterating lists the entries with names, unordered, and reads every entry. len() and statistics() use the
    index and are fast: len() counts the entries with names, statistics() everything in the folder. A name
    that is neither str nor bytes is never found, as in a dict. A cache equals only itself. `with` returns the
    cache and closes nothing.
    """

    def __init__(
        self, path: Union[str, "os.PathLike[str]"], max_bytes: Optional[int] = None, *, durable: bool = True
    ) -> None:
        self._path, self._durable = os.path.abspath(os.fspath(path)), durable
        options: Dict[str, Any] = {"durable": bool(durable)}
        if max_bytes is not None:
            options["max_bytes"] = int(max_bytes)
        self._library = library = _native.library()
        self._handle = library.unidle_cache_open(os.fsencode(self._path), json.dumps(options).encode())
        if not self._handle:
            _native.raise_failure()
        self._get = library.unidle_cache_get
        weakref.finalize(self, library.unidle_cache_close, self._handle)

    __eq__ = object.__eq__  # identity, not entry by entry
    __hash__ = object.__hash__

    @property
    def path(self) -> str:
        return self._path

    def __repr__(self) -> str:
        return f"unidle.Cache({self._path!r})"

    def __reduce__(self) -> Any:
        return _opened, (self._path, self._durable)

    def __enter__(self) -> Cache:
        return self

    def __exit__(self, *failure: Any) -> None:
        """Closes nothing: arrays of the cache may still be in use."""

    def __getitem__(self, name: Union[str, bytes]) -> Arrays:
        _require_name(name)
        kind, text = _named(name)
        found = _native.Found()
        if not self._checked(self._get(self._handle, kind, text, len(text), found)):
            raise KeyError(name)
        return over(found, layout_of(found).shown)

    def __setitem__(self, name: Union[str, bytes], arrays: Mapping[str, Any]) -> None:
        kind, text = _named(name)
        key = self._key(kind, text)
        with self.claim(key) as claim:
            self._put_named(claim, kind, text, arrays)

    def __delitem__(self, name: Union[str, bytes]) -> None:
        _require_name(name)
        key = self._key(*_named(name))
        if not self._checked(self._library.unidle_cache_erase(self._handle, key)):
            raise KeyError(name)

    def __contains__(self, name: Any) -> bool:
        if not isinstance(name, (str, bytes)):
            return False
        key = self._key(*_named(name))
        return bool(self._checked(self._library.unidle_cache_contains(self._handle, key)))

    def __iter__(self) -> Iterator[Union[str, bytes]]:
        for part in range(_PARTS):
            for key in self._keys(part):
                found = _native.Found()
                if not self._checked(self._library.unidle_cache_peek(self._handle, key, found)):
                    continue
                arrays = over(found, layout_of(found).all)
                if _OWN_NAMES[_NAME] in arrays:
                    yield arrays[_OWN_NAMES[_NAME]].tobytes().decode(errors="surrogatepass")
                elif _OWN_NAMES[_BYTES] in arrays:
                    yield arrays[_OWN_NAMES[_BYTES]].tobytes()

    def __len__(self) -> int:
        return self._totals()["named"]

    def clear(self) -> None:
        """Removes the entries that were stored by name."""
        for name in list(self):
            with contextlib.suppress(KeyError):  # another process was faster
                del self[name]

    def update(self, other: Any = (), /, **named: Mapping[str, Any]) -> None:
        """Stores the entries of a mapping, or of pairs of name and arrays, like assigning each.

        About a hundred entries share one wait for the disk, so with `durable` many entries cost little
        more than one. Pairs are consumed one by one: a generator may make the arrays. When it raises,
        earlier pairs may have been stored.
        """
        pairs = ((name, other[name]) for name in other.keys()) if hasattr(other, "keys") else other
        together, size = [], 0
        for name, arrays in itertools.chain(pairs, named.items()):
            kind, text = _named(name)
            rows, keep = _rows(_with_name(kind, text, arrays))
            together.append((self._key(kind, text), rows, len(keep), keep))
            size += sum(array.nbytes for array, _ in keep)
            if len(together) >= _TOGETHER or size >= _TOGETHER_BYTES:
                self._put_many(together)
                together, size = [], 0
        self._put_many(together)

    def get_or_compute(self, name: Union[str, bytes], compute: Callable[[], Mapping[str, Any]]) -> Arrays:
        """Returns the entry; stores and returns the result of `compute` when it is missing.

        When several processes or threads ask for a name, one computes and the others wait. When it fails
        or its process dies, the next one computes. `compute` must not ask for its own name.
        """
        kind, text = _named(name)

        def store(claim: int) -> tuple:
            arrays = dict(compute())
            return self._put_named(claim, kind, text, arrays), arrays

        arrays = self.find(kind, text)
        return _shown(arrays if arrays is not None else self.computed(self._key(kind, text), store))

    def statistics(self) -> dict:
        """Returns {"entries", "bytes", "max_bytes"} of everything in the folder; max_bytes is None without
        a bound."""
        totals = self._totals()
        return {name: totals[name] for name in ("entries", "bytes", "max_bytes")}

    def _totals(self) -> dict:
        text = self._library.unidle_cache_statistics(self._handle)
        if not text:
            _native.raise_failure()
        try:
            return json.loads(ctypes.string_at(text))
        finally:
            self._library.unidle_data_free(text)

    # The interface for `cached`. A key is 32 bytes; arrays include unidle's own.

    def find(self, kind: int, name: bytes) -> Optional[Arrays]:
        found = _native.Found()
        got = self._get(self._handle, kind, name, len(name), found)
        if got == 1:
            return over(found, layout_of(found).all)
        self._checked(got)
        return None

    def computed(self, key: bytes, store: Callable[[int], Tuple[bool, Arrays]]) -> Arrays:
        """Returns the entry of a key that was just missing. `store` receives the claim, computes and
        stores the entry, and returns whether it was stored and the arrays."""
        with self.claim(key) as claim:
            arrays = self.find(_KEY, key)  # computed while we waited
            if arrays is not None:
                return arrays
            stored, made = store(claim)
            arrays = self.find(_KEY, key) if stored else None
            return arrays if arrays is not None else {name: _kept(name, each) for name, each in made.items()}

    @contextlib.contextmanager
    def claim(self, key: bytes) -> Iterator[int]:
        """Waits for the claim to a key. Signals are handled meanwhile."""
        claim, pause_s = ctypes.c_void_p(), _FIRST_PAUSE_S
        while not self._checked(self._library.unidle_cache_claim(self._handle, key, claim)):
            time.sleep(pause_s)
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
        try:
            yield claim.value
        finally:
            self._library.unidle_claim_release(claim)

    def put(self, claim: int, arrays: Mapping[str, Any]) -> bool:
        """Returns whether the entry was stored."""
        rows, keep = _rows(arrays)
        stored = self._library.unidle_claim_put(self._handle, claim, rows, len(arrays))
        del keep
        return bool(self._checked(stored))

    def _put_named(self, claim: int, kind: int, text: bytes, arrays: Mapping[str, Any]) -> bool:
        return self.put(claim, _with_name(kind, text, arrays))

    def _put_many(self, entries: list) -> None:
        """Stores entries (key, rows, their number, the objects that own the rows' memory)."""
        while entries:
            table = (_native.CacheNewEntry * len(entries))(*(entry[:3] for entry in entries))
            through = self._checked(self._library.unidle_cache_put_many(self._handle, table, len(entries)))
            if not through:  # somebody computes the first one; hold no claim while waiting for that
                key, rows, count, _ = entries[0]
                with self.claim(key) as claim:
                    self._checked(self._library.unidle_claim_put(self._handle, claim, rows, count))
            entries = entries[max(1, through) :]

    def _key(self, kind: int, text: bytes) -> bytes:
        key = ctypes.create_string_buffer(_KEY_BYTES)
        self._checked(self._library.unidle_cache_key_of(kind, text, len(text), key))
        return key.raw

    def _keys(self, part: int) -> Iterator[bytes]:
        keys = ctypes.c_void_p()
        count = self._checked(self._library.unidle_cache_keys(self._handle, part, keys))
        try:
            text = ctypes.string_at(keys, count * _KEY_BYTES)
        finally:
            self._library.unidle_data_free(keys)
        return (text[at : at + _KEY_BYTES] for at in range(0, len(text), _KEY_BYTES))

    @staticmethod
    def _checked(result: int) -> int:
        if result < 0:
            _native.raise_failure()
        return result


def _with_name(kind: int, text: bytes, arrays: Mapping[str, Any]) -> Arrays:
    if not hasattr(arrays, "keys"):
        found = f"{type(arrays).__module__}.{type(arrays).__qualname__}".replace("builtins.", "")
        raise UsageError(f"cache: expected a dict of named arrays, found {found} (e.g. {{'x': array}})")
    for name in arrays:
        if isinstance(name, str) and name.startswith(OWN):
            raise UsageError(f"array {name!r}: names that begin with {OWN!r} are taken")
    return {
        _OWN_NAMES[kind]: bytes_array(text),
        **arrays,
    }  # the name comes first, so that the index knows the entry is named


def _rows(arrays: Mapping[str, Any]) -> tuple:
    """Returns (array, shape) of each array for the library, and the objects that must live as long."""
    rows, keep = (_native.CacheArray * max(1, len(arrays)))(), []
    for row, (name, value) in zip(rows, arrays.items()):
        if not isinstance(name, str) or "\0" in name:
            raise UsageError(f"array {name!r}: expected a text as its name")
        array, dtype = as_stored(name, value)
        shape = (ctypes.c_uint64 * array.ndim)(*array.shape)
        keep.append((array, shape))
        row.name, row.dtype = name.encode(errors="surrogatepass"), dtype.encode()
        row.data, row.shape, row.axes = array.ctypes.data, shape, array.ndim
    return rows, keep


def _opened(path: str, durable: bool) -> Cache:
    return Cache(path, durable=durable)


def _require_name(name: Any) -> None:
    """Raises KeyError for an invalid name, as a dict does for a missing key."""
    if not isinstance(name, (str, bytes)):
        raise KeyError(name)


def _named(name: Any) -> tuple:
    if isinstance(name, str):
        return _NAME, name.encode(errors="surrogatepass")
    if isinstance(name, bytes):
        return _BYTES, name
    raise UsageError(f"cache: expected a str or bytes as name, found {type(name).__name__}")
