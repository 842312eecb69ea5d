"""Keeping our own frames out of what the program shows: tracebacks and the places of warnings."""

import functools

from .places import MARK

# Python's warnings count no frames whose file name has "importlib" and "_bootstrap" in it when they look for the caller
# (stacklevel), so a warning from a wrapped function names the same line as without us. MARK has both.


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
    """The traceback without our frames."""
    while trace is not None and trace.tb_frame.f_code.co_filename == MARK:
        trace = trace.tb_next
    first = trace
    while trace is not None:
        follower = trace.tb_next
        while follower is not None and follower.tb_frame.f_code.co_filename == MARK:
            follower = follower.tb_next
        if follower is not trace.tb_next:
            trace.tb_next = follower
        trace = follower
    return first
