"""Functions whose results are kept in a cache."""

from __future__ import annotations

import functools
import hashlib
import inspect
import os
import threading
from typing import Any, Callable, Iterable, Optional, Tuple, Union

from unidle._argument_keys import encoded
from unidle._cache import _KEY, Arrays, Cache
from unidle._results import put_together, taken_apart
from unidle.errors import UsageError

_computing = threading.local()


def cached(
    cache: Union[Cache, str, "os.PathLike[str]"],
    version: Union[str, int],
    *,
    ignore: Iterable[str] = (),
    name: Optional[str] = None,
) -> Callable[[Callable], Callable]:
    """A decorator: the function is called once for the same arguments, by whichever process comes first.

        @unidle.cached("features", version=1)
        def distances(sequence, cutoff=8.0):
            ...

    cache    a Cache, or the folder of one
    version  to be changed whenever the function would return something else; the entries of the old one stay
             and are no longer found
    ignore   arguments that the result does not depend on (a device, a model that `version` stands for)
    name     what the function is known by; its module and qualified name when None. A function of a script
             is known by the file of the script as well

    Arguments are None, numbers, texts, bytes, arrays, tensors, paths (by their text, not by what the file
    holds), dates, enums, data classes, and tuples, lists, sets and dicts of these; it does not matter
    whether they are given by position or by name, or left to their defaults. Values that an inner function
    has of the function around it count as arguments; these may be functions, which count by their code and by
    the values that they hold in turn. UsageError names an argument that is none of these; nothing is ever
    keyed by its id or its repr().

    The result may be an array, tensor, number, text, bytes, None, or lists, tuples and dicts of these. Arrays
    come back read-only, mapped from the cache; tensors are copies of the caller's. The first caller gets the
    same as all others. What the function raises goes to its caller and is not kept. The function should be
    pure: what it prints or changes happens once.
    """
    version_text = str(version)
    if version is None or not version_text:
        raise UsageError("cached: expected a version, a text or a number")

    def decorate(function: Callable) -> Callable:
        made = _Cached(function, cache, version_text, frozenset(ignore), name)

        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            return made(args, kwargs)

        wrapper.key = lambda *args, **kwargs: made.key(args, kwargs)  # type: ignore[attr-defined]
        return wrapper

    return decorate


class _Cached:
    def __init__(
        self, function: Callable, cache: Any, version: str, ignore: frozenset, name: Optional[str]
    ) -> None:
        if not inspect.isfunction(function):
            raise UsageError(f"cached: expected a function, found {function!r}")
        if inspect.iscoroutinefunction(function) or inspect.isgeneratorfunction(function):
            raise UsageError(
                f"cached: {function.__qualname__} gives its result bit by bit; expected one that returns it"
            )
        self._function, self._version, self._ignore = function, version, ignore
        self._what = name or _name_of(function)
        self._signature = inspect.signature(function)
        unknown = ignore - set(self._signature.parameters)
        if unknown:
            raise UsageError(f"cached: {function.__qualname__} has no argument {sorted(unknown)[0]!r}")
        self._cache = cache if isinstance(cache, Cache) else Cache(cache)

    def key(self, args: Tuple, kwargs: dict) -> bytes:
        bound = self._signature.bind(*args, **kwargs)
        bound.apply_defaults()
        parts = [encoded("", "unidle function"), encoded("", self._what), encoded("", self._version)]
        for name, value in bound.arguments.items():
            if name not in self._ignore:
                parts += encoded("", name), encoded(f"{self._function.__qualname__}: argument {name}", value)
        for name, value in self._free_values():
            what = f"{self._function.__qualname__}: {name} of the function around it"
            parts += encoded("", name), encoded(what, value, code=True)
        return hashlib.sha256(b"".join(parts)).digest()

    def __call__(self, args: Tuple, kwargs: dict) -> Any:
        key = self.key(args, kwargs)
        arrays = self._cache.find(_KEY, key)
        if arrays is None:
            held = _computing.__dict__.setdefault("keys", set())
            if key in held:  # it calls itself with the same arguments: its own affair
                return self._function(*args, **kwargs)
            held.add(key)
            try:
                arrays = self._cache.computed(key, lambda claim: self._store(claim, args, kwargs))
            finally:
                held.discard(key)
        return put_together(arrays)

    def held_by_wrapper(self) -> Tuple:
        """What a cached function is keyed by where another one holds it."""
        return self._what, self._version, tuple(sorted(self._ignore)), self._function

    def _store(self, claim: int, args: Tuple, kwargs: dict) -> Tuple[bool, Arrays]:
        arrays = taken_apart(self._function.__qualname__, self._function(*args, **kwargs))
        return self._cache.put(claim, arrays), arrays

    def _free_values(self) -> Iterable[Tuple[str, Any]]:
        names, cells = self._function.__code__.co_freevars, self._function.__closure__ or ()
        for name, cell in zip(names, cells):
            try:
                value = cell.cell_contents
            except ValueError:  # not set yet
                continue
            if value is not self._function and getattr(value, "__wrapped__", None) is not self._function:
                yield name, value


def _name_of(function: Callable) -> str:
    # multiprocessing runs the main program again in the processes that it spawns, under another name: the
    # function must have one name in all of them. sys.modules may lack that module while it runs.
    if function.__module__ not in ("__main__", "__mp_main__"):
        return f"{function.__module__}.{function.__qualname__}"
    main = function.__globals__
    spec = main.get("__spec__")
    if spec is not None:  # python -m
        return f"{spec.name}.{function.__qualname__}"
    return f"{os.path.realpath(main.get('__file__') or '')}:{function.__qualname__}"
