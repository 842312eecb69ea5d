"""Finds out whether a dataset returns the same sample for an index in every epoch, from digests of a few
samples.

The same few indices are chosen in every process. Their samples are inspected when the program makes them;
nothing is made twice. If an index gives a different sample each time (random crop, augmentation), making it
again is not repeated work.
"""

import hashlib
import sys
import time

from _unidle_shim.host.exception_origin import pass_on
from _unidle_shim.loop.loop import now
from _unidle_shim.samples import packing

_thread_time = time.thread_time_ns

KEPT = 16  # indices that are inspected: those with the smallest hashes
COSTLY_NS = 200_000  # repeating a cheaper sample is too small a loss to report
_MOST_NS = 20_000_000  # of CPU time for one inspection: larger samples are skipped
_MASK = (1 << 64) - 1


def place_of(index):
    """A number that spreads the indices, the same in each process."""
    value = (index * 0x9E3779B97F4A7C15) & _MASK
    value ^= value >> 29
    return (value * 0xBF58476D1CE4E5B9) & _MASK


class Again:
    """The digests for one loader in one process. `spent_ns`: time spent here since `spent` was last
    called."""

    def __init__(self):
        self.known = {}  # index -> [digest, times it was equal later, times it differed]
        self.places = {}  # place -> index
        self.limit = _MASK
        self.spent_ns = 0
        self.on = True

    def look(self, index, sample):
        """The sample of this number was just made. Its making was costly, or it is known. Raises nothing."""
        place = place_of(index)
        if not self.on or place > self.limit:
            return
        begin, busy = now(), _thread_time()
        try:
            self._take(index, place, _digest(sample))
        except Exception as failure:
            pass_on(failure)
            self.on = False  # the sample contains something that cannot be serialised
        self.spent_ns += now() - begin
        self.on = self.on and _thread_time() - busy < _MOST_NS

    def _take(self, index, place, digest):
        known = self.known.get(index)
        if known is not None:
            known[1 if known[0] == digest else 2] += 1
            return
        self.known[index], self.places[place] = [digest, 0, 0], index
        if len(self.known) > KEPT:
            del self.known[self.places.pop(max(self.places))]
        if len(self.known) == KEPT:
            self.limit = max(self.places)

    def spent(self):
        spent, self.spent_ns = self.spent_ns, 0
        return spent

    def note(self):
        return (
            {str(index): list(told) for index, told in list(self.known.items())}
            if self.on and self.known
            else None
        )


def _digest(sample):
    if "numpy" not in sys.modules:
        raise TypeError("numpy is not there")
    return hashlib.blake2b(packing.packed(sample), digest_size=6).hexdigest()
