"""What the program does before it calls a loader or a model: looks at the stack of the main thread from the
start of Python on.

The pauses between two looks grow with the time that has passed, and each look counts for the time since the
one before: a start of an hour needs hardly more of them than one of ten seconds.
"""

import _thread
import atexit
import os
import sys
import time

from _unidle_shim.host import places, threads
from _unidle_shim.host.guard import off, value_or_none

_FIRST_S, _LEAST_S, _SHARE = 0.2, 0.05, 0.01
_MOST_PLACES = 500
_MOST_FORKS = 50
_HELPERS = ("from multiprocessing.resource_tracker", "from multiprocessing.forkserver")  # processes of Python
_LEAVES_S, _ENDS_S = 30.0, 0.1
_watch = None


class Watch:
    def __init__(self):
        self.thread = _thread.get_ident()
        self.seconds = {}  # what places.of_start says -> seconds
        self.running = False
        self.forks = 0
        self.seen = self.begin = time.monotonic()

    def start(self):
        self.wake, self.left, self.id = _thread.allocate_lock(), _thread.allocate_lock(), None
        self.wake.acquire()
        self.left.acquire()
        threads.start_thread(self._run)
        self.running = True

    def stop(self):
        """Returns once the thread looks no more."""
        if self.running:
            self.running = False
            self.wake.release()
            self.left.acquire(True, _LEAVES_S)

    def wait_for_end(self):
        """Waits until the thread has ended for the system, too."""
        until = time.monotonic() + _ENDS_S
        while os.path.exists("/proc/self/task/%s" % self.id) and time.monotonic() < until:
            time.sleep(0.0001)

    def _run(self):
        try:
            self.id = _thread.get_native_id()
            pause = _FIRST_S
            while not self.wake.acquire(True, pause):
                self._look()
                pause = max(_LEAST_S, _SHARE * (self.seen - self.begin))
        except Exception as failure:
            if sys is not None:
                off(failure)
        finally:
            self.left.release()

    def _look(self):
        before, self.seen = self.seen, time.monotonic()
        found = places.of_start(threads.stack_of(self.thread))
        if found in self.seconds or len(self.seconds) < _MOST_PLACES:
            self.seconds[found] = self.seconds.get(found, 0.0) + self.seen - before


def begin():
    """Called at the start of Python."""
    global _watch
    if any(word.startswith(_HELPERS) for word in getattr(sys, "orig_argv", ())):
        return
    watch = Watch()
    watch.start()
    _watch = watch
    atexit.register(end)
    os.register_at_fork(
        before=lambda: value_or_none(_pause),
        after_in_parent=lambda: value_or_none(_go_on),
        after_in_child=lambda: value_or_none(_forget),
    )


def end():
    """Ends it. Returns the seconds by place once, nothing the next time."""
    global _watch
    watch, _watch = _watch, None
    if watch is None:
        return {}
    watch.stop()
    return watch.seconds


def _pause():
    """A fork: since 3.12 Python warns of one in a process with several threads."""
    if _watch is not None and _watch.running:
        _watch.stop()
        _watch.wait_for_end()


def _go_on():
    if _watch is not None:
        _watch.forks += 1
    if _watch is not None and _watch.forks <= _MOST_FORKS:
        _watch.start()


def _forget():
    global _watch
    _watch = None
