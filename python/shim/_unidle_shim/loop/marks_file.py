"""The marks of steps that go by light (short_steps.py), in a file that outlives a killed process:
docs/probe-format.md, stretches.

The marks themselves are written where they are made, with nothing beside them: one that is 0 was not made. So
a step costs what it would cost in memory of our own.
"""

import ctypes
import os

from _unidle_shim.host import probe
from _unidle_shim.host.notes import process_start

MOST = 4096  # marks of each kind
_MAGIC = 0x31525453444E5500
_HEADER_WORDS = 32
_OPEN, _STEP = 5, 6
_WORDS = _HEADER_WORDS + 4 * MOST
_PAGE = 512
_ZEROS = memoryview(bytes(8 * _PAGE)).cast("Q")


class Stretch:
    """Of one process. `times` (asked and got of each batch, by turns), `sizes` and `stepped` take 64-bit
    numbers."""

    def __init__(self):
        handle = probe.create("stretch", 8 * _WORDS)
        try:
            self.address = probe.map_file(handle, 8 * _WORDS)
        finally:
            os.close(handle)
        self._memory = (ctypes.c_char * (8 * _WORDS)).from_address(self.address)
        self._words = words = memoryview(self._memory).cast("B").cast("Q")
        self.times = words[_HEADER_WORDS : _HEADER_WORDS + 2 * MOST]
        self.sizes = words[_HEADER_WORDS + 2 * MOST : _HEADER_WORDS + 3 * MOST]
        self.stepped = words[_HEADER_WORDS + 3 * MOST :]
        self.times_address = self.address + 8 * _HEADER_WORDS
        words[1:5] = (
            memoryview((ctypes.c_uint64 * 4)(1, os.getpid(), process_start(), MOST)).cast("B").cast("Q")
        )
        words[0] = _MAGIC

    def begin(self, step, parts, each, size, usual_samples, usual_batches, stepped):
        """From here on marks are of the steps from `step` on. `each`: batches of a step, 0: `stepped` tells;
        `size`: of a batch, 0: `sizes` tells; `stepped`: when the optimiser of the step under way has stepped,
        if it has."""
        self.end()
        words = self._words
        for number, value in enumerate(
            (
                step,
                parts.begin,
                parts.input,
                parts.samples,
                parts.fetches,
                each,
                size,
                usual_samples,
                usual_batches,
                stepped,
            )
        ):
            words[_STEP + number] = max(0, int(value))
        words[_OPEN] = 1

    def mark(self, number, asked, got, size=0):
        """Of batch `number`. `asked` comes last: where it is 0 there is no mark."""
        if number < MOST:
            self.sizes[number] = size
            self.times[2 * number + 1] = got
            self.times[2 * number] = asked

    def end(self):
        """All that is marked is told of. No page is written that holds no mark."""
        self._words[_OPEN] = 0
        for marks in (self.times, self.stepped):
            for begin in range(0, len(marks), _PAGE):
                if marks[begin]:
                    marks[begin : begin + _PAGE] = _ZEROS
