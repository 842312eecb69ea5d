"""Where a loader is in its epochs."""

from __future__ import annotations

import os
from typing import Any, Optional, Tuple

from unidle.data.frameworks import EpochEnd
from unidle.data.streams import Place, Streams
from unidle.errors import ForkedError


class Epochs:
    """The place of the next iteration and that of the last delivered batch, and the stream that is open."""

    def __init__(self, streams: Streams) -> None:
        self._streams = streams
        self._samples = streams.samples
        self.next: Place = (0, 0)  # where the next iteration starts
        self.place: Place = (0, 0)  # after the last delivered batch
        self.skipped = 0  # unreadable samples, over all epochs
        self.stream: Any = None  # a NativeStream or a ThreadedStream
        self._iterations = 0
        self._end: Optional[EpochEnd] = None  # of the newest started iteration
        self._process = os.getpid()

    def check_process(self) -> None:
        if self._process != os.getpid():
            raise ForkedError(
                "loader: was made before this process was forked, and its threads are in the parent (make "
                "source and loader in the process that uses them, or start processes by spawn)"
            )

    def is_over(self, place: Place) -> bool:
        """Whether the place is after the last batch of its epoch."""
        return place[1] == self._samples

    def set_epoch(self, epoch: int) -> None:
        if self.next[0] != epoch:
            self.next = (epoch, 0)
        self.place = self.next

    def skip(self, samples: int) -> None:
        """Skips the first samples of the next iteration's epoch. Keeps a place set by a state."""
        if self.next[1] == 0:
            self.next = self.place = (self.next[0], min(samples, self._samples))

    def opened(self) -> Any:
        """Returns the open stream, or opens that of the next iteration."""
        if self.stream is None:
            self.check_process()
            self._stream_at(self.next)
        return self.stream

    def _stream_at(self, place: Place) -> Any:
        begin = (place[0] + 1, 0) if self.is_over(place) else place
        if self.stream is None or self.stream.place != begin:
            self.open(begin)
        return self.stream

    def try_out(self) -> int:
        """Validates the loader's options. Opens the first stream, unless that has to set up a device or
        page-locked memory, which waits for the first batch. Returns the number of batches of an epoch."""
        if not self._streams.need_gpu:
            self.open((0, 0))
            return self.stream.per_epoch
        stream = self._streams.try_out()
        stream.close()
        return stream.per_epoch

    def open(self, place: Place) -> None:
        self.close()
        self.stream = self._streams.open(place, self.skipped)

    def close(self) -> None:
        if self.stream is not None:
            self.stream.close()
            self.stream = None
        self._streams.delivery.close()

    def iterate(self) -> Tuple[int, Any]:
        """Makes a new iteration the current one. Returns its number and its stream, which starts at once."""
        self.check_process()
        stream = self._stream_at(self.next)
        self.place = self.next
        self._iterations += 1
        return self._iterations, stream

    def begin(self) -> Tuple[Place, Any, EpochEnd]:
        """Starts an iteration at its first batch. Returns its place, its stream, and its end."""
        start = self.next
        stream = self._stream_at(start)
        self.next = (start[0] + 1, 0)
        if self._end is not None:  # from an abandoned iteration
            self._end.leave()
        self._end = EpochEnd(self._streams.remainder(start))
        return start, stream, self._end

    def follows(self, iteration: int, stream: Any) -> bool:
        """Whether this iteration is the newest, and its stream still open."""
        return iteration == self._iterations and stream is self.stream

    def delivered(self, epoch: int, behind: Optional[int], skipped: int) -> None:
        """Records a delivered batch. `behind`: its epoch's samples delivered so far; None after the last
        batch."""
        self.place = (epoch, self._samples if behind is None else behind)
        self.skipped = skipped

    def ended(self, iteration: int, epoch: int) -> None:
        if iteration == self._iterations:
            self.place = (epoch + 1, 0)
