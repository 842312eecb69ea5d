"""Threads of ours, and the stacks of the program's threads."""

import _signal
import _thread
import sys

from _unidle_shim.host import places

# Signals that report a fault of the thread itself must never be blocked.
_NEVER_BLOCKED = {
    getattr(_signal, name)
    for name in ("SIGSEGV", "SIGBUS", "SIGFPE", "SIGILL", "SIGTRAP", "SIGSYS")
    if hasattr(_signal, name)
}


def start_thread(function):
    """Runs `function` in a thread to which none of the program's signals are delivered: a signal that the
    program blocks in its own threads would be delivered there at once. Not a threading.Thread: the program
    would find it in threading.enumerate().

    A thread inherits the signal mask of its creator, which restores its own mask at once. Signals that arrive
    in between are delivered to the creator afterwards. All of this happens in C: a Python handler runs
    between two calls, when the mask is restored.
    """
    mask = _signal.pthread_sigmask(_signal.SIG_BLOCK, ())
    blocked = set(_signal.valid_signals()) - _NEVER_BLOCKED
    try:
        _signal.pthread_sigmask(_signal.SIG_BLOCK, blocked)
        _thread.start_new_thread(function, ())
    finally:
        _signal.pthread_sigmask(_signal.SIG_SETMASK, mask)


def stack_of(thread):
    """[(code, line)] of a thread's stack, the innermost first. No frame is kept: whoever lets go of it last
    destroys its variables, and the program's objects are not destroyed in our thread."""
    stack = []
    frame = sys._current_frames().get(thread)
    while frame is not None:
        stack.append((frame.f_code, places.line_of(frame)))
        frame = frame.f_back
    return stack
