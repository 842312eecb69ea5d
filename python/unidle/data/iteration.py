"""One pass over a loader's batches, and what is done to a batch before it is handed out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Iterator, Optional, Tuple

from unidle import _tensors
from unidle.data.device import Copies, Copy, mapped
from unidle.errors import Error, UsageError

if TYPE_CHECKING:
    from unidle.data.loader import Loader

_NEW, _GOES_ON, _OVER = range(3)


class Iteration:
    """What `for batch in loader` asks for batches. Whatever it raises, it is over then, as a generator is."""

    def __init__(self, loader: Loader, stream: Any, number: int, start: Tuple[int, int]) -> None:
        self.loader, self.stream = loader, stream
        self._number, self._epoch, self._start = number, start[0], start
        self._left = 0  # batches that are still to come
        self._state = _NEW
        self._ahead: Optional[_Taken] = None  # the next batch, whose copy to the device is under way

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        state, self._state = self._state, _OVER
        if state == _OVER:
            raise StopIteration
        if state == _NEW:  # only now: frameworks make iterators that they never ask for a batch
            self._left = self.stream.left
            self.loader._begun(self._start)
        if self._left == 0:
            self.loader._ended(self._number, self._epoch)
            raise StopIteration
        if not self.loader._follows(self._number, self.stream):
            self._ahead = None
            raise UsageError("loader: another iteration was begun, or the loader was closed")
        try:
            copies = self.loader._copies
            batch = self._next() if copies is None else self._next_on_device(copies)
        except StopIteration as error:  # which would end the epoch here, without a word
            raise RuntimeError("loader: the data set or a transform raised StopIteration") from error
        self._state = _GOES_ON
        return batch

    def _next(self) -> Any:
        batch, behind = self.stream.next()
        self._delivers(behind)
        batch = prepared(batch, self.loader)
        if self.loader.device is not None:
            batch = mapped(batch, lambda tensor: tensor.to(self.loader.device, non_blocking=True))
        return self._transformed(batch)

    def _next_on_device(self, copies: Copies) -> Any:
        self.loader._check_process()
        taken, self._ahead = self._ahead, None
        if taken is None:
            taken = _Taken(self.stream.next(), self.loader)
        self._delivers(taken.behind)
        self.loader._extents = self.loader._extents_of(
            self.stream
        )  # which tells of the next batch when that is taken
        batch = copies.deliver(taken.copy or copies.begin(taken.batch))
        if self._left > 0 and self.loader.source.transform is None:  # which would hold up the step
            self._ahead = self._look_ahead(copies)
        return self._transformed(batch)

    def _look_ahead(self, copies: Copies) -> Optional[_Taken]:
        """The next batch, where it lies ready. What fails says so when the batch is due; what a signal
        handler of the program raises here is the program's."""
        import torch

        try:
            found = self.stream.next(wait=False)
        except Error:
            return None
        if found is None:
            return None
        taken = _Taken(found, self.loader)
        try:
            taken.copy = copies.begin(taken.batch)
        except torch.cuda.OutOfMemoryError:  # no memory for two batches
            pass
        return taken

    def _delivers(self, behind: int) -> None:
        self._left -= 1
        self.loader._delivered((self._epoch, behind) if self._left else (self._epoch + 1, 0), self.stream)

    def _transformed(self, batch: Any) -> Any:
        transform = self.loader.batch_transform
        return batch if transform is None else transform(batch)


class _Taken:
    """A batch that was taken of the stream, and its copy to the device once that is begun."""

    def __init__(self, found: Tuple[Any, int], loader: Loader) -> None:
        self.behind = found[1]
        self.batch = prepared(found[0], loader)
        self.copy: Optional[Copy] = None


def prepared(batch: tuple, loader: Loader) -> tuple:
    """In its form, with the source's transform done to it."""
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
