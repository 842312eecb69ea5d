"""Batches of the native library, from one position of its order."""

from __future__ import annotations

import ctypes
import threading
import weakref
from typing import Any, Optional, Tuple

from unidle import _native, _tensors
from unidle.data import options as check
from unidle.data import orders
from unidle.data.device import PinnedMemory
from unidle.data.source import Source, Wrapped
from unidle.errors import UsageError

_LIMIT_MS = 100  # between checks for signals while waiting for a batch


class NativeStream:
    """A native loader that starts at one position."""

    def __init__(
        self,
        source: Source,
        order: orders.Order,
        options: dict,
        place: Tuple[int, int],
        tensors: str,
        skipped: int,
        memory: Optional[PinnedMemory] = None,
        hands_out: bool = False,
    ) -> None:
        """`hands_out`: the program owns batches in `memory` from then on, so they must not be overwritten."""
        self._library = _native.library()
        text = check.encode("loader", options)
        lender = _native.Lender() if memory is None else memory.lender
        self._memory = memory
        self._handle = self._library.unidle_loader_open_ordered(source._handle, text, order.handle, lender)
        if not self._handle:
            _native.raise_failure()
        # Its inputs and output memory must live until the native loader is closed, which also happens when
        # this object is destroyed.
        self._release = weakref.finalize(self, _close, self._library, self._handle, (source, order, memory))
        if memory is not None:
            memory.check()
        self._asked = threading.Lock()  # held while asking the library for a batch
        self._closed = False
        self.workers = self._library.unidle_loader_workers(self._handle)
        self.place = place  # of the next batch
        self.gone = 0  # batches that were taken or skipped after failing
        self.skipped = 0
        self.skipped_before = skipped
        self._samples = order.samples
        self._world = options["world"]
        self.per_epoch = self._library.unidle_loader_batches_per_epoch(self._handle)
        # Batches until the end of the next one's epoch.
        self.left = self._library.unidle_loader_batches_in_first_epoch(self._handle)
        self._count = source.item_fields if isinstance(source, Wrapped) else len(source.fields)
        self._fields = (ctypes.c_void_p * self._count)()
        self._facts = _native.Facts()
        self._convert = _tensors.to_torch if tensors == "torch" else _tensors.to_numpy
        if memory is not None and hands_out:
            self._convert = memory.handed_out

    def next(self, wait: bool = True) -> Optional[Tuple[tuple, int]]:
        """Returns the batch and the number of its epoch's samples delivered so far on all ranks. Without
        `wait`, returns None unless it is ready. A batch that fails is skipped; without `wait`, it stays
        the next one."""
        if not self._asked.acquire(blocking=False):
            raise UsageError(
                "loader: another thread, or the code that a signal broke into, waits for a batch of it"
            )
        try:
            return self._next(_LIMIT_MS if wait else 0)
        finally:
            self._asked.release()
            if self._closed:
                self._release()

    def work(self) -> Tuple[int, int, int, int]:
        """Returns the cost of samples so far: their number, ns of all threads, ns of the slowest, ns of
        CPU time. Call from the consumer thread."""
        costs = _native.Costs()
        if self._closed or self._library.unidle_loader_work(self._handle, costs) < 0:
            return 0, 0, 0, 0
        return costs.samples, costs.busy_ns, costs.slowest_ns, costs.cpu_ns

    def stages(self) -> Tuple[int, ...]:
        """Returns the ns that all threads have spent so far on reading files, decoding pictures,
        transforming them, and the rest."""
        spent = (ctypes.c_int64 * 4)()
        if self._closed or self._library.unidle_loader_stages(self._handle, spent) < 0:
            return 0, 0, 0, 0
        return tuple(spent)

    def pace(self) -> Tuple[int, int]:
        """Returns the number of active threads, and the current prefetch limit in batches."""
        pace = _native.Pace()
        if self._closed or self._library.unidle_loader_pace_now(self._handle, pace) < 0:
            return 0, 0
        return pace.workers, pace.depth

    def extents(self, field: int) -> Any:
        """Returns the first extent of each sample of the last batch in this field, as an int64 array; None
        if it does not vary."""
        first = ctypes.POINTER(ctypes.c_int64)()
        count = self._library.unidle_loader_extents(self._handle, field, first) if not self._closed else 0
        return _tensors.numpy().ctypeslib.as_array(first, (count,)).copy() if count > 0 else None

    def close(self) -> None:
        """May be called from a signal handler or another thread while a batch is awaited: that wait then
        ends."""
        self._closed = True
        if self._asked.acquire(blocking=False):
            self._asked.release()
            self._release()

    def _next(self, limit_ms: int) -> Optional[Tuple[tuple, int]]:
        done = self._facts.samples = 0
        self._fields[:] = [None] * self._count
        try:
            while not done:
                if self._closed:
                    raise UsageError("loader: it was closed")
                done = self._library.unidle_loader_next(self._handle, limit_ms, self._fields, self._facts)
                if done < 0:
                    self._fail(pass_over=limit_ms != 0)
                if not done and not limit_ms:
                    return None
            behind = self._advance()
            addresses = list(self._fields)
        except BaseException:
            self._drop()
            raise
        batch = []
        try:
            while addresses:
                batch.append(self._convert(addresses.pop(0)))
        finally:
            for address in addresses:  # after a failed conversion
                _tensors.release(address)
        if self._memory is not None:
            self._memory.check()
        return tuple(batch), behind

    def _fail(self, pass_over: bool) -> None:
        """Raises the library's error. If the batch's samples caused it, skips to the next batch."""
        try:
            _native.raise_failure()
        finally:
            if pass_over and self._library.unidle_loader_pass_over(self._handle, self._facts) > 0:
                self._advance()

    def _drop(self) -> None:
        """Skips the batch that the library has handed out when a signal handler raised, if there is one."""
        if self._facts.samples > 0:
            self._advance()
        for address in filter(None, self._fields):
            _tensors.release(address)

    def _advance(self) -> int:
        """Counts the batch that the facts describe. Returns its epoch's samples so far, on all ranks."""
        facts = self._facts
        behind = min(facts.epoch_offset + facts.samples * self._world, self._samples)
        facts.samples = 0  # no calls from here on, so that no signal handler runs in between
        self.skipped = facts.skipped
        self.gone += 1
        self.left -= 1
        self.place = (facts.epoch, behind)
        if self.left == 0:
            self.left, self.place = self.per_epoch, (facts.epoch + 1, 0)
        return behind


def _close(library: Any, handle: int, keep: Any) -> None:
    library.unidle_loader_close(handle)
    del keep
