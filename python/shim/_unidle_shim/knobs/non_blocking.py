"""transfer.non_blocking: which copies to the device may go on while the program does.

From pageable memory all: the driver takes such memory over before the call returns. From pinned memory those
whose source nobody writes into before the copy is over. A batch of a loader is such a source: it is made for
one copy, and the allocator gives its memory to nobody before that is over. A buffer that the program fills
again and again is none: its program is right only because the copy blocks.
"""

from torch.multiprocessing.reductions import StorageWeakRef

from _unidle_shim.host import places
from _unidle_shim.host.shapes import untold

KNOB = "transfer.non_blocking"
_WATCHED = 8  # copies of a line that block as before, while it shows whether their sources come again
_MOST_SOURCES = 4096


class Sources:
    """The pinned memory that lines of the program copy from. One that is copied from again while it was kept
    in between is a buffer, and its line is left alone from then on: what is written into it through NumPy, a
    pointer or another library tells torch nothing."""

    def __init__(self, torch, say):
        self.torch = torch
        self.say = say
        self.seen = {}  # address -> its storage, weakly
        self.lines = {}  # (code, line) -> copies so far; None: left alone

    def will_say(self):
        """Copies are looked at: what becomes of the knob is said later."""
        return bool(self.lines)

    def may_go_on(self, tensor, frame):
        frame = places.own_frame(frame)
        line = (None, 0) if frame is None else (frame.f_code, places.line_of(frame))
        count = self.lines.get(line, 0)
        if count is None:
            return False
        with untold(self.torch):
            if tensor.is_inference() or tensor._version != 0:
                return False  # written into since it was made, as torch itself knows
            if not tensor.is_pinned():
                return True
            came_again = self._came_again(tensor)
        if came_again:
            self.lines[line] = None
            where = "the program" if frame is None else "%s:%d" % (places.short(line[0].co_filename), line[1])
            why = "%s copies from the same pinned memory again, which may be filled while a copy is under way"
            self.say(KNOB, True, "refused", why % where)
            return False
        self.lines[line] = count + 1
        if count == _WATCHED:
            self.say(KNOB, True, "taken", None, True)
        return count >= _WATCHED

    def _came_again(self, tensor):
        address = tensor.data_ptr()
        before = self.seen.get(address)
        if before is not None and not before.expired():
            return True
        if len(self.seen) >= _MOST_SOURCES:
            self.seen.clear()
        self.seen[address] = StorageWeakRef(tensor.untyped_storage())
        return False
