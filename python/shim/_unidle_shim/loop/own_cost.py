"""The overhead of observation: measures it, and samples the steps of the training loop to keep it small.

Now and then one step is timed: its patched calls add up the time of their own part. If this overhead is more
than a step may cost, not every step is observed in full. A few steps in a row are; the steps of the long
stretch that follows are only marked (short_steps.py). The length of a stretch follows from the overhead.
Every step of a short run is observed in full, and so is every step of a program that does something other
than training every few steps.
"""

_FIRST_STEP = 4  # the first to be timed: earlier ones fill caches and read settings
_OFTEN, _SELDOM = 32, 256  # steps between two that are timed, for the first eight and later
_KEPT = 15  # measurements, of which the median is taken
# A patched call also evicts data from the processor's caches, so it costs more than the part that it times:
# measured 1.8, rounded up.
_DISPLACED = 2.0
_MAX_SHARE = 0.001  # the largest share of all time for observing some steps in full
_SHORT_NS = 2_000_000_000  # until then all steps are observed in full
_IN_FULL = 10  # steps in a row; the search for model classes (module_classes.py) needs eight
_SETTLING = 2  # of these, before the one that is timed
_FARTHEST = 2048  # steps of a stretch: their events must fit into the ring at once
_TOO_SOON = 16  # steps: a stretch ended earlier by something else was in vain
_TOO_OFTEN = 8  # stretches in vain, after which there are no more
# Inspecting a batch whose samples are costly, in a stretch: measured 37 us, with cold caches. It is done in
# some stretches, so that it takes at most this share of all time.
_INSPECTION_NS = 40_000
_MAX_INSPECTING = 0.001


class OwnCost:
    """Overhead in the training thread. Not thread-safe: only that thread uses it."""

    def __init__(self):
        self.on = False  # this step is timed
        self.marked_until = 0  # ns; until then the next steps may be only marked
        self.ns = 0  # own time so far in the step that is timed
        self.next_step = _FIRST_STEP
        self.costs, self.lengths = [], []  # ns per step, the newest ones: own time, and the step as a whole
        self.count = 0
        self.since = self.began = None  # (step, ns) of the newest measurement, ns of the first
        self.thinned = False  # not all steps are observed in full
        self.in_vain = 0  # stretches in a row that something else ended early
        self.inspecting_ns = 0  # the time that inspections took so far, by their usual cost
        self._then = self._begin

    def turn(self, step, t_ns):
        """Called at the end of step `step`, if that is `next_step` or later. Sets `marked_until` if the next
        steps need only be marked. The caller then calls `resume` afterwards."""
        self._then(step, t_ns)

    def resume(self, step, t_ns, steps):
        """Step `step` is observed in full again, after a stretch of `steps` that were only marked; 0 if they
        could not be."""
        until, self.marked_until = self.marked_until, 0
        self.next_step, self._then = step + (_SETTLING if steps else _OFTEN), self._begin
        if steps and t_ns < until:  # something other than training ended it: it continues one step later
            self.in_vain = self.in_vain + 1 if steps < _TOO_SOON else 0
            self.next_step, self._then = step + 1, lambda *now: self._go_on(until, *now)

    def cost_ns(self):
        """The training thread's own time in a step observed in full: the median of the newest measurements, 0
        before the first."""
        return _median(self.costs)

    def may_inspect(self, batches, t_ns):
        """Whether the stretch that begins now can count and time the samples of each batch, `batches` of them
        a step. If not, its batches count as like the inspected ones."""
        steps = max(0, self.marked_until - t_ns) // max(1, _median(self.lengths))
        spent = self.inspecting_ns + steps * batches * _INSPECTION_NS
        if spent > _MAX_INSPECTING * (t_ns - self.began):
            return False
        self.inspecting_ns = spent
        return True

    def _begin(self, step, t_ns):
        self.on, self.ns, self.next_step, self._then = True, 0, step + 1, self._end
        self.since = (step, t_ns)
        self.began = self.began or t_ns

    def _end(self, step, t_ns):
        """The step is over, but not the call that detected it. The rest of that call counts as well, so
        `_judge` takes the sum later."""
        self.on, self._then = False, self._judge
        if self.thinned:
            self.next_step = step + _IN_FULL - _SETTLING
        else:
            self.next_step = step + (_OFTEN if self.count < 8 else _SELDOM)

    def _judge(self, step, t_ns):
        self.count += 1
        self.costs = self.costs[1 - _KEPT :] + [self.ns]
        self.lengths = self.lengths[1 - _KEPT :] + [(t_ns - self.since[1]) // (step - self.since[0])]
        apart = self._apart(step) if self.count >= 4 and t_ns - self.began > _SHORT_NS else 0
        self.thinned = apart > 1.25 * _IN_FULL and self.in_vain < _TOO_OFTEN
        if self.thinned:
            self.marked_until = t_ns + apart * _median(self.lengths)
        else:
            self._begin(step, t_ns)

    def _apart(self, step):
        """The number of steps in a stretch. It varies, so that stretches do not coincide with work that the
        program does every N steps."""
        apart = _IN_FULL * _DISPLACED * self.cost_ns() / (_MAX_SHARE * max(1, _median(self.lengths)))
        return int(min(_FARTHEST, apart) * (0.8 + 0.4 * (step * 0.6180339887 % 1)))

    def _go_on(self, until, step, t_ns):
        if t_ns < until and self.in_vain < _TOO_OFTEN:
            self.marked_until = until
        else:
            self._begin(step, t_ns)


def _median(values):
    return sorted(values)[len(values) // 2] if values else 0
