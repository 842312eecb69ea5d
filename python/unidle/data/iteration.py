"""One pass over a loader's batches."""

from __future__ import annotations

import contextlib
from typing import Any, Iterator, Optional

from unidle.data.delivery import Delivery
from unidle.data.device import Copies, Copy
from unidle.data.epochs import Epochs
from unidle.data.frameworks import EpochEnd
from unidle.errors import Error, UsageError


class Iteration:
    """The iterator of `for batch in loader`. Skips a batch that fails: the next call returns the following
    one, as with torch's DataLoader."""

    _epoch_end: Optional[EpochEnd] = None

    def __init__(self, epochs: Epochs, delivery: Delivery) -> None:
        self._epochs, self._delivery = epochs, delivery
        self._number, self.stream = epochs.iterate()
        self._epoch = 0
        self._left: Optional[int] = None  # batches left in the stream, once one was requested
        self._over = False
        self._ahead: Optional[_Taken] = None  # the next batch, being copied to the device

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        if self._over:
            raise StopIteration
        if self._left is None:
            self._begin()
        if self._left == 0 and self._ahead is None:
            self._over = True
            self._leave()
            self._epochs.ended(self._number, self._epoch)
            raise StopIteration
        self._check()
        try:
            copies = self._delivery.copies
            taken = self._next() if copies is None else self._next_on_device(copies)
            batch = self._delivery.transformed(taken.batch)
        except StopIteration as error:  # it would silently end the epoch here
            raise RuntimeError("loader: the data set or a transform raised StopIteration") from error
        is_last = self._left == 0 and self._ahead is None
        self._epochs.delivered(self._epoch, None if is_last else taken.behind, taken.skipped)
        if is_last and self._epoch_end is not None:
            self._epoch_end.end_of_dataloader = True
        return batch

    def _check(self) -> None:
        if not self._epochs.follows(self._number, self.stream):
            raise UsageError("loader: another iteration was begun, or the loader was closed")

    def _begin(self) -> None:
        """Starts at the first batch, not at creation: frameworks create iterators that they never use, or
        before they set the epoch."""
        self._check()
        start, self.stream, self._epoch_end = self._epochs.begin()
        self._epoch = start[0]
        self._left = 0 if self._epochs.is_over(start) else self.stream.left
        if self._left > 0:
            self._epoch_end.enter()

    def _leave(self) -> None:
        if self._epoch_end is not None:
            self._epoch_end.leave()

    def __del__(self) -> None:
        with contextlib.suppress(Exception):  # the interpreter may be shutting down
            self._leave()

    def _take(self, wait: bool = True) -> Optional[_Taken]:
        """Takes the next batch of the stream. A batch that fails there is not repeated."""
        before = self.stream.gone
        try:
            found = self.stream.next(wait)
        finally:
            self._left -= self.stream.gone - before
        if found is None:
            return None
        batch, behind = found
        return _Taken(
            self._delivery.prepared(batch), behind, self.stream.skipped_before + self.stream.skipped
        )

    def _next(self) -> _Taken:
        taken = self._take()
        taken.batch = self._delivery.placed(taken.batch)
        return taken

    def _next_on_device(self, copies: Copies) -> _Taken:
        self._epochs.check_process()
        taken, self._ahead = self._ahead, None
        if taken is None:
            taken = self._take()
        # The stream's facts describe the next batch once that is taken.
        self._delivery.extents = self._delivery.extents_of(self.stream)
        taken.batch = copies.deliver(taken.copy or copies.begin(taken.batch))
        if self._left > 0 and self._delivery.source.transform is None:  # a transform would delay the step
            self._ahead = self._look_ahead(copies)
        return taken

    def _look_ahead(self, copies: Copies) -> Optional[_Taken]:
        """Takes the next batch if it is ready. Its errors are raised when it is due; exceptions of signal
        handlers reach the program."""
        import torch

        try:
            taken = self._take(wait=False)
        except Error:
            return None
        if taken is None:
            return None
        try:
            taken.copy = copies.begin(taken.batch)
        except torch.cuda.OutOfMemoryError:  # no memory for two batches
            pass
        return taken


class _Taken:
    """A batch taken from the stream, and its copy to the device once started."""

    __slots__ = ("batch", "behind", "copy", "skipped")

    def __init__(self, batch: tuple, behind: int, skipped: int) -> None:
        self.batch = batch
        self.behind = behind  # its epoch's samples delivered with it
        self.skipped = skipped  # samples so far, including this batch
        self.copy: Optional[Copy] = None
