"""Samples by number, from any storage."""

from __future__ import annotations

import ctypes
import json
import weakref
from typing import Any, Callable, Iterable, NamedTuple, Optional, Sequence, Tuple

from unidle import _native
from unidle.data import options as check

Transform = Callable[[Any], Any]


class Field(NamedTuple):
    """One tensor of a sample. For `ragged` fields, shape[0] is the maximum."""

    name: str
    dtype: str
    shape: Tuple[int, ...]
    ragged: bool


class Source:
    """Samples by number. Made by the functions of unidle.data.sources; thread-safe.

    len(source) is the number of samples; `fields` describes the tensors of each.
    """

    def __init__(self, handle: int, keep: Sequence[Any], transform: Optional[Transform] = None) -> None:
        library = _native.library()
        if not handle:
            _native.raise_failure()
        self._handle = handle
        self._keep = tuple(keep)  # must live as long as the native source
        self._close = weakref.finalize(self, _close, library, handle, self._keep)
        self.transform = transform
        text = library.unidle_source_describe(handle)
        if not text:
            _native.raise_failure()
        try:
            facts = json.loads(ctypes.string_at(text))
        finally:
            library.unidle_data_free(text)
        self.fields = tuple(
            Field(field["name"], field["dtype"], tuple(field["shape"]), field["ragged"])
            for field in facts.pop("fields")
        )
        self._samples_per_item = facts.pop("samples_per_item")
        self._samples = facts.pop("items") * self._samples_per_item
        self._run = facts.pop("run")  # consecutive samples that are fastest together; 0: no difference
        self._facts = facts

    def __len__(self) -> int:
        return self._samples

    def __getitems__(self, batch: Callable[[], Any]) -> Any:
        """Makes one batch of a loader's batch_sampler, for a DataLoader built from both."""
        return batch()

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError("a Source holds memory and files of its process: make it again in the other one")

    def __repr__(self) -> str:
        fields = ", ".join(f"{field.name} {field.dtype}{list(field.shape)}" for field in self.fields)
        return f"<unidle.data.Source of {self._samples} samples: {fields}>"

    @property
    def facts(self) -> dict:
        """Additional facts; see the function that made the source."""
        return dict(self._facts)

    @property
    def classes(self) -> list[str]:
        """The names of the classes, by number, if the source has classes."""
        return list(self._facts.get("classes", []))

    @property
    def class_to_idx(self) -> dict[str, int]:
        """The numbers of the classes, by name."""
        return {name: number for number, name in enumerate(self.classes)}

    def subset(self, items: Iterable[int]) -> Source:
        """Returns a source of these items only, in this order; items may repeat."""
        return Source(self._subset(items), (self,), self.transform)

    def _subset(self, items: Iterable[int]) -> int:
        if items is None:
            raise check.refuse("subset", "items", "a list", items)
        numbers = [
            check.whole("subset", "items", item, 0, len(self) - 1)
            for item in check.several("subset", "items", items) or []
        ]
        array = (ctypes.c_int64 * max(1, len(numbers)))(*numbers)
        return _native.library().unidle_source_subset(self._handle, array, len(numbers))


class Wrapped(Source):
    """A data set of the program, see wrap(). `dataset` is the original; `fields` is empty because its
    samples are unknown."""

    def __init__(self, handle: int, keep: Sequence[Any], dataset: Any, collate: Optional[Callable]) -> None:
        super().__init__(handle, keep)
        self.dataset = dataset
        self.collate = collate
        self.item_fields = len(self.fields)
        self.fields = ()

    def __repr__(self) -> str:
        return f"<unidle.data.Source of {len(self)} samples of {type(self.dataset).__name__}>"

    def subset(self, items: Iterable[int]) -> Wrapped:
        return Wrapped(self._subset(items), (self,), self.dataset, self.collate)


def _close(library: Any, handle: int, keep: Any) -> None:
    library.unidle_source_close(handle)
    del keep
