"""Another batch size for a DataLoader that exists. Not imported before torch."""

import weakref
from itertools import islice

from torch.utils.data import BatchSampler

from .sources import Unclear

_originals = weakref.WeakKeyDictionary()  # DataLoader -> its batch sampler, where it has another one now


class _First(BatchSampler):
    """Batches of another size, and of an epoch only so many where `most` is a number."""

    most = None

    def __iter__(self):
        return islice(super().__iter__(), self.most)

    def __len__(self):
        return super().__len__() if self.most is None else self.most


def original(real):
    """The program's own batch sampler."""
    sampler = _originals.get(real) or real.batch_sampler
    if type(sampler) is not BatchSampler or type(real.batch_size) is not int:
        raise Unclear("the DataLoader has a batch sampler of the program's own, or none")
    return sampler


def resize(real, size, most=None):
    """For iterators that begin from now on. `most`: batches of an epoch; None: all there are."""
    own = original(real)
    sampler = _First(own.sampler, size, own.drop_last)
    sampler.most = most
    _originals[real] = own
    _give(real, sampler, size)


def give_back(real):
    own = _originals.pop(real, None)
    if own is not None:
        _give(real, own, own.batch_size)


def _give(real, sampler, size):
    object.__setattr__(real, "batch_size", size)  # a DataLoader does not let them be set
    object.__setattr__(real, "batch_sampler", sampler)
    kept = getattr(real, "_iterator", None)
    if kept is not None:
        kept._index_sampler = sampler  # of workers that stay for the next epoch
