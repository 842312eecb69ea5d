"""Replaces a function of the program, for every holder of a reference to it, by exchanging its code
object."""

import inspect
import types
import weakref

from _unidle_shim.host import signatures

_RUNS_LATER = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


_originals = weakref.WeakKeyDictionary()  # function that is replaced now -> itself as it was


def original_of(function):
    """The function as the program wrote it, for those who read its code."""
    return _originals.get(function, function)


def why_not(code):
    """None if a function with that code can be replaced, otherwise the reason why not."""
    if code.co_flags & _RUNS_LATER:
        return "it is a generator or a coroutine"
    return "it is a closure" if code.co_freevars else None


class Stub:
    """Until it is restored, calls of the function run `handler(args, kwargs)`. REQUIRES: why_not(its code) is
    None."""

    def __init__(self, function, handler):
        self.function, self.code = function, function.__code__
        self.original = types.FunctionType(
            self.code, function.__globals__, function.__name__, function.__defaults__
        )
        self.original.__kwdefaults__, self.original.__qualname__ = (
            function.__kwdefaults__,
            function.__qualname__,
        )
        signature = signatures.signature_of(function)

        def stub(*args, _unidle=None, **kwargs):
            return _unidle(args, kwargs)

        function.__code__ = stub.__code__.replace(co_name=self.code.co_name)
        function.__kwdefaults__ = {"_unidle": handler}
        function.__signature__ = signature
        _originals[function] = self.original

    def give_back(self):
        if self.function.__code__ is not self.code:
            self.function.__code__ = self.code
            self.function.__kwdefaults__ = self.original.__kwdefaults__
            del self.function.__signature__
            _originals.pop(self.function, None)
