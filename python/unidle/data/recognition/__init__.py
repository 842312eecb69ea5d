"""Finds the source that gives the samples of a program's data set: `like(dataset)`.

A data set is recognised from its class and attributes, without asking it for a sample; like() then compares
samples. Whatever is uncertain is left to the user, in words.

Imports here are relative, and the rest of unidle is imported only within like(): `unidle run` looks at data
sets of programs that do not use this package.
"""

from __future__ import annotations

import sys
from typing import Any, Optional

from . import pictures, written
from .found import Found

__all__ = ["like", "recognize"]

_COMPARED = 3  # samples at the beginning, and the last one


def recognize(dataset: Any) -> Optional[Found]:
    """Returns what is known about a data set, or None. Makes no sample."""
    if _is_subset(dataset):
        return _part_of(dataset)
    return pictures.recognize(dataset) or written.recognize(dataset)


def like(dataset: Any) -> Any:
    """Returns a source with the samples of `dataset`, a map-style data set for torch:

        loader = Loader(like(train_dataset), batch_size=64)

    - torchvision's ImageFolder with RandomResizedCrop and RandomHorizontalFlip, or Resize and CenterCrop,
      then ToTensor and Normalize: `images`. Random values are drawn independently, by the same rules.
    - torchvision's MNIST and similar ones with ToTensor and Normalize: `arrays`, all pictures made once.
    - torch's TensorDataset, and classes whose __getitem__ takes rows of their arrays: `arrays`.
    - classes whose __getitem__ takes windows of their arrays: views, not copied.
    - torch's Subset of these.

    Compares the first samples and the last one unless they are random: different bytes are an error (for
    pictures, a difference of more than 1 of 255; versions of Pillow differ by 1). The arrays must not be
    changed afterwards.

    Raises UsageError that says what prevents it, and which source a person could use.
    """
    from unidle.errors import UsageError

    found = recognize(dataset)
    name = type(dataset).__name__
    if found is None:
        raise UsageError(f"like: what {name} does is not known (any map-style data set: wrap(dataset))")
    if found.left or found.open is None:
        raise UsageError(
            f"like: unidle.data.{found.source} can stand for {name}, but {'; '.join(found.left)}"
        )
    source = found.open()
    if len(source) != len(dataset):
        raise UsageError(f"like: {name} has {len(dataset)} samples, the source {len(source)}")
    if not found.random:
        _compare(dataset, source, found, name)
    return source


def _is_subset(dataset: Any) -> bool:
    kind = type(dataset)
    return kind.__name__ == "Subset" and kind.__module__ == "torch.utils.data.dataset"


def _part_of(dataset: Any) -> Optional[Found]:
    found = recognize(dataset.dataset)
    if found is None:
        return None
    whole = found.open
    return found.but(
        code=f"{found.code}.subset(indices)",
        open=None if whole is None else lambda: whole().subset(dataset.indices),
    )


def _compare(dataset: Any, source: Any, found: Found, name: str) -> None:
    from unidle.data.loader import Loader
    from unidle.errors import UsageError

    torch = sys.modules["torch"]
    numbers = sorted({*range(min(_COMPARED, len(source))), len(source) - 1})
    loader = Loader(source.subset(numbers), len(numbers), shuffle=False, workers=0, rank=0, world=1)
    with loader:
        ours = next(iter(loader))
    theirs = torch.utils.data.default_collate([dataset[number] for number in numbers])
    if not isinstance(theirs, (list, tuple)) or len(theirs) != len(ours):
        raise UsageError(f"like: a sample of {name} is no tuple of {len(ours)} tensors")
    for place, (one, other) in enumerate(zip(ours, theirs)):
        if not isinstance(other, torch.Tensor) or one.dtype != other.dtype or one.shape != other.shape:
            raise UsageError(
                f"like: tensor {place} of a sample of {name} is {_kind(other)}, of the source {_kind(one)}"
            )
        if not torch.allclose(one, other, rtol=0, atol=found.tolerance, equal_nan=True):
            raise UsageError(
                f"like: tensor {place} of the samples of {name} has other values than the source"
            )


def _kind(tensor: Any) -> str:
    return f"{getattr(tensor, 'dtype', type(tensor).__name__)} {list(getattr(tensor, 'shape', []))}"
