"""Threads of ours, and the stacks of the program's threads."""

import _signal
import _thread
import gc
import os
import sys

from _unidle_shim.host import places

# Signals that report a fault of the thread itself must never be blocked.
_NEVER_BLOCKED = {
    getattr(_signal, name)
    for name in ("SIGSEGV", "SIGBUS", "SIGFPE", "SIGILL", "SIGTRAP", "SIGSYS")
    if hasattr(_signal, name)
}
_INTERPRETERS = ("_interpreters", "_xxsubinterpreters")
_DEEPEST = 1000  # frames of a stack; Python's own limit, unless the program raises it
_BRIEF_S = 0.002
_registered = []
start_new_thread = _thread.start_new_thread  # gevent replaces it


def start_thread(function):
    """Runs `function` in a thread to which none of the program's signals are delivered: a signal that the
    program blocks in its own threads would be delivered there at once. Not a threading.Thread: the program
    would find it in threading.enumerate().

    A thread inherits the signal mask of its creator, which restores its own mask at once. Signals that arrive
    in between are delivered to the creator afterwards. All of this happens in C: a Python handler runs
    between two calls, when the mask is restored.
    """
    mask = _signal.pthread_sigmask(_signal.SIG_BLOCK, ())
    try:
        block_signals()
        start_new_thread(function, ())
    finally:
        _signal.pthread_sigmask(_signal.SIG_SETMASK, mask)


def block_signals():
    _signal.pthread_sigmask(_signal.SIG_BLOCK, set(_signal.valid_signals()) - _NEVER_BLOCKED)


def without_collection(function, *given):
    """Calls a brief function. Python collects garbage in the thread that happens to allocate when it is due;
    the program's destructors would run in ours. Nobody sees that collection is off meanwhile, because Python
    lets no other thread run within so short a time."""
    if not gc.isenabled() or sys.getswitchinterval() < _BRIEF_S:
        return function(*given)
    gc.disable()
    try:
        return function(*given)
    finally:
        gc.enable()


def stack_of(thread, library=None):
    """[(code, line)] of a thread's stack, the innermost first. No frame is kept: whoever lets go of it last
    destroys its variables, and the program's objects are not destroyed in our thread. With the part in C++,
    no other thread runs meanwhile.

    Of a very deep stack only the inner part: each look would hold up the program for long. Nothing if the
    program may have several interpreters: Python lists the frames of all of them, and another one's may be
    destroyed while we look."""
    if any(name in sys.modules for name in _INTERPRETERS):
        return []
    if library is not None:
        return library.stack_of(thread, _DEEPEST)
    return without_collection(_walk, thread)


def _walk(thread):
    stack, frame = [], sys._current_frames().get(thread)
    while frame is not None and len(stack) < _DEEPEST:
        stack.append((frame.f_code, places.line_of(frame)))
        frame = frame.f_back
    return stack


def register_at_fork(library):
    """Makes forks wait while a thread hands us Python's lock (native/prompt_lock.cpp). Once in a process."""
    if not _registered:
        _registered.append(library)
        os.register_at_fork(
            before=library.before_fork,
            after_in_parent=library.after_fork,
            after_in_child=library.after_fork_in_child,
        )
