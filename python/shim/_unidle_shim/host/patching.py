"""Replaces functions by patches that wrap them, and lists the patches."""

import sys
import types

from _unidle_shim.host import hidden_frames, native

in_place = []  # (owner, name) of each

_BUILTINS = (types.BuiltinFunctionType, types.MethodDescriptorType, types.WrapperDescriptorType)


def put(owner, name, ours):
    """Replaces owner.name by `ours`, which takes over its name, docstring and signature."""
    original = getattr(owner, name)
    hidden_frames.wraps(original)(ours)
    ours._torchdynamo_inline = original  # torch's compiler reads this one instead
    setattr(owner, name, ours)
    in_place.append((owner, name))
    home = sys.modules.get(getattr(original, "__module__", None))
    if getattr(home, name, None) is original:
        setattr(home, name, ours)  # pickle finds it by its name in that module


def around(owner, name, before, after):
    """Wraps owner.name: before(args, kwargs) runs before each call.

    If it returns None, nothing else is done. If it returns a list, the only item of the list is the result of
    the call. Anything else is passed to after(it, args, kwargs, result) when the call is over; the result is
    None if the call raised. `before` and `after` are entries, see guard.py.

    A function written in C gets a wrapper in C (python/native/stand_in.cpp), and none without that library.
    """
    original = getattr(owner, name, None)
    if original is None:
        return
    if not isinstance(original, _BUILTINS):
        return put(owner, name, _around(original, before, after))
    library = native.library()
    # The class itself, even if a base class defines the method: copy and pickle use its name in this class.
    of_class = owner if isinstance(owner, type) else None
    stand_in = library.stand_in(original, before, after, of_class) if library is not None else None
    if stand_in is not None:
        setattr(owner, name, stand_in)
        in_place.append((owner, name))


def _around(original, before, after):
    def stand_in(*args, **kwargs):
        seen = before(args, kwargs)
        if seen is None:
            return original(*args, **kwargs)
        if type(seen) is list:
            return seen[0]
        try:
            result = original(*args, **kwargs)
        except BaseException:
            after(seen, args, kwargs, None)
            raise
        after(seen, args, kwargs, result)
        return result

    return stand_in
