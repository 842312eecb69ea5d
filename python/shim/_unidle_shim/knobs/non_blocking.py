"""transfer.non_blocking: which copies to the device may overlap with the program.

A blocking copy is over when the call returns, for the host and for every stream. A non-blocking one is
correct if

- nobody writes into its source before it is over. The driver copies pageable memory before the call returns,
  except on machines whose GPUs read such memory in place. Pinned memory is kept alive here until the copy is
  over: torch would do so only for its own. A buffer that the program refills is not a valid source: such a
  program is correct only because the copy blocks;
- the stream that it runs on is the one that uses it, as the model's forward passes show.
"""

import ctypes
import platform
from collections import deque

from torch.multiprocessing.reductions import StorageWeakRef

from _unidle_shim.host import places
from _unidle_shim.host.shapes import hidden_queries

KNOB = "transfer.non_blocking"
_WATCHED = 8  # copies of a line that still block, until it is clear whether their sources are reused
_MOST_SOURCES = 4096
_MOST_KEPT = 16  # sources of copies in progress; the next copy blocks
# NVIDIA's machines of other kinds (Grace, POWER9) have page tables shared by CPU and GPU.
_TAKES_PAGEABLE_OVER = platform.machine() in ("x86_64", "AMD64")


class Sources:
    """The pinned memory from which lines of the program copy. If a source that was still kept is used again,
    it is a buffer, and its line is left alone from then on: torch does not see writes through NumPy, a
    pointer or another library."""

    def __init__(self, torch, say):
        self.torch = torch
        self.say = say
        self.seen = {}  # address -> weak reference to its storage
        self.lines = {}  # (code, line) -> copies so far; None: left alone
        self.stream = None  # stream of the newest copy
        self.model_stream = None
        self.of_model = False  # the model has used copied data on the same stream
        self.off = False
        self.kept = deque()  # (event, source) of copies in progress
        # Never freed: a forked process could not return such memory to torch.
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self.kept))

    def will_say(self):
        """Copies are being watched: the outcome of the knob is reported later."""
        return bool(self.lines)

    def may_go_on(self, tensor, frame):
        model = self.model_stream
        if self.off or not self.of_model or self.torch.cuda.current_stream(model.device.index) != model:
            return False
        line = places.of_frame(frame)
        count = self.lines.get(line, 0)
        if count is None:
            return False
        with hidden_queries(self.torch):
            if tensor.is_inference() or tensor._version != 0:
                return False  # written since it was made, according to torch
            if not tensor.is_pinned():
                return _TAKES_PAGEABLE_OVER
            came_again = self._came_again(tensor)
        if came_again:
            self.lines[line] = None
            where = places.text(*line) or "the program"
            why = "%s copies from the same pinned memory again, which may be filled while a copy is under way"
            self.say(KNOB, True, "refused", why % where)
            return False
        self.lines[line] = count + 1
        if count == _WATCHED:
            self.say(KNOB, True, "taken", None, True)
        return count >= _WATCHED and self._has_room()

    def copied(self, tensor, result, went_on):
        """The program's copy to a CUDA device was started, or completed."""
        with hidden_queries(self.torch):
            index, pinned = result.device.index, went_on and tensor.is_pinned()
        self.stream = self.torch.cuda.current_stream(index)
        if pinned and not self._captured():
            done = self.torch.cuda.Event()
            done.record(self.stream)
            self.kept.append((done, tensor))

    def forward_begins(self, frame):
        """One of the first forward passes of training, or an occasional later one."""
        if self.off or self.stream is None:
            return
        self.model_stream = self.torch.cuda.current_stream(self.stream.device.index)
        self.of_model = self.model_stream == self.stream
        if not self.of_model:
            self.off = True
            why = "the model runs on another stream than the copies, and may not wait for them"
            self.say(KNOB, True, "refused", why)

    def _has_room(self):
        if self._captured():
            return False
        while self.kept and self.kept[0][0].query():
            self.kept.popleft()
        return len(self.kept) < _MOST_KEPT

    def _captured(self):
        """Whether a graph is being captured: then the device must not be queried."""
        captured = getattr(self.torch.cuda, "is_current_stream_capturing", None)
        return captured is not None and captured()

    def _came_again(self, tensor):
        address = tensor.data_ptr()
        before = self.seen.get(address)
        if before is not None and not before.expired():
            return True
        if len(self.seen) >= _MOST_SOURCES:
            self.seen.clear()
        self.seen[address] = StorageWeakRef(tensor.untyped_storage())
        return False
