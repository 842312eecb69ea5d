"""loader.gather: takes a batch of rows in memory with one indexing operation, dataset[indices].

Nothing is assumed about the dataset. The first batches are made both ways, with one operation and row by row,
and must be equal to the byte. In each later batch two rows are fetched singly and compared, unless the
dataset is torch's own of plain tensors. A dataset that cannot be indexed this way, draws random numbers or
returns anything else is left unchanged.
"""

import random

from _unidle_shim.host import guard
from _unidle_shim.host.guard import caught
from _unidle_shim.samples import own_state
from _unidle_shim.samples.subsets import base_of
from _unidle_shim.samples.whole_batches import (
    NOT_THE_SAME,
    collates_as_torch,
    gather,
    gives_batches,
    is_tensors,
    rows_of,
    same,
)
from _unidle_shim.source import fingerprint, side_effects
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
        self._batches = 0
        self._pick = random.Random(0)  # its own, to leave the program's generators alone
        self._off = False
        self._held = None  # numbers held by the dataset after the last batch made only by the program's way

    def __len__(self):
        return len(self.dataset)

    def __getitem__(self, index):
        return self.dataset[index]

    def __getitems__(self, indices):
        proving = batch = None
        try:
            if not self._off and not guard.failed:
                proving = self._batches < _PROVED_WHOLE
                batch = None if proving else self._gathered(indices)
        except BaseException as failure:
            batch = caught(failure)
        if batch is not None:
            return Gathered(batch)
        singly = [self.dataset[index] for index in indices]
        if proving:
            try:
                if self._is_unchanged():
                    self._gathered(indices, singly)
            except BaseException as failure:
                caught(failure)
        return singly

    def _is_unchanged(self):
        """Whether the program's own batch left the dataset unchanged since the one before, so that ours does
        not change it either. The first one may open files."""
        before, self._held = self._held, fingerprint.of(side_effects.members(base_of(self.dataset)))
        if before is None:
            return False
        if before != self._held:
            self._off = True
            self._say("refused", "the dataset changes when it is asked for rows")
        return not self._off

    def _gathered(self, indices, singly=None):
        """The batch from one operation, compared with all of its rows, or with two that are fetched singly.
        None if it differs; then no more batches are gathered. Rows of plain tensors draw no numbers and run
        no code of the program: once proved, they are not compared again."""
        if singly is None and is_tensors(base_of(self.dataset)):
            return gather(self.dataset, indices)[0]
        drawn = random_states()
        try:
            batch, why = gather(self.dataset, indices)
            why = why or self._differs(batch, indices, singly) or drew(drawn)
        finally:
            restore(drawn)
        if why is not None:
            self._off = True
            self._say("refused", why)
            return None
        self._batches += 1
        if self._batches == _PROVED_WHOLE:
            self._say("taken")
        return batch

    def _differs(self, batch, indices, singly):
        if singly is None:
            picked = sorted(self._pick.sample(range(len(indices)), min(_ROWS_PER_PROOF, len(indices))))
            batch, singly = rows_of(batch, picked), [self.dataset[indices[at]] for at in picked]
        return None if same(batch, self._collate(singly)) else NOT_THE_SAME


def adapt(fetcher, say):
    from torch.utils.data._utils.collate import default_collate

    if (
        not fetcher.auto_collation
        or not collates_as_torch(fetcher.collate_fn)
        or gives_batches(fetcher.dataset)
        or own_state.why(base_of(fetcher.dataset))
    ):
        return False

    def collate(data):
        return data.batch if type(data) is Gathered else default_collate(data)

    fetcher.dataset = GatheredRows(fetcher.dataset, default_collate, say)
    fetcher.collate_fn = collate
    return True
