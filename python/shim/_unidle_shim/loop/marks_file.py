"""A memory-mapped file for the marks of steps (short_steps.py), so that they survive a killed process.

For its layout see stretches in docs/probe-format.md. A mark is one store into that memory, without a counter:
a mark that is 0 was never made. So marking costs no more than in private memory.
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
    """The file of one process. `times` (when each batch was requested and received), `sizes` and `stepped`
    hold 64-bit numbers."""

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
        """A stretch begins at step `step`. `each`: batches per step, or 0 to use the marks in `stepped`.
        `size`: samples per batch, or 0 to use the marks in `sizes`. The argument `stepped`: when the
        optimiser of the current step has stepped, 0 if it has not."""
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
        """Marks batch `number`. `asked` is stored last: while it is 0, there is no mark."""
        if number < MOST:
            self.sizes[number] = size
            self.times[2 * number + 1] = got
            self.times[2 * number] = asked

    def end(self):
        """Clears all marks, whose events are now written. Pages without a mark are not touched."""
        self._words[_OPEN] = 0
        for marks in (self.times, self.stepped):
            for begin in range(0, len(marks), _PAGE):
                if marks[begin]:
                    marks[begin : begin + _PAGE] = _ZEROS
