"""When the program saves checkpoints. A base class of Loop."""

import time

from _unidle_shim.host import event_kinds

now = time.monotonic_ns


class Checkpoints:
    def __init__(self):
        self.saving = False
        self.saved_at = 0  # end of the last saved file
        self.saved_after = None  # what was observed until then
        self.saved_ns = {}  # line that saves -> time

    def save_begins(self):
        """A file is saved. Returns when its checkpoint began: files between which nothing is trained or
        validated belong to one checkpoint, with what the program does between them."""
        self.look_up()
        self.saving = True
        return self.saved_at if self.saved_after == self._observed() else now()

    def save_ends(self, begin, total, where):
        """`total`: of the loop, when saving began. `where`: the line of the program that saves."""
        end = now()
        self.saving = False
        self.saved_ns[where] = self.saved_ns.get(where, 0) + end - begin
        self.total += end - begin - (self.total - total)
        self.saved_at = end
        self.ring.emit(event_kinds.CHECKPOINT, begin, end - begin, self.steps)
        if self.parts is not None:
            self.parts.last = end
        self.saved_after = self._observed()

    def saved_notes(self):
        for where, ns in list(self.saved_ns.items()):
            if where is not None:
                yield ("checkpoint", where), {"type": "checkpoint", "where": where, "seconds": ns * 1e-9}

    def _observed(self):
        parts, validation = self.parts, self.validation
        return (
            self.steps,
            self.validations,
            parts is not None and parts.last,
            validation is not None and validation[1],
        )
