"""Keeping our own frames out of what the program shows: tracebacks and the places of warnings."""

import functools

from .places import MARK

# Python's warnings count no frames whose file name has "importlib" and "_bootstrap" in it when they look for the caller
# (stacklevel), so a warning from a wrapped function names the same line as without us. MARK has both.

_MACHINERY = "<frozen importlib"


def wraps(original):
    """Like functools.wraps, for a wrapper whose frames are hidden."""

    def decorate(wrapper):
        wrapper.__code__ = wrapper.__code__.replace(co_filename=MARK)
        try:
            functools.update_wrapper(wrapper, original)
        except AttributeError:
            pass
        return wrapper

    return decorate


def strip(trace):
    """The traceback without our frames, and without those of Python's import machinery that lead to them: Python leaves
    these out by itself where they lead straight to the module."""
    kept, hidden = [], False
    while trace is not None:
        name = trace.tb_frame.f_code.co_filename
        if name == MARK:
            while kept and kept[-1].tb_frame.f_code.co_filename.startswith(_MACHINERY):
                kept.pop()
            hidden = True
        elif not (hidden and name.startswith(_MACHINERY)):
            kept.append(trace)
            hidden = False
        trace = trace.tb_next
    for one, follower in zip(kept, kept[1:] + [None]):
        if one.tb_next is not follower:
            one.tb_next = follower
    return kept[0] if kept else None
