"""loader.gather: takes a batch of rows in memory with one indexing operation, dataset[indices].

Only a dataset whose code says that this gives the same rows is asked (samples/row_access.py). Still, the
first batches are made both ways, with one operation and row by row, and must be equal to the byte. In each
later batch two rows are fetched singly and compared, unless the dataset is torch's own of plain tensors.
"""

import random
import sys

from _unidle_shim.host import guard
from _unidle_shim.host.guard import caught
from _unidle_shim.host.shapes import sees_functions
from _unidle_shim.samples import own_state, row_access, subsets, whole_batches
from _unidle_shim.source.purity import drew, random_states, restore

_PROVED_WHOLE = 2  # batches that each process makes both ways
_ROWS_PER_PROOF = 2  # of each later batch


class Gathered:
    """A complete batch, passed by the dataset to the collate function."""

    __slots__ = ("batch",)

    def __init__(self, batch):
        self.batch = batch


class GatheredRows:
    """Replaces the dataset within one fetcher."""

    def __init__(self, dataset, collate, say):
        self.dataset, self._collate, self._say = dataset, collate, say
        self._base = subsets.base_of(dataset)
        self._arrays = None  # whose rows are taken, except of torch's own dataset of plain tensors
        self._batches = 0
        self._pick = random.Random(0)  # its own, to leave the program's generators alone
        self._off = False

    def __len__(self):
        return len(self.dataset)

    def __getitem__(self, index):
        return self.dataset[index]

    def __getitems__(self, indices):
        proving = batch = None
        try:
            if not self._off and not guard.failed and self._is_unchanged():
                proving = self._batches < _PROVED_WHOLE
                batch = None if proving else self._gathered(indices)
        except BaseException as failure:
            batch = caught(failure)
        if batch is not None:
            return Gathered(batch)
        singly = self._singly(indices)
        if proving:
            try:
                self._gathered(indices, singly)
            except BaseException as failure:
                caught(failure)
        return singly

    def _singly(self, indices):
        """As torch's fetcher takes them."""
        together = getattr(self.dataset, "__getitems__", None)
        return together(indices) if together else [self.dataset[index] for index in indices]

    def _is_unchanged(self):
        """Whether rows are taken by code that gives the same for many at once, from the arrays that the first
        batches were taken from."""
        torch = sys.modules["torch"]
        if sees_functions(torch) or getattr(torch._C, "_len_torch_dispatch_stack", int)():
            return self._refused(whole_batches.SEEN)
        same = whole_batches.are_torchs_own() and subsets.base_of(self.dataset) is self._base
        same = same and not whole_batches.gives_batches(self.dataset)
        if same and not whole_batches.is_tensors(self._base):
            arrays, _ = row_access.look(self._base)
            self._arrays = self._arrays or arrays
            same = arrays is not None and arrays == self._arrays
        return same or self._refused(whole_batches.CHANGED)

    def _refused(self, why):
        self._off = True
        self._say("refused", why)

    def _gathered(self, indices, singly=None):
        """The batch from one operation, compared with all of its rows, or with two that are fetched singly.
        None if it differs; then no more batches are gathered. Rows of plain tensors draw no numbers and run
        no code of the program: once proved, they are not compared again."""
        if singly is None and self._arrays is None:
            return whole_batches.gather(self.dataset, indices)[0]
        drawn, why = random_states(), ""
        try:
            batch, why = whole_batches.gather(self.dataset, indices)
            if why is None:
                why = self._differs(batch, indices, singly) or drew(drawn)
        finally:
            if why is not None:
                restore(drawn)
        if why is not None:
            return self._refused(why) if why else None
        self._batches += 1
        if self._batches == _PROVED_WHOLE:
            self._say("taken")
        return batch

    def _differs(self, batch, indices, singly):
        if singly is None:
            picked = sorted(self._pick.sample(range(len(indices)), min(_ROWS_PER_PROOF, len(indices))))
            batch, singly = whole_batches.rows_of(batch, picked), [self.dataset[indices[at]] for at in picked]
        same = whole_batches.same(batch, self._collate(singly))
        return None if same else whole_batches.NOT_THE_SAME


def adapt(fetcher, say):
    from torch.utils.data._utils.collate import default_collate

    if (
        not fetcher.auto_collation
        or not whole_batches.collates_as_torch(fetcher.collate_fn)
        or whole_batches.gives_batches(fetcher.dataset)
        or own_state.why(subsets.base_of(fetcher.dataset))
        or whole_batches.access_why_not(fetcher.dataset)
    ):
        return False

    def collate(data):
        return data.batch if type(data) is Gathered else default_collate(data)

    fetcher.dataset = GatheredRows(fetcher.dataset, default_collate, say)
    fetcher.collate_fn = collate
    return True
