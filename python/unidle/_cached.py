"""Functions whose results are kept in a cache."""

from __future__ import annotations

import functools
import hashlib
import inspect
import os
import threading
import warnings
from typing import Any, Callable, Dict, Iterable, Optional, Tuple, Union

from unidle._argument_keys import encoded
from unidle._cache import _KEY, Cache
from unidle._code import Code
from unidle._entry_arrays import Arrays
from unidle._results import put_together, taken_apart
from unidle.errors import UsageError

_computing = threading.local()
_LOOKED_AT = 3  # calls after which it is asked whether the call has changed its own key
_registered: Dict[Tuple[str, str, str], bytes] = {}  # cache, name, version -> the code of the function


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
    version  to be changed when the function would return something else and neither its code nor its
             arguments say so; the entries of the old one stay and are no longer found
    ignore   arguments that the result does not depend on (a device, a model that `version` stands for)
    name     what the function is known by; its module and qualified name when None. A function of a script
             is known by the file of the script as well. A lambda has no name of its own and needs this one

    Arguments are None, numbers, texts, bytes, arrays, tensors, paths (by their text, not by what the file
    holds), dates, enums, data classes, and tuples, lists, sets and dicts of these; it does not matter
    whether they are given by position or by name, or left to their defaults. Values that an inner function
    has of the function around it count as arguments; these may be functions, which count by their code and by
    the values that they hold in turn. UsageError names an argument that is none of these; nothing is ever
    keyed by its id or its repr().

    The code counts as well: of the function, and of those of the program that it calls by names of its
    module, with the numbers, texts, lists, dicts and arrays that these names stand for. What cannot be keyed
    there (a model, an open file), what the function itself changes, and what libraries do is what `version`
    stands for. A changed function finds nothing of the old one. Two functions of one name and other code are
    kept apart, with a warning.

    The result may be an array (of numbers, texts, dates), tensor, number, text, bytes, None, or lists, tuples
    and dicts of these. Arrays come back read-only, mapped from the cache; tensors are copies of the caller's.
    The first caller gets the same as all others. What the function raises goes to its caller and is not kept.
    The function should be pure: what it prints or changes happens once.
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
        _refuse_others(function)
        self._function, self._version, self._ignore = function, version, ignore
        self._what, self._code, self._looked_at = name or _name_of(function), Code(function), 0
        self._signature = inspect.signature(function)
        unknown = ignore - set(self._signature.parameters)
        if unknown:
            raise UsageError(f"cached: {function.__qualname__} has no argument {sorted(unknown)[0]!r}")
        self._cache = cache if isinstance(cache, Cache) else Cache(cache)
        self._register()

    def key(self, args: Tuple, kwargs: dict) -> bytes:
        bound = self._signature.bind(*args, **kwargs)
        bound.apply_defaults()
        parts = [encoded("", "unidle function"), encoded("", self._what), encoded("", self._version)]
        parts += self._code.key(), *self._held(bound.arguments).values()
        return hashlib.sha256(b"".join(parts)).digest()

    def _held(self, arguments: Dict[str, Any]) -> Dict[str, bytes]:
        """The bytes of each argument and of each value of the function around it, by what it is."""
        parts = {}
        for name, value in arguments.items():
            if name not in self._ignore:
                what = f"argument {name}"
                parts[what] = encoded("", name) + encoded(f"{self._function.__qualname__}: {what}", value)
        for name, value in self._code.free_values():
            what = f"{name} of the function around it"
            key = encoded(f"{self._function.__qualname__}: {what}", value, code=True)
            parts[what] = encoded("", name) + key
        return parts

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
        if self._looked_at < _LOOKED_AT:
            self._looked_at += 1
            result = self._looked_at_call(args, kwargs)
        else:
            result = self._function(*args, **kwargs)
        arrays = taken_apart(self._function.__qualname__, result)
        return self._cache.put(claim, arrays), arrays

    def _looked_at_call(self, args: Tuple, kwargs: dict) -> Any:
        """A function that changes what its key is made of is never found again, or leaves something undone
        where its result is: that is told once."""
        bound = self._signature.bind(*args, **kwargs)
        bound.apply_defaults()
        before, code = self._held(bound.arguments), self._code.key()
        result = self._function(*args, **kwargs)
        try:
            after = self._held(bound.arguments)
        except UsageError:
            return result
        changed = [what for what, key in before.items() if after.get(what) != key]
        if not changed and self._code.key() != code:
            changed = ["what it reads of its module"]
        if changed:
            self._looked_at = _LOOKED_AT
            warnings.warn(
                f"unidle.cached: {self._what} changes {changed[0]} while it runs; a call that finds its "
                "result does not, and what changes in that way is part of the key",
                stacklevel=2,
            )
        return result

    def _register(self) -> None:
        """One name for two functions is mostly a mistake."""
        place = os.path.realpath(self._cache.path), self._what, self._version
        code = self._code.own()
        if _registered.setdefault(place, code) != code:
            _registered[place] = code
            warnings.warn(
                f"unidle.cached: {self._what} was cached before in this process, with other code; the "
                "results of the two are kept apart (another function is given another name by `name`)",
                stacklevel=4,
            )


def _refuse_others(function: Any) -> None:
    if isinstance(function, (staticmethod, classmethod)):
        raise UsageError(f"cached: found a {type(function).__name__}; expected it above, and cached below it")
    if not inspect.isfunction(function):
        raise UsageError(
            f"cached: expected a function, found {function!r} (for a partial, a bound method or an object "
            "that can be called: a function that calls it, with what it depends on as arguments)"
        )
    if inspect.iscoroutinefunction(function) or inspect.isgeneratorfunction(function):
        raise UsageError(
            f"cached: {function.__qualname__} gives its result bit by bit; expected one that returns it"
        )


def _name_of(function: Callable) -> str:
    if function.__name__ == "<lambda>":
        raise UsageError(
            "cached: a lambda has no name of its own; expected a function made with def, or a name "
            '(cached(cache, version, name="..."))'
        )
    # multiprocessing runs the main program again in the processes that it spawns, under another name: the
    # function must have one name in all of them. sys.modules may lack that module while it runs.
    if function.__module__ not in ("__main__", "__mp_main__"):
        return f"{function.__module__}.{function.__qualname__}"
    main = function.__globals__
    spec = main.get("__spec__")
    if spec is not None:  # python -m
        return f"{spec.name}.{function.__qualname__}"
    return f"{os.path.realpath(main.get('__file__') or '')}:{function.__qualname__}"
