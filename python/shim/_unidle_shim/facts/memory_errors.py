"""Out-of-memory errors. A program may catch them, and continue with smaller batches."""

import threading

from _unidle_shim.host import hidden_frames
from _unidle_shim.host.guard import caught, value_or_none

_WORDS = (
    "out of memory",
    "can't allocate memory",
    "_STATUS_ALLOC_FAILED",
)  # of devices, hosts, and libraries; failure_line.cpp knows these and more in logs
_PLAIN = (str, int, float, bytes)


class MemoryErrors:
    def __init__(self, state):
        self.state = state
        self.count, self.message = 0, None
        self.samples = 0  # in the largest batch that did not fit
        self.steps = 0  # before the newest error
        self.newest = None  # arguments of the newest error, kept so that no other error gets the same object

    def look_at(self, error):
        """Counts the error if memory ran out, and returns whether it is."""
        if error is None:
            return False
        words = value_or_none(str, error) or ""
        says_so = isinstance(error, MemoryError) or _says_so(error, words[:1000])
        if says_so:
            self.count_one(words, error.args)
        return says_so

    def count_one(self, words, arguments):
        """Counts an error once, even if it is seen when it is made, when it passes by, and when it is
        caught."""
        if arguments is self.newest and arguments:
            return
        self.newest = arguments if all(type(one) in _PLAIN for one in arguments) else None
        self.count += 1
        self.message = words[:500]
        loop = self.state.loop
        if loop is not None and threading.get_ident() == self.state.thread:
            loop.look_up()
            self.samples = max(self.samples, loop.drop_batch() or loop.usual_samples)
            self.steps = loop.steps + (loop.held is not None)

    def note(self):
        if not self.count:
            return None
        return {
            "type": "memory",
            "oom": self.count,
            "message": self.message,
            "samples": self.samples or None,
            "steps_before": self.steps,
        }


def _says_so(error, words):
    kind = type(error).__name__
    return "OutOfMemory" in kind or isinstance(error, RuntimeError) and any(each in words for each in _WORDS)


def watch(state):
    """Counts every torch.OutOfMemoryError: a program may catch one before a patched call sees it."""
    kind = getattr(state.torch, "OutOfMemoryError", None) or getattr(
        state.torch.cuda, "OutOfMemoryError", None
    )
    if kind is None or "__init__" in kind.__dict__:
        return  # before torch 1.13 it is a RuntimeError
    original = kind.__init__

    def init(self, *args, **kwargs):
        original(self, *args, **kwargs)
        try:
            if state.loop is not None:
                state.facts.memory.look_at(self)
        except BaseException as failure:
            caught(failure)

    kind.__init__ = hidden_frames.wraps(original)(init)
