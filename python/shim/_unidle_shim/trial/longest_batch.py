"""In a trial with UNIDLE_LONGEST: makes the first batch of each loader from its longest samples.

The longest samples decide whether a batch size fits into memory, and a short run may not reach them.
"""

import itertools
import time

from _unidle_shim.host import guard
from _unidle_shim.host.guard import caught
from _unidle_shim.host.notes import write_line
from _unidle_shim.host.patching import put

_MOST_SAMPLES = 200000
_MOST_S = 5.0


def install():
    from torch.utils.data import dataloader

    Iterator = dataloader._BaseDataLoaderIter
    original = Iterator._next_index

    def _next_index(self):
        index = original(self)
        if self.__dict__.get("_unidle_begun") or guard.failed:
            return index
        self._unidle_begun = True
        try:
            return _longest(self, index)
        except BaseException as failure:
            caught(failure)
            return index

    put(Iterator, "_next_index", _next_index)


def _longest(iterator, index):
    """Returns as many indices as in `index`. An iterable dataset, or a loader without batches, offers no
    choice."""
    if not isinstance(index, (list, tuple)) or not index or iterator._dataset_kind != 0:
        return index
    found = _sizes(
        iterator._dataset,
        itertools.chain(index, *itertools.islice(iter(iterator._index_sampler), _MOST_SAMPLES)),
    )
    ordered = sorted(found, key=lambda one: -found[one])
    longest = ordered[: len(index)]
    if len(longest) < len(index) or found[longest[0]] == found[ordered[-1]]:
        return index
    write_line(
        '"type":"longest","samples":%d,"batch":%d,"longest":%d,"usual":%d'
        % (len(found), len(index), found[longest[0]], found[ordered[len(ordered) // 2]])
    )
    return longest


def _sizes(dataset, indices):
    """Index -> number of values in the sample."""
    found, until = {}, time.monotonic() + _MOST_S
    for index in itertools.islice(indices, _MOST_SAMPLES):
        if index not in found:
            found[index] = values_of(dataset[index])
        if time.monotonic() > until:
            break
    return found


def values_of(sample, depth=0):
    shape = getattr(sample, "shape", None)
    if isinstance(shape, tuple):
        count = 1
        for extent in shape:
            count *= extent
        return count
    if isinstance(sample, (str, bytes)):
        return len(sample)
    if depth > 4:
        return 1
    if hasattr(sample, "values") and hasattr(sample, "keys"):
        sample = list(sample.values())
    if isinstance(sample, (list, tuple)):
        return (
            len(sample)
            if sample and isinstance(sample[0], (int, float))
            else sum(values_of(part, depth + 1) for part in sample)
        )
    return 1
