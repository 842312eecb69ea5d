"""One pass over a loader's batches, including their preparation for the program."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, Iterator, Optional, Tuple

from unidle import _tensors
from unidle.data.device import Copies, Copy, mapped
from unidle.data.frameworks import EpochEnd
from unidle.errors import Error, UsageError

if TYPE_CHECKING:
    from unidle.data.loader import Loader


class Iteration:
    """The iterator of `for batch in loader`. Skips a batch that fails: the next call returns the following
    one, as with torch's DataLoader."""

    _epoch_end: Optional[EpochEnd] = None

    def __init__(self, loader: Loader, stream: Any, number: int) -> None:
        self.loader, self.stream = loader, stream
        self._number, self._epoch = number, 0
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
            self.loader._ended(self._number, self._epoch)
            raise StopIteration
        self._check()
        try:
            copies = self.loader._copies
            taken = self._next() if copies is None else self._next_on_device(copies)
            batch = self._transformed(taken.batch)
        except StopIteration as error:  # it would silently end the epoch here
            raise RuntimeError("loader: the data set or a transform raised StopIteration") from error
        is_last = self._left == 0 and self._ahead is None
        self.loader._delivered(self._epoch, None if is_last else taken.behind, taken.skipped)
        if is_last and self._epoch_end is not None:
            self._epoch_end.end_of_dataloader = True
        return batch

    def _check(self) -> None:
        if not self.loader._follows(self._number, self.stream):
            raise UsageError("loader: another iteration was begun, or the loader was closed")

    def _begin(self) -> None:
        """Starts at the first batch, not at creation: frameworks create iterators that they never use, or
        before they set the epoch."""
        self._check()
        start, self.stream, self._epoch_end = self.loader._begun()
        self._epoch = start[0]
        self._left = 0 if self.loader._is_over(start) else self.stream.left
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
        return _Taken(found, self.stream.skipped_before + self.stream.skipped, self.loader)

    def _next(self) -> _Taken:
        taken = self._take()
        if self.loader.device is not None:
            taken.batch = mapped(taken.batch, lambda tensor: tensor.to(self.loader.device, non_blocking=True))
        return taken

    def _next_on_device(self, copies: Copies) -> _Taken:
        self.loader._check_process()
        taken, self._ahead = self._ahead, None
        if taken is None:
            taken = self._take()
        # The stream's facts describe the next batch once that is taken.
        self.loader._extents = self.loader._extents_of(self.stream)
        taken.batch = copies.deliver(taken.copy or copies.begin(taken.batch))
        if self._left > 0 and self.loader.source.transform is None:  # a transform would delay the step
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

    def _transformed(self, batch: Any) -> Any:
        transform = self.loader.batch_transform
        return batch if transform is None else transform(batch)


class _Taken:
    """A batch taken from the stream, and its copy to the device once started."""

    __slots__ = ("batch", "behind", "copy", "skipped")

    def __init__(self, found: Tuple[Any, int], skipped: int, loader: Loader) -> None:
        self.behind = found[1]
        self.skipped = skipped  # samples so far, including this batch
        self.batch = prepared(found[0], loader)
        self.copy: Optional[Copy] = None


def prepared(batch: tuple, loader: Loader) -> tuple:
    """Returns the batch in its final form, with the source's transform applied."""
    if loader._batched:
        rows = batch[1].shape[1]
        batch = (batch[0].reshape(rows, -1), *(field[0] for field in batch[1:]))
    transform = loader.source.transform
    if transform is not None:
        first = [transform(sample) for sample in batch[0]]
        batch = (_stack(first, loader.tensors, loader._pins), *batch[1:])
    return batch


def _stack(samples: list, tensors: str, pin: bool) -> Any:
    if tensors != "torch":
        return _tensors.numpy().stack(samples)
    import torch

    samples = [torch.as_tensor(sample) for sample in samples]
    if not pin or len({(one.dtype, one.shape, one.device.type) for one in samples}) > 1:
        return torch.stack(samples)
    first = samples[0]
    place = torch.empty((len(samples), *first.shape), dtype=first.dtype, device="cpu", pin_memory=True)
    return torch.stack(samples, out=place) if first.device.type == "cpu" else torch.stack(samples)
