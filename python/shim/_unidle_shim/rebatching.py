"""batch.size and batch.accumulation at run time: a loop that sums the gradients of several batches into a step gets larger
batches and counts to a smaller number, or the other way round, so that a step is of the same samples.

Only where accumulating.py sees in the source that nothing else depends on the two, and where an epoch has the same steps.
"""

import sys

from . import accumulating, off, places, sources, variables
from .sources import Unclear

SIZE, COUNT = "batch.size", "batch.accumulation"
_NO_LOOP = ("no loop of the program over a DataLoader was seen that sums the gradients of several batches; "
            "otherwise the effective batch would change")


class Rebatching:
    def __init__(self, state, actuators):
        self.state, self.actuators = state, actuators
        self.asked = {knob: actuators.asked[knob] for knob in (SIZE, COUNT) if knob in actuators.asked}
        self.known = {}       # code -> accumulating.Accumulation, or None
        self.changed = False  # some loader or count was
        self.size = None      # that the loop has
        self.why = _NO_LOOP
        self.note = None      # what a search can do

    def begins(self, real):
        """The program begins to iterate over a DataLoader."""
        if not self.asked and not self.state.loop.max_steps:
            return
        frame = places.own_frame(sys._getframe(2))
        try:
            if self.changed:
                from . import resizing

                resizing.give_back(real)
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

        now = found.count.read(frame)
        count = now.original if type(now) is variables.Count else now
        try:
            own = resizing.original(real)
            size = own.batch_size
            _no_other_name(found, frame, size)
            wanted = self._wanted(size, count)
            most = _most_batches(own, found, (size, count), wanted if self.asked else (size * count, 1))
        except Unclear:
            if type(now) is variables.Count:
                found.count.write(frame, count)
            raise
        if wanted != (size, count):
            found.count.write(frame, variables.count(wanted[1], count))
            resizing.resize(real, wanted[0], most)
            self.changed, self.size = True, real.batch_sampler.batch_size
            self.state.loaders[real].facts = None  # are read again
        elif type(now) is variables.Count:
            found.count.write(frame, count)
        self.note = self.note or _note(found, size, count)
        self.why = None

    def _wanted(self, size, count):
        """What is asked for; of one of the two, the other holds the effective batch."""
        effective = size * count
        try:
            asked = [int(self.asked[knob]) if knob in self.asked else None for knob in (SIZE, COUNT)]
        except (TypeError, ValueError):
            raise Unclear("a whole number is expected") from None
        for known in asked:
            if known is not None and (known < 1 or effective % known):
                raise Unclear("%d does not divide the effective batch, %d x %d" % (known, size, count))
        wanted_size, wanted_count = asked
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


def _no_other_name(found, frame, size):
    """The batch size may stand in the loop under any name, or as a number."""
    names, numbers = found.numbers_read()
    for name in names:
        value = frame.f_locals[name] if name in frame.f_locals else frame.f_globals.get(name)
        if type(value) is int and value == size and size > 1 and found.count.name != name:
            raise Unclear("the loop at %s reads %s, which is %d as the batch size is" % (found.where, name, size))
    if size in numbers and size > 1:
        raise Unclear("the loop at %s has a %d, as the batch size is" % (found.where, size))


def _most_batches(own, found, before, wanted):
    """So many of the wanted ones make as many steps as those before do, of the same samples; None: all of them."""
    if wanted == before:
        return None
    try:
        samples = len(own.sampler)
    except TypeError:
        raise Unclear("how many samples an epoch has is not known") from None
    size, count = before
    steps, left = divmod(samples // size if own.drop_last else -(-samples // size), count)
    if samples % (size * count) == 0:
        return None
    thrown_away = found.zeroes and not found.flushes if left else own.drop_last
    if not thrown_away or not steps:
        raise Unclear("%d samples of an epoch are no multiple of the effective batch, %d x %d, and what is left is not thrown away: its step would be another"
                      % (samples, size, count))
    return steps * wanted[1]


def _note(found, size, count):
    line = found.count.where()
    return {"type": "accumulation", "changeable": True, "why": None, "loop": found.where, "size": size, "count": count,
            "where": None if line is None else "%s:%d" % (places.short(found.source.name), line)}
