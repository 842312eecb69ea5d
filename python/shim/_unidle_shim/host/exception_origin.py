"""Tells exceptions of the program from exceptions of our own code."""

import sys

from _unidle_shim.host import hidden_frames

_OURS_WITHOUT_WORDS = (StopIteration, MemoryError, RecursionError, AssertionError, EOFError)


def pass_on(failure):
    """To be called from an `except` clause of ours, where a failure of ours means less than the end of the
    observation (for that there is guard.caught): raises what is the program's."""
    if is_programs(failure):
        session = sys.modules.get("_unidle_shim.session")
        if session is not None:
            session.interrupted()
        raise failure


def is_programs(failure):
    """It did not come of what our code does. Raised by a signal handler that ran meanwhile, or set by another
    thread, which then has no words (PyThreadState_SetAsyncExc)."""
    if isinstance(failure, KeyboardInterrupt):
        return True
    trace, before, foreign = failure.__traceback__, None, False
    while trace is not None:
        frame = trace.tb_frame
        if not frame.f_code.co_filename.startswith(hidden_frames.MARK):
            foreign = True
            if before is not None and _handles_signal(frame, before):
                return True
        before, trace = frame, trace.tb_next
    if foreign:
        return False  # raised by what we called
    return not isinstance(failure, Exception) or not (
        failure.args or isinstance(failure, _OURS_WITHOUT_WORDS)
    )


def _handles_signal(frame, interrupted):
    """A signal handler is given the frame that it interrupts."""
    for value in frame.f_locals.values():
        if value is interrupted or (type(value) is tuple and any(one is interrupted for one in value)):
            return True
    return False
