"""Makes samples of the program's own data set with Python threads."""

from __future__ import annotations

import functools
import os
import sys
import threading
import time
import warnings
import weakref
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Callable, Optional, Sequence, Tuple

from unidle import _tensors
from unidle.errors import ForkedError, UsageError


class LockWatch:
    """Finds out from the first samples whether threads can make samples faster.

    When all threads work and the interpreter lock serialises them, together they use one CPU, and wait for
    each other without being runnable. Waiting for a CPU (the machine is busy), reading files and sleeping
    look different.
    """

    ENOUGH_S = 0.5

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self.verdict: Optional[bool] = None  # of judge(), once there is enough data
        self._free = not getattr(sys, "_is_gil_enabled", lambda: True)()
        self._guard = threading.Lock()
        self._start = time.perf_counter()
        self._wall_s = self._cpu_s = 0.0
        self._samples = 0
        self._queued_s: dict = {}  # by thread, at its first sample
        self.done = threads < 2

    def make(self, function: Callable, argument: Any) -> Any:
        """Returns function(argument) and measures it."""
        if self.done:
            return function(argument)
        thread = threading.get_native_id()
        if thread not in self._queued_s:
            queued_s = _queued_s(thread)
            with self._guard:
                self._queued_s[thread] = queued_s
        wall, cpu = time.perf_counter(), time.thread_time()
        try:
            return function(argument)
        finally:
            self._count(time.perf_counter() - wall, time.thread_time() - cpu)

    def _count(self, wall_s: float, cpu_s: float) -> None:
        with self._guard:
            self._wall_s += wall_s
            self._cpu_s += cpu_s
            self._samples += 1
            elapsed_s = time.perf_counter() - self._start
            if self.done or elapsed_s < self.ENOUGH_S or self._samples < 4 * self.threads:
                return
            self.done = True
            queued_s = sum(_queued_s(thread) - before for thread, before in self._queued_s.items())
            self.verdict = not self._free and self.judge(
                self.threads, elapsed_s, self._wall_s, self._cpu_s, queued_s
            )

    @staticmethod
    def judge(threads: int, elapsed_s: float, wall_s: float, cpu_s: float, queued_s: float) -> Optional[bool]:
        """Returns whether the interpreter lock serialises the threads; None if unknown.

        wall_s and cpu_s: of all samples; queued_s: how long the threads were runnable without a CPU.
        """
        if wall_s < 0.75 * threads * elapsed_s:
            return False  # threads were idle: the consumer is slower
        if cpu_s < 0.8 * elapsed_s:
            return None if queued_s > 0.2 * wall_s else False  # they waited for something else
        if cpu_s > 1.25 * elapsed_s:
            return False
        return None if queued_s > 0.2 * wall_s else True


def _queued_s(thread: int) -> float:
    """Returns how long the thread was runnable without a CPU (proc(5), schedstat); 0 if the kernel does
    not report it."""
    try:
        with open(f"/proc/self/task/{thread}/schedstat") as file:
            return int(file.read().split()[1]) / 1e9
    except (OSError, IndexError, ValueError):
        return 0.0


class Work:
    """The cost of samples, over all threads."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self.samples = self.busy_ns = self.slowest_ns = self.cpu_ns = 0

    def make(self, function: Callable, count: int, argument: Any) -> Any:
        """Returns function(argument), which makes `count` samples."""
        wall, cpu = time.perf_counter_ns(), time.thread_time_ns()
        made = function(argument)
        wall, cpu = time.perf_counter_ns() - wall, time.thread_time_ns() - cpu
        with self._guard:
            self.samples += count
            self.busy_ns += wall
            self.cpu_ns += cpu
            self.slowest_ns = max(self.slowest_ns, wall // max(1, count))
        return made


class ThreadedStream:
    """Batches of a data set's samples; the counterpart of NativeStream.

    The order comes from a native stream of item numbers. Threads make samples, enough ahead to keep all of
    them busy but never beyond the epoch: changes that a program makes between epochs apply to the next.

    With `pin`, one more thread collates and pins batches, in order.
    """

    def __init__(
        self,
        items: Any,
        dataset: Any,
        collate: Callable,
        options: dict,
        watch: LockWatch,
        pin: Optional[Callable[[Any], Any]] = None,
    ) -> None:
        self._items = items  # stream of item numbers
        self._dataset = dataset
        self._collate = collate
        self.workers = options["workers"]
        batch = options["batch"]
        self._most_ahead = max(options["prefetch"], 1 + -(-2 * self.workers // batch))
        self._process = os.getpid()
        self._pool = ThreadPoolExecutor(self.workers, "unidle") if self.workers else None
        self._pin = pin
        self._pinning = ThreadPoolExecutor(1, "unidle-pin") if pin and self.workers else None
        for pool in filter(None, (self._pool, self._pinning)):
            weakref.finalize(self, _shut_down, pool, self._process)
        self._watch = watch
        self._work = Work()
        self._lock_bound = False  # threads wait for the interpreter lock while they make samples
        # (pending samples or batch, behind, place, left); None in place of the first: the batch was lost.
        self._ahead: deque = deque()
        self._closed = False
        self.place = items.place
        self.left = items.left
        self.gone = 0
        self.per_epoch = items.per_epoch
        self.skipped = 0
        self.skipped_before = items.skipped_before

    def next(self, wait: bool = True) -> Optional[Tuple[Any, int]]:
        """Returns the batch and the number of its epoch's samples delivered so far on all ranks. Without
        `wait`, returns None unless it is ready and pinned. A batch that fails is skipped."""
        if self._process != os.getpid():
            raise ForkedError(
                "loader: was made before this process was forked; make it in the process that uses it"
            )
        if self._closed:
            raise UsageError("loader: it was closed")
        try:
            return self._next(wait)
        except Exception:
            if self._closed:  # by another thread or a signal handler
                raise UsageError("loader: it was closed") from None
            raise

    def _next(self, wait: bool) -> Optional[Tuple[Any, int]]:
        if not wait and self._pinning is None:
            return None
        if not self._ahead:
            self._begin_batch()
        while len(self._ahead) < self._most_ahead and self._pool and not self._ends_epoch(self._ahead[-1]):
            self._begin_batch()
        if not wait and (not self._ahead[0][0].done() or self._ahead[0][0].exception()):
            return None
        under_way, behind, *_ = self._ahead[0]
        for one in [under_way] if isinstance(under_way, Future) else under_way:
            if isinstance(one, Future):
                one.exception()  # waits; a signal handler's exception is not the batch's
        try:
            batch = under_way.result() if isinstance(under_way, Future) else self._collated(under_way)
        except Exception:
            self._advance()
            raise
        self._advance()
        if self._watch.verdict:
            self._watch.verdict = False  # warn once
            self._lock_bound = True
            self._say()
        return batch, behind

    def _advance(self) -> None:
        """Counts the first pending batch, which was taken or skipped, and those after it that were lost."""
        while True:
            self.place, self.left = self._ahead.popleft()[2:]
            self.gone += 1
            if not self._ahead or self._ahead[0][0] is not None:
                return

    def _collated(self, under_way: list) -> Any:
        samples = [one.result() if isinstance(one, Future) else one() for one in under_way]
        batch = self._collate(samples[0] if self._whole_batches() else samples)
        return batch if self._pin is None else self._pin(batch)

    def _ends_epoch(self, batch: tuple) -> bool:
        return batch[2][1] == 0  # the next batch is the first of its epoch

    def _begin_batch(self) -> None:
        gone, begun = self._items.gone, len(self._ahead)
        try:
            self._ahead.append(self._begun())
        except BaseException:  # of a signal handler
            if self._items.gone > gone and len(self._ahead) == begun:
                self._ahead.append((None, 0, self._items.place, self._items.left))  # its batch is skipped
                if begun == 0:
                    self._advance()
            raise

    def _begun(self) -> tuple:
        """Returns the next batch, whose samples are being made."""
        (numbers,), behind = self._items.next()
        wanted: Sequence[Any] = numbers.tolist()
        make = self._dataset.__getitem__
        if self._whole_batches():
            wanted, make = [wanted], self._make_batch
        count = len(numbers) // max(1, len(wanted))  # samples made by one call
        timed = functools.partial(self._work.make, make, count)
        if self._pool is None:
            under_way = [functools.partial(timed, item) for item in wanted]
        else:
            under_way = [self._pool.submit(self._watch.make, timed, item) for item in wanted]
        batch = self._pinning.submit(self._collated, under_way) if self._pinning else under_way
        return batch, behind, self._items.place, self._items.left

    def _whole_batches(self) -> bool:
        return bool(getattr(self._dataset, "__getitems__", None))  # like torch's DataLoader

    def _make_batch(self, items: Sequence[int]) -> Sequence[Any]:
        samples = self._dataset.__getitems__(items)
        if len(samples) != len(items):
            raise UsageError(
                f"{type(self._dataset).__name__}.__getitems__: expected a sample for each of {len(items)} "
                f"items, found {len(samples)} samples"
            )
        return samples

    def work(self) -> Tuple[int, int, int, int]:
        """As in NativeStream. Waiting for the interpreter lock is not work."""
        work = self._work
        busy_ns = work.cpu_ns if self._lock_bound else work.busy_ns
        return work.samples, busy_ns, work.slowest_ns, work.cpu_ns

    def pace(self) -> Tuple[int, int]:
        """As in NativeStream; the number of threads is fixed."""
        return self.workers, self._most_ahead

    def stages(self) -> Tuple[int, ...]:
        """Unknown for a data set of the program."""
        return 0, 0, 0, 0

    def _say(self) -> None:
        warnings.warn(
            f"unidle.data.wrap: {self.workers} threads do the work of one processor together, because "
            f"{type(self._dataset).__name__}.__getitem__ holds the lock of the interpreter. Threads cannot "
            "make it faster: work on whole arrays (numpy, PIL), use a source of unidle.data, a "
            "free-threaded Python, or processes (torch's DataLoader).",
            RuntimeWarning,
            stacklevel=7,
        )

    def close(self) -> None:
        self._closed = True
        for pool in filter(None, (self._pool, self._pinning)):
            _shut_down(pool, self._process)
        self._ahead.clear()
        self._items.close()


def _shut_down(pool: ThreadPoolExecutor, process: int) -> None:
    if process == os.getpid():  # a forked process may have inherited locked locks
        pool.shutdown(wait=False, cancel_futures=True)


def default_collate(tensors: str) -> Callable[[list], Any]:
    """Returns torch's default_collate with tuples for lists; the same for numpy."""
    if tensors == "numpy":
        return _collate_numpy
    from torch.utils.data import default_collate as collate

    def collated(samples: list) -> Any:
        batch = collate(samples)
        return tuple(batch) if isinstance(batch, list) else batch

    return collated


def _collate_numpy(samples: list) -> Any:
    first = samples[0]
    if isinstance(first, dict):
        return {key: _collate_numpy([sample[key] for sample in samples]) for key in first}
    if isinstance(first, (tuple, list)):
        fields = [_collate_numpy(list(field)) for field in zip(*samples)]
        return type(first)(*fields) if hasattr(first, "_fields") else tuple(fields)
    if isinstance(first, (str, bytes)):
        return samples
    return _tensors.numpy().stack([_tensors.numpy().asarray(sample) for sample in samples])
