"""How a loader turns what its stream gives into the batch that the program gets."""

from __future__ import annotations

from typing import Any, Callable, Optional

from unidle import _tensors
from unidle.data.device import Copies, is_gpu, mapped
from unidle.data.source import Source


class Delivery:
    """The form and the place of a loader's batches."""

    def __init__(self, source: Source, tensors: str, device: Any) -> None:
        self.source = source
        self.tensors = tensors  # "torch" or "numpy"
        self.device = device  # None: host memory
        self.on_gpu = is_gpu(device)
        self.batch_transform: Optional[Callable[[tuple], Any]] = None
        self.pins = False  # batches are made in page-locked memory, or pinned
        self.copies: Optional[Copies] = None  # for a GPU, once it is set up
        self.batched: bool = source.facts.get("batched", False)
        self._has_extents = not self.batched and any(field.ragged for field in source.fields)
        self.extents = self._no_extents()  # of the last batch copied to a GPU

    def set_up(self) -> None:
        """Makes the stream for copies to the GPU, if batches go there."""
        if self.on_gpu and self.copies is None:
            self.copies = Copies(self.device)

    def close(self) -> None:
        """Drops pending copies."""
        if self.copies is not None:
            self.copies.close()

    def _no_extents(self) -> tuple:
        return (None,) * len(self.source.fields)

    def extents_of(self, stream: Any) -> tuple:
        """Returns `Loader.extents` of the stream's last batch."""
        if not self._has_extents:
            return self._no_extents()
        fields = enumerate(self.source.fields)
        return tuple(stream.extents(number) if field.ragged else None for number, field in fields)

    def prepared(self, batch: tuple) -> tuple:
        """Returns the batch in its final form, with the source's transform applied."""
        if self.batched:
            rows = batch[1].shape[1]
            batch = (batch[0].reshape(rows, -1), *(field[0] for field in batch[1:]))
        transform = self.source.transform
        if transform is not None:
            first = [transform(sample) for sample in batch[0]]
            batch = (_stack(first, self.tensors, self.pins), *batch[1:])
        return batch

    def placed(self, batch: Any) -> Any:
        """Returns the batch on a device that has no stream for copies."""
        if self.device is None:
            return batch
        return mapped(batch, lambda tensor: tensor.to(self.device, non_blocking=True))

    def transformed(self, batch: Any) -> Any:
        return batch if self.batch_transform is None else self.batch_transform(batch)


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
