"""Batches made by another thread: the training thread waits for them at a queue or another shared object."""

import linecache
import os
import re

from _unidle_shim.host import places

_SHARED = ("threading.py", "queue.py", "queues.py", "connection.py", "synchronize.py", "_base.py", "pool.py")
_TAKES = ("get", "recv", "recv_bytes", "result", "next", "__next__", "popleft")  # calls that return an item
_CALL = re.compile(r"\.(get|recv|recv_bytes|result|popleft)\(\s*(\)|block|timeout|True)")
_WAIT = re.compile(r"\.(join|wait|acquire)\(")


class Waits:
    """Detects whether the training thread waits for batches of another thread."""

    def __init__(self, state):
        self.state = state
        self.lines = {}  # (file, line) -> (takes, waits): the calls in the line

    def is_waiting(self, stack):
        """`stack`: [(code, line)] of the training thread, the innermost first. Returns True if it takes an
        object made by another thread or process, or waits for another thread while one fetches from a
        loader."""
        takes = waits = False
        for code, line in stack:
            name = code.co_filename
            if not places.is_standard(name):
                if not waits:  # calls in C have no frames
                    takes, waits = self._calls_of(name, line)
                return takes or (waits and self.state.fetched_elsewhere)
            if os.path.basename(name) in _SHARED:
                waits = True
                takes = takes or code.co_name in _TAKES
        return False

    def _calls_of(self, name, line):
        known = self.lines.get((name, line))
        if known is None:
            text = linecache.getline(name, line or 0)
            known = bool(_CALL.search(text)), bool(_WAIT.search(text))
            if len(self.lines) < 2000:
                self.lines[(name, line)] = known
        return known
