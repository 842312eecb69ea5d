"""One pass over a loader's batches, and what is done to a batch before it is handed out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Iterator, Tuple

from unidle import _tensors
from unidle.errors import UsageError

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
            raise UsageError("loader: another iteration was begun, or the loader was closed")
        try:
            batch, behind = self.stream.next()
            self._left -= 1
            self.loader._delivered((self._epoch, behind) if self._left else (self._epoch + 1, 0), self.stream)
            batch = finished(batch, self.loader)
        except StopIteration as error:  # which would end the epoch here, without a word
            raise RuntimeError("loader: the data set or a transform raised StopIteration") from error
        self._state = _GOES_ON
        return batch


def finished(batch: tuple, loader: Loader) -> Any:
    """With the source's transform and the loader's options done to it."""
    if loader._batched:
        rows = batch[1].shape[1]
        batch = (batch[0].reshape(rows, -1), *(field[0] for field in batch[1:]))
    transform = loader.source.transform
    if transform is not None:
        first = [transform(sample) for sample in batch[0]]
        batch = (_stack(first, loader.tensors), *batch[1:])
    if loader.device is not None:
        batch = _to_device(batch, loader.device)
    return batch if loader.batch_transform is None else loader.batch_transform(batch)


def _stack(samples: list, tensors: str) -> Any:
    if tensors == "torch":
        import torch

        return torch.stack([torch.as_tensor(sample) for sample in samples])
    return _tensors.numpy().stack(samples)


def _to_device(batch: Any, device: Any) -> Any:
    """All tensors in it, wherever they are; other things stay what they are."""
    import torch

    if isinstance(batch, dict):
        return {key: _to_device(value, device) for key, value in batch.items()}
    if isinstance(batch, (tuple, list)):
        moved = [_to_device(value, device) for value in batch]
        return type(batch)(*moved) if hasattr(batch, "_fields") else type(batch)(moved)
    if not isinstance(batch, torch.Tensor):
        return batch
    if torch.device(device).type == "cuda":
        batch = batch.pin_memory()
    return batch.to(device, non_blocking=True)
