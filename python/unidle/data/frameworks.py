"""What frameworks expect of torch's DataLoader besides batches: a sampler with set_epoch(), the parts for
another DataLoader, and a notification at the end of an epoch."""

from __future__ import annotations

import functools
import itertools
import sys
from typing import Any, Callable, Iterator, List, Optional

from unidle.data.source import Source


class EpochSetter:
    """The object on which frameworks look for set_epoch()."""

    def __init__(self, loader: DataLoaderParts) -> None:
        self._loader = loader

    def set_epoch(self, epoch: int) -> None:
        self._loader.set_epoch(epoch)


class BatchSampler(EpochSetter):
    """For code that builds a DataLoader from a loader's dataset, batch_sampler and collate_fn, like
    accelerate's skip_first_batches. Yields functions that return the batches, so that a skipped batch is
    never made."""

    def __len__(self) -> int:
        return len(self._loader)

    def __iter__(self) -> Iterator[Callable[[], Any]]:
        taken: List[Iterator[Any]] = []

        def take(number: int) -> Any:
            if not taken:
                self._loader._skip(number)
                taken.append(iter(self._loader))
            return next(taken[0])  # the DataLoader raises StopIteration itself

        return (functools.partial(take, number) for number in itertools.count())


class DataLoaderParts:
    """The DataLoader attributes from which frameworks build another one."""

    source: Source

    def __len__(self) -> int:
        raise NotImplementedError

    def __iter__(self) -> Iterator[Any]:
        raise NotImplementedError

    def set_epoch(self, epoch: int) -> None:
        raise NotImplementedError

    def _skip(self, batches: int) -> None:
        raise NotImplementedError

    @property
    def dataset(self) -> Source:
        return self.source

    @property
    def sampler(self) -> EpochSetter:
        return EpochSetter(self)

    @property
    def batch_sampler(self) -> BatchSampler:
        return BatchSampler(self)

    @staticmethod
    def collate_fn(batch: Any) -> Any:
        """Returns the batch unchanged: elements of `batch_sampler` give whole batches."""
        return batch

    prefetch_factor = None  # so that the other one starts no processes
    _is_accelerate_prepared = True  # Accelerator.prepare_data_loader() then leaves it unchanged


class EpochEnd:
    """Represents an iteration in accelerate's GradientState, like its own loaders: at the end of an epoch
    Accelerator.accumulate() steps the optimizer, and gather_for_metrics() drops repeated samples. Does
    nothing in a program without an Accelerator."""

    def __init__(self, remainder: int) -> None:
        """`remainder`: rows of the last batch of all ranks without repeated samples; 0 and -1: see
        Loader."""
        self.end_of_dataloader = False  # accelerate reads both
        self.remainder = remainder

    def enter(self) -> None:
        state = _gradient_state()
        if state is not None:
            state._add_dataloader(self)

    def leave(self) -> None:
        state = _gradient_state()
        if state is not None and any(one is self for one in state.dataloader_references):
            state._remove_dataloader(self)


def _gradient_state() -> Optional[Any]:
    kind = getattr(sys.modules.get("accelerate.state"), "GradientState", None)
    return kind() if kind is not None and kind._shared_state else None
