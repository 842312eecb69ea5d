"""What the program does before it calls a loader or a model: looks at the stack of the main thread from the
start of Python on.

The pauses between two looks grow with the time that has passed, and each look counts for the time since the
one before: a start of an hour needs hardly more of them than one of ten seconds.

Since 3.12 Python warns of a fork in a process with several threads. There the thread ends before each fork
and starts again after it. Exceptions that the program's signal handlers raise within a hook of os.fork are
lost, so all other hooks are functions in C, in which no handler runs.
"""

import _signal
import _thread
import atexit
import functools
import os
import sys
import time

from _unidle_shim.host import exception_origin, places, threads
from _unidle_shim.host.guard import off

_FIRST_S, _LEAST_S, _SHARE = 0.2, 0.05, 0.01
_MOST_PLACES = 500
_MOST_FORKS = 50
# 3.13 counts threads only after the hooks of a fork, and warns of ours.
_GOES_ON = sys.version_info[:2] != (3, 13)
_HELPERS = ("from multiprocessing.resource_tracker", "from multiprocessing.forkserver")  # processes of Python
_LEAVES_S, _ENDS_S = 30.0, 0.1
_FORKS_WARN = sys.version_info >= (3, 12)
_nothing = (bool, (), {}, None)  # the state of a functools.partial
_after_fork = functools.partial(*_nothing[:1])
_watches = []  # none or one
since_ns = 0  # when observation began, if that was not with the process

# A program may replace these.
_allocate_lock, _monotonic, _sleep = _thread.allocate_lock, time.monotonic, time.sleep


class Thread:
    """How others end a thread of the watch."""

    def __init__(self):
        self.wake, self.left = _allocate_lock(), _allocate_lock()
        self.gone, self.id = False, None
        self.wake.acquire()
        self.left.acquire()

    def end(self, within_s):
        """Returns whether it looks no more. May be called again, by several threads at once, too, and after a
        call that an exception of the program's left."""
        try:
            self.wake.release()
        except RuntimeError:  # released already
            pass
        if not self.gone and self.left.acquire(True, within_s):
            self.left.release()
        return self.gone

    def wait_for_end(self):
        """Waits until it has ended for the system, too."""
        until = _monotonic() + _ENDS_S
        while os.path.exists("/proc/self/task/%s" % self.id) and _monotonic() < until:
            _sleep(0.0001)


class Watch:
    def __init__(self):
        self.thread = _thread.get_ident()
        self.seconds = {}  # what places.of_start says -> seconds
        self.running = []  # none or one Thread; more if several threads fork at once
        self.starting = []
        self.forks = 0
        self.seen = self.begin = _monotonic()

    def start(self):
        self.prepare()
        threads.start_thread(self.run)

    def prepare(self):
        one = Thread()
        self.starting.append(one)
        self.running.append(one)

    def stop(self, within_s):
        """Returns whether its threads have ended, for the system, too. May be called again, as Thread.end."""
        for one in list(self.running):
            ended = one.end(within_s)
            if ended:
                one.wait_for_end()
            if one in self.running:
                self.running.remove(one)
            if not ended:
                return False
        return True

    def run(self):
        try:
            threads.block_signals()
            this = self.starting.pop(0)
        except BaseException:
            return
        try:
            this.id = _thread.get_native_id()
            # Nothing is allocated between two looks: a collection could begin with each allocation.
            wait, look, given = this.wake.acquire, self._look, (True, _FIRST_S)
            while not wait(*given):
                given = threads.without_collection(look)
        except BaseException as failure:
            _give_up(failure)
        finally:
            this.gone = True
            this.left.release()

    def _look(self):
        """Returns the arguments of the wait for the next look."""
        before, self.seen = self.seen, _monotonic()
        found = places.of_start(threads.stack_of(self.thread))
        if found in self.seconds or len(self.seconds) < _MOST_PLACES:
            self.seconds[found] = self.seconds.get(found, 0.0) + self.seen - before
        return True, max(_LEAST_S, _SHARE * (self.seen - self.begin))


def _give_up(failure):
    """What an exception that leaves a thread would print is nothing of the program's. The two are its own
    limits."""
    try:
        if sys is not None and not isinstance(failure, (RecursionError, MemoryError)):
            off(failure)
    except BaseException:
        pass


def begin():
    """Called at the start of Python."""
    if any(word.startswith(_HELPERS) for word in getattr(sys, "orig_argv", ())):
        return
    if not _in_main_interpreter():
        return
    watch = Watch()
    watch.start()
    _watches.append(watch)
    atexit.register(_at_exit)
    if _FORKS_WARN:
        os.register_at_fork(before=_before_fork, after_in_parent=_after_fork)
    os.register_at_fork(after_in_child=_watches.clear)


def _in_main_interpreter():
    """The other interpreters of a process end while our thread may still need theirs: a crash."""
    asked = getattr(_thread, "_is_main_interpreter", None)  # since 3.13
    if asked is not None:
        return asked()
    try:
        used = _signal.set_wakeup_fd(-1)
    except ValueError:
        return False
    if used != -1:
        _signal.set_wakeup_fd(used)
    return True


def end():
    """Ends it. Returns the seconds by place once, nothing the next time."""
    _after_fork.__setstate__(_nothing)
    if not _watches:
        return {}
    watch = _watches.pop()
    watch.stop(_LEAVES_S)
    return watch.seconds


def _at_exit():
    try:
        end()
    except BaseException:  # the limit of recursion may be that of the program; nothing is left to interrupt
        pass


def _before_fork():
    then = _nothing
    try:
        try:
            _pause()
        except BaseException as failure:
            then = _raised_again(failure)
            _pause()
        if _watches and then is _nothing:
            then = _gone_on(_watches[0])
    except BaseException:
        pass
    _after_fork.__setstate__(then)


def _pause():
    for watch in list(_watches):
        if not watch.stop(_ENDS_S):
            watch.forks = _MOST_FORKS


def _gone_on(watch):
    watch.forks += 1
    if watch.forks > _MOST_FORKS or not _GOES_ON:
        return _nothing
    watch.prepare()
    return threads.start_new_thread, (watch.run, ()), {}, None


def _raised_again(failure):
    """What happens after the fork, if the program's handler of a signal has raised an exception: the signal
    comes again."""
    number = exception_origin.signal_of(failure)
    return _nothing if number is None else (_thread.interrupt_main, (number,), {}, None)
