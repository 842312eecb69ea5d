"""Distinguishes the program's exceptions from those of our own code."""

import sys
from _signal import SIGINT as _SIGINT

from _unidle_shim.host import hidden_frames

_OURS_WITHOUT_WORDS = (StopIteration, MemoryError, RecursionError, AssertionError, EOFError)


def pass_on(failure):
    """Re-raises the program's exceptions. For our `except` clauses in which a failure of ours must not end
    the observation (guard.caught is for failures that do)."""
    if is_programs(failure):
        session = sys.modules.get("_unidle_shim.session")
        if session is not None:
            session.interrupted()
        raise failure


def is_programs(failure):
    """Whether our code did not cause it: a signal handler raised it meanwhile, or another thread set it
    (PyThreadState_SetAsyncExc), which leaves it without a message."""
    if isinstance(failure, KeyboardInterrupt):
        return True
    trace, foreign = failure.__traceback__, False
    while trace is not None:
        frame = trace.tb_frame
        if not frame.f_code.co_filename.startswith(hidden_frames.MARK):
            foreign = True
            if _handles_signal(frame):
                return True
        trace = trace.tb_next
    if foreign:
        return False  # raised by a function that we called
    return not isinstance(failure, Exception) or not (
        failure.args or isinstance(failure, _OURS_WITHOUT_WORDS)
    )


def signal_of(failure):
    """The signal whose handler has raised it while our code ran; None if none has."""
    trace = failure.__traceback__
    while trace is not None:
        if _handles_signal(trace.tb_frame):
            return next(one for one in _given(trace.tb_frame) if type(one) is int)
        trace = trace.tb_next
    return _SIGINT if isinstance(failure, KeyboardInterrupt) else None


def _handles_signal(frame):
    """A signal handler receives the signal's number and the frame that it interrupts. A traceback may lack
    that frame: imports remove theirs."""
    interrupted, given = frame.f_back, _given(frame)
    return (
        interrupted is not None
        and any(one is interrupted for one in given)
        and any(type(one) is int for one in given)
    )


def _given(frame):
    """The arguments of the call."""
    code = frame.f_code
    given = [frame.f_locals.get(name) for name in code.co_varnames[: code.co_argcount + 1]]
    return given + [one for each in given if type(each) is tuple for one in each]
