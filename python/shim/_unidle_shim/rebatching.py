"""batch.size and batch.accumulation at run time: a loop that sums the gradients of several batches into a step gets larger
batches and counts to a smaller number, or the other way round, so that a step is of the same samples.

Only where accumulating.py sees in the source that nothing else in the loop depends on the two, and where an epoch has the
same number of steps.
"""

import sys

from . import accumulating, off, places, sources
from .sources import Unclear

SIZE, COUNT = "batch.size", "batch.accumulation"
_NO_LOOP = ("no loop of the program over a DataLoader was seen that sums the gradients of several batches; "
            "otherwise the effective batch would change")


class Rebatching:
    def __init__(self, state, actuators):
        self.state, self.actuators = state, actuators
        self.asked = {knob: actuators.asked[knob] for knob in (SIZE, COUNT) if knob in actuators.asked}
        self.known = {}    # code -> accumulating.Accumulation, or None
        self.before = {}   # code -> (size, count) as the program has them
        self.wanted = {}   # code -> (size, count)
        self.why = _NO_LOOP
        self.note = None   # what a search can do

    def begins(self, real):
        """The program begins to iterate over a DataLoader."""
        if not self.asked and not self.state.loop.max_steps:
            return
        frame = places.own_frame(sys._getframe(2))
        try:
            found = self._loop_at(frame) if frame is not None else None
            if found is not None and found.begins_at(places.line_of(frame)):
                self._change(found, frame, real)
        except Unclear as why:
            self._refuse(str(why))
        except Exception as failure:
            off(failure)

    def _loop_at(self, frame):
        code = frame.f_code
        if code not in self.known:
            self.known[code] = None  # also when it is none that can be changed
            source = sources.source_of(code.co_filename)
            scope = next((node for node in source.nodes if sources.is_scope_of(node, code)), None)
            self.known[code] = accumulating.find(source, scope) if scope is not None else None
        return self.known[code]

    def _change(self, found, frame, real):
        from . import resizing

        size, count = resizing.size_of(real), found.count.read(frame)
        before = self.before.setdefault(frame.f_code, (size, count))
        wanted = self.wanted.setdefault(frame.f_code, self._wanted(*before))
        try:
            if size not in (before[0], wanted[0]) or count not in (before[1], wanted[1]):
                raise Unclear("the program changes its batch size, or how many batches make a step, while it runs")
            batches = _batches_of_epoch(real, found, before, wanted if self.asked else (size * count, 1))
        except Unclear:
            if size == wanted[0] != before[0]:
                resizing.resize(real, before[0])
            if count == wanted[1] != before[1]:
                found.count.write(frame, before[1])
            raise
        if wanted != before:
            found.count.write(frame, wanted[1])
            resizing.resize(real, wanted[0], batches)
        self.note = self.note or _note(found, *before)
        self.why = None

    def _wanted(self, size, count):
        """What is asked for; of one of the two, the other holds the effective batch."""
        effective = size * count
        try:
            asked = [int(self.asked[knob]) if knob in self.asked else None for knob in (SIZE, COUNT)]
        except (TypeError, ValueError):
            raise Unclear("a whole number is expected") from None
        wanted_size, wanted_count = asked
        for known in asked:
            if known is not None and (known < 1 or effective % known):
                raise Unclear("%d does not divide the effective batch, %d x %d" % (known, size, count))
        if wanted_size is None:
            wanted_size = effective // wanted_count if wanted_count else size
        if wanted_count is None:
            wanted_count = effective // wanted_size
        if wanted_size * wanted_count != effective:
            raise Unclear("the effective batch would be %d x %d instead of %d x %d" % (wanted_size, wanted_count, size, count))
        return wanted_size, wanted_count

    def _refuse(self, why):
        self.why = why
        self.note = self.note or {"type": "accumulation", "changeable": False, "why": why}
        for knob, value in self.asked.items():
            self.actuators.say(knob, value, "refused", why)


def _batches_of_epoch(real, found, before, wanted):
    """So many of the wanted ones make as many steps as those before do of the same samples; None: all of them. Schedules count
    the steps."""
    if found.counts_steps or wanted == before:
        return None
    try:
        samples = len(real.batch_sampler.sampler)
    except TypeError:
        raise Unclear("how many samples an epoch has is not known") from None
    steps, left = _steps(samples, *before, real.drop_last, found.flushes)
    steps_then, left_then = _steps(samples, *wanted, real.drop_last, found.flushes)
    if steps == steps_then and not left and not left_then:
        return None
    if found.flushes or not found.zeroes or not left or getattr(real, "_iterator", None) is not None:
        raise Unclear("%d samples of an epoch are no multiple of the effective batch, %d x %d: it would have another number of steps, or what is "
                      "left of one goes into the next" % (samples, *before))
    return steps * wanted[1]


def _steps(samples, size, count, drop_last, flushes):
    """(of an epoch, batches that are left)"""
    batches = samples // size if drop_last else -(-samples // size)
    return (-(-batches // count), 0) if flushes else divmod(batches, count)


def _note(found, size, count):
    line = found.count.where()
    return {"type": "accumulation", "changeable": True, "why": None, "loop": found.where, "size": size, "count": count,
            "where": None if line is None else "%s:%d" % (places.short(found.source.name), line)}
