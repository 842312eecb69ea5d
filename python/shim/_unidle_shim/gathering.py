"""loader.gather: a batch of rows that are in memory is taken by one indexing operation, dataset[indices].

Nothing is assumed of the dataset. The first batches are made both ways, and the rows put together one by one have to be
the same to the byte; of each later batch two rows are made singly and compared. A dataset that cannot be indexed so, draws
random numbers or gives anything else is left as it is.
"""

import random

from . import packing
from .guard import pass_on
from .samples_kept import drew, random_states, restore

_NOT_THE_SAME = "rows fetched together are not the same as rows fetched singly"
_PROVED_WHOLE = 2     # batches that each process makes both ways
_ROWS_PER_PROOF = 2   # of each later batch
_ROWS_PER_TRY = 48


class Gathered:
    """What the dataset hands to the collate function: a batch that needs none."""

    __slots__ = ("batch",)

    def __init__(self, batch):
        self.batch = batch


class GatheredRows:
    """Stands for the dataset within one fetcher."""

    def __init__(self, dataset, collate, say):
        self.dataset, self._collate, self._say = dataset, collate, say
        self._batches = 0
        self._pick = random.Random(0)  # of its own: the program's generators are left alone
        self._off = False

    def __len__(self):
        return len(self.dataset)

    def __getitem__(self, index):
        return self.dataset[index]

    def __getitems__(self, indices):
        if self._off:
            return [self.dataset[index] for index in indices]
        singly = [self.dataset[index] for index in indices] if self._batches < _PROVED_WHOLE else None
        drawn = random_states()
        batch, why = self._gather(indices)
        why = why or self._differs(batch, indices, singly) or drew(drawn)
        restore(drawn)
        if why is not None:
            self._off = True
            self._say("refused", why)
            return singly or [self.dataset[index] for index in indices]
        self._batches += 1
        if self._batches == _PROVED_WHOLE:
            self._say("taken")
        return Gathered(batch)

    def _differs(self, batch, indices, singly):
        if singly is None:
            picked = sorted(self._pick.sample(range(len(indices)), min(_ROWS_PER_PROOF, len(indices))))
            batch, singly = rows_of(batch, picked), [self.dataset[indices[at]] for at in picked]
        return None if same(batch, self._collate(singly)) else _NOT_THE_SAME

    def _gather(self, indices):
        import numpy

        try:
            found = self.dataset[numpy.asarray(indices, dtype=numpy.int64)]
            return tensors(found, len(indices)), None
        except Exception as error:  # whatever the program's code raises when it is given many indices
            pass_on(error)
            return None, "the dataset cannot be asked for many rows at once (%s)" % type(error).__name__


def tried(loader, length):
    """(whether rows of its dataset can be fetched together, why not), before anybody asks for it. The first is None where that was
    not tried: only a dataset that does nothing but take rows is called when the program did not."""
    from torch.utils.data._utils.collate import default_collate

    from . import row_access

    why = why_not(loader)
    if why is not None:
        return False, why
    why = row_access.why_not(loader.dataset) if length else "its length is not known"
    if why is not None:
        return None, why
    stand_in = GatheredRows(loader.dataset, default_collate, None)
    for first in (0, length // 2):
        indices = [(first + 7 * number) % length for number in range(min(_ROWS_PER_TRY, length))]
        batch, why = stand_in._gather(indices)
        if why is None and not same(batch, default_collate([loader.dataset[index] for index in indices])):
            why = _NOT_THE_SAME
        if why is not None:
            return False, why
    return True, None


def tensors(value, count):
    """The batch as default_collate would hand it out. Raises ValueError for what is no row per index."""
    import numpy
    import torch

    if isinstance(value, tuple) and type(value) is tuple or isinstance(value, list):
        return [tensors(item, count) for item in value]
    if type(value) is dict:
        return {key: tensors(item, count) for key, item in value.items()}
    if isinstance(value, numpy.ndarray):
        value = torch.from_numpy(numpy.ascontiguousarray(value))
    if type(value) is not torch.Tensor or not value.dim() or value.shape[0] != count:
        raise ValueError("not a row for each index")
    return value.contiguous()


def rows_of(batch, picked):
    if isinstance(batch, list):
        return [rows_of(item, picked) for item in batch]
    if isinstance(batch, dict):
        return {key: rows_of(item, picked) for key, item in batch.items()}
    return batch[picked]


def same(one, other):
    """Equal in kind, type, shape, layout and bytes."""
    try:
        return packing.packed(one) == packing.packed(other)
    except TypeError:
        return False


def why_not(loader):
    from torch.utils.data._utils.collate import default_collate

    if not loader._auto_collation:
        return "the loader fetches whole batches already"
    if getattr(loader.dataset, "__getitems__", None) is not None:
        return "the dataset fetches whole batches already"
    if loader.collate_fn is not default_collate:
        return "the program has its own collate function"
    if not hasattr(type(loader.dataset), "__getitem__"):
        return "the dataset gives a stream, not rows by index"
    return None


def adapt(fetcher, say):
    from torch.utils.data._utils.collate import default_collate

    if not fetcher.auto_collation or fetcher.collate_fn is not default_collate or getattr(fetcher.dataset, "__getitems__", None):
        return False

    def collate(data):
        return data.batch if type(data) is Gathered else default_collate(data)

    fetcher.dataset = GatheredRows(fetcher.dataset, default_collate, say)
    fetcher.collate_fn = collate
    return True


