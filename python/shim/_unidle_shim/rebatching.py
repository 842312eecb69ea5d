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
            if found is not None:
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
        size, count = _size_of(real), found.count.read(frame)
        before = self.before.setdefault(frame.f_code, (size, count))
        wanted = self.wanted.setdefault(frame.f_code, self._wanted(*before))
        try:
            if size not in (before[0], wanted[0]) or count not in (before[1], wanted[1]):
                raise Unclear("the program changes its batch size, or how many batches make a step, while it runs")
            _same_steps(real, found, before)
        except Unclear:
            _set(found, frame, real, before[0] if size == wanted[0] else size, before[1] if count == wanted[1] else count)
            raise
        _set(found, frame, real, *wanted)
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
        if wanted_size is None:
            wanted_size = effective // wanted_count if wanted_count else size
        if wanted_count is None:
            wanted_count = effective // wanted_size if wanted_size else count
        if wanted_size * wanted_count != effective or wanted_size < 1:
            raise Unclear("%d x %d is not the effective batch, %d x %d" % (wanted_size, wanted_count, size, count))
        return wanted_size, wanted_count

    def _refuse(self, why):
        self.why = why
        self.note = self.note or {"type": "accumulation", "changeable": False, "why": why}
        for knob, value in self.asked.items():
            self.actuators.say(knob, value, "refused", why)


def _size_of(real):
    from torch.utils.data import BatchSampler

    if type(getattr(real, "batch_sampler", None)) is not BatchSampler or type(real.batch_size) is not int:
        raise Unclear("the DataLoader has a batch sampler of the program's own, or none")
    return real.batch_sampler.batch_size


def _set(found, frame, real, size, count):
    if found.count.read(frame) != count:
        found.count.write(frame, count)
    if real.batch_size != size:
        real.batch_sampler.batch_size = size
        object.__setattr__(real, "batch_size", size)  # a DataLoader does not let it be set


def _same_steps(real, found, before):
    """Of an epoch: schedules count them."""
    if found.counts_steps:
        return
    effective = before[0] * before[1]
    try:
        samples = len(real.batch_sampler.sampler)
    except TypeError:
        raise Unclear("how many samples an epoch has is not known") from None
    if real.drop_last:
        samples -= samples % before[0]
    if samples % effective and (real.drop_last or not found.flushes):
        raise Unclear("%d samples of an epoch are no multiple of the effective batch, %d: it would have another number of steps" % (samples, effective))


def _note(found, size, count):
    line = found.count.where()
    return {"type": "accumulation", "changeable": True, "why": None, "loop": found.where, "size": size, "count": count,
            "where": None if line is None else "%s:%d" % (places.short(found.source.name), line)}
