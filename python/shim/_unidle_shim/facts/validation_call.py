"""Finds the line that starts a validation. Compares the call stack of a forward pass of validation with that
of one of training: it is the line at which the two begin to differ."""

from _unidle_shim.host import places

_MOST = 16  # validations that are inspected
_FIRST = 64  # forward passes of training, after which the way is not taken anew: the first may only prepare


class ValidationCall:
    """Used by the training thread alone."""

    def __init__(self):
        self.way = None  # to a forward pass of training: (code, line) of each frame, from the outermost
        self.passes = 0  # of training, since a validation
        self.wanted = True
        self.found = {}  # (code, line) -> number of validations
        self.looked_at = -1  # number of the newest inspected validation

    def trains(self, frame):
        """Called for forward passes of training while `wanted`: the first ones, also after a validation."""
        self.passes += 1
        if self.passes & (self.passes - 1) == 0:
            self.way = _way_to(frame)
            self.wanted = self.passes < _FIRST

    def validates(self, frame, number):
        """Called for a forward pass of validation. `number`: how many validations there were before it."""
        if self.way is None or number == self.looked_at or number >= _MOST:
            return
        self.looked_at = number
        self.passes, self.wanted = 0, number + 1 < _MOST
        place = self.call_of(frame)
        if place is not None:
            self.found[place] = self.found.get(place, 0) + 1

    def call_of(self, frame):
        """(code, line) of the program at which the way to this forward pass leaves that to training; None if
        that is not known."""
        place = None if self.way is None else _parting(self.way, _way_to(frame))
        return place if place is not None and places.is_own(place[0]) else None

    def note(self):
        if not self.found:
            return None
        return {"type": "validation_call", "where": places.text(*max(self.found, key=self.found.get))}


def _way_to(frame):
    way = []
    while frame is not None:
        way.append((frame.f_code, places.line_of(frame)))
        frame = frame.f_back
    way.reverse()
    return way


def _parting(way, other):
    """The line of `other` at which two call stacks begin to differ: the line in the function that both are
    in, or the last line that they share if it calls different functions. None if the stacks are equal."""
    last = None
    for (code, line), step in zip(way, other):
        if step[0] is not code:
            return last
        if step[1] != line:
            return step
        last = step
    return last if len(other) > len(way) else None
