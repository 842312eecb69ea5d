"""Functions whose results are kept in a cache."""

from __future__ import annotations

import functools
import hashlib
import inspect
import os
import threading
import warnings
from typing import Any, Callable, Dict, Iterable, Optional, Tuple, Union

from unidle._cache import _KEY, Cache
from unidle._entry_arrays import Arrays
from unidle._keys.arguments import encoded
from unidle._keys.code import Code
from unidle._results import flattened, put_together
from unidle.errors import UsageError

_computing = threading.local()
_CHECKED_CALLS = 3  # the first calls are checked for changing their own key
_registered: Dict[Tuple[str, str, str], bytes] = {}  # (cache, name, version) -> the function's code


def cached(
    cache: Union[Cache, str, "os.PathLike[str]"],
    version: Union[str, int],
    *,
    ignore: Iterable[str] = (),
    name: Optional[str] = None,
) -> Callable[[Callable], Callable]:
    """A decorator: calls the function once for the same arguments, in whichever process comes first.

        @unidle.cached("features", version=1)
        def distances(sequence, cutoff=8.0):
            ...

    cache    a Cache, or the folder of one
    version  change it when the function's result changes although neither its code nor its arguments do;
             entries of the old version stay, but are no longer found
    ignore   arguments that do not affect the result (a device, a model that `version` stands for)
    name     identifies the function; by default its module and qualified name, or the file of a script. A
             lambda needs a name

    Arguments may be None, numbers, texts, bytes, arrays, tensors, paths (their text, not the file's
    contents), dates, enums, data classes, and tuples, lists, sets and dicts of these. Passing them by
    position, by name or as defaults is equivalent. Variables of an enclosing function count as arguments;
    they may be functions, which count by their code and the values they hold. Anything else raises UsageError
    with the argument's name; nothing is ever keyed by its id or its repr().

    The code counts as well: that of the function and of the program's functions it calls, with the numbers,
    texts, lists, dicts and arrays of its module that it reads. Not counted are module values that cannot be
    keyed (a model, an open file), values that the function itself changes, and libraries: change `version`
    for these. After a change of its code, a function finds no old results. Two functions with one name and
    different code keep separate results, with a warning.

    The result may be an array (of numbers, texts, dates), tensor, number, text, bytes, None, or lists, tuples
    and dicts of these. Arrays are returned read-only, mapped from the cache; tensors are copies. The first
    caller gets the same as all others. Exceptions reach the caller and are not cached. The function should be
    pure: its side effects happen only once.
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
        self._what, self._code, self._checked_calls = name or _name_of(function), Code(function), 0
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
        """Returns the encoded arguments and enclosing variables, by their names in messages."""
        parts = {}
        for name, value in arguments.items():
            if name not in self._ignore:
                what = f"argument {name}"
                parts[what] = encoded("", name) + encoded(f"{self._function.__qualname__}: {what}", value)
        for name, value in self._code.free_values():
            what = f"enclosing variable {name}"
            key = encoded(f"{self._function.__qualname__}: {what}", value, code=True)
            parts[what] = encoded("", name) + key
        return parts

    def __call__(self, args: Tuple, kwargs: dict) -> Any:
        key = self.key(args, kwargs)
        arrays = self._cache.find(_KEY, key)
        if arrays is None:
            held = _computing.__dict__.setdefault("keys", set())
            if key in held:  # it calls itself with the same arguments: let it
                return self._function(*args, **kwargs)
            held.add(key)
            try:
                arrays = self._cache.computed(key, lambda claim: self._store(claim, args, kwargs))
            finally:
                held.discard(key)
        return put_together(arrays)

    def held_by_wrapper(self) -> Tuple:
        """What identifies a cached function when another one refers to it."""
        return self._what, self._version, tuple(sorted(self._ignore)), self._function

    def _store(self, claim: int, args: Tuple, kwargs: dict) -> Tuple[bool, Arrays]:
        if self._checked_calls < _CHECKED_CALLS:
            self._checked_calls += 1
            result = self._checked_call(args, kwargs)
        else:
            result = self._function(*args, **kwargs)
        arrays = flattened(self._function.__qualname__, result)
        return self._cache.put(claim, arrays), arrays

    def _checked_call(self, args: Tuple, kwargs: dict) -> Any:
        """Warns once when the function changes what its key is made of: its result may never be found
        again, and a cached call does not repeat the change."""
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
            changed = ["a variable of its module"]
        if changed:
            self._checked_calls = _CHECKED_CALLS
            warnings.warn(
                f"unidle.cached: {self._what} changes {changed[0]} while it runs, a part of its key: the "
                "result may not be found again, and a call that finds a result does not repeat the change",
                stacklevel=2,
            )
        return result

    def _register(self) -> None:
        """Warns about two functions with one name, usually a mistake."""
        place = os.path.realpath(self._cache.path), self._what, self._version
        code = self._code.own()
        if _registered.setdefault(place, code) != code:
            _registered[place] = code
            warnings.warn(
                f"unidle.cached: {self._what} was cached before in this process with different code; "
                "the two keep separate results (if they are two functions, pass name= to tell them apart)",
                stacklevel=4,
            )


def _refuse_others(function: Any) -> None:
    if isinstance(function, (staticmethod, classmethod)):
        raise UsageError(f"cached: found a {type(function).__name__}; put cached below it")
    if not inspect.isfunction(function):
        raise UsageError(
            f"cached: expected a function, found {function!r} (for a partial, a bound method or a callable "
            "object write a function that calls it, with what it depends on as arguments)"
        )
    if inspect.iscoroutinefunction(function) or inspect.isgeneratorfunction(function):
        raise UsageError(
            f"cached: {function.__qualname__} is a coroutine or a generator; expected a function that "
            "returns its result"
        )


def _name_of(function: Callable) -> str:
    if function.__name__ == "<lambda>":
        raise UsageError(
            "cached: a lambda has no name of its own; expected a function made with def, or a name "
            '(cached(cache, version, name="..."))'
        )
    # In processes that it spawns, multiprocessing runs the main program under another name; the function must
    # have the same name in all of them. sys.modules may lack that module while it runs.
    if function.__module__ not in ("__main__", "__mp_main__"):
        return f"{function.__module__}.{function.__qualname__}"
    main = function.__globals__
    spec = main.get("__spec__")
    if spec is not None:  # python -m
        return f"{spec.name}.{function.__qualname__}"
    return f"{os.path.realpath(main.get('__file__') or '')}:{function.__qualname__}"
