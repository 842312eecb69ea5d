"""What observing costs the followed thread, and which steps are seen in full because of it.

Now and then the patched calls of one step time their own part of it. Where that exceeds what a step may cost,
only a few steps in a row are seen in full, and long stretches between them go by light (short_steps.py). How
long follows from the cost. Short runs are seen in full throughout, and so are programs that do something else
every few steps.
"""

_FIRST_STEP = 4  # the first ones fill caches and read settings
_OFTEN, _SELDOM = 32, 256  # steps between two weighings, for the first eight and later
_KEPT = 15
# What a patched call takes in all, of the part that it times: it also displaces caches. Measured: 1.8.
_DISPLACED = 2.0
_MAX_SHARE = 0.001  # of the time of the steps that seeing some of them in full may take
_SHORT_NS = 2_000_000_000  # until then all are seen in full
_IN_FULL = 10  # in a row: what looks for models (module_classes.py) needs eight
_SETTLING = 2  # of these, before the one that is weighed
_FARTHEST = 2048  # steps; their events have to fit into the ring at once
_TOO_SOON, _TOO_OFTEN = 16, 8


class Weight:
    def __init__(self):
        self.on = False  # this step is weighed
        self.light_until = 0  # ns; the next steps may go by light until then
        self.ns = 0  # own time so far in the step that is weighed
        self.next_step = _FIRST_STEP
        self.costs, self.lengths = [], []  # ns a step, the newest ones
        self.count = 0
        self.since = self.began = None  # (step, ns) of the last weighing, ns of the first
        self.thinned = False
        self.in_vain = 0  # stretches that were cut off at once
        self._then = self._begin

    def turn(self, step, t_ns):
        """At the end of step `step`, where that is not below `next_step`. Sets `light_until` where the steps
        from here on need not be seen in full; whoever follows that calls `resume`."""
        self._then(step, t_ns)

    def resume(self, step, t_ns, steps):
        """Step `step` is to be seen in full, after a stretch of so many that were not; 0: there were to be
        some, but it cannot be."""
        until, self.light_until = self.light_until, 0
        self.next_step, self._then = step + (_SETTLING if steps else _OFTEN), self._begin
        if (
            steps and t_ns < until
        ):  # something else than training came; after a step like any other it goes on
            self.in_vain = self.in_vain + 1 if steps < _TOO_SOON else 0
            self.next_step, self._then = step + 1, lambda *now: self._go_on(until, *now)

    def cost_ns(self):
        """Own time of the followed thread in a step that is seen in full, the median of the newest weighings;
        0 before the first."""
        return _median(self.costs)

    def _begin(self, step, t_ns):
        self.on, self.ns, self.next_step, self._then = True, 0, step + 1, self._end
        self.since = (step, t_ns)
        self.began = self.began or t_ns

    def _end(self, step, t_ns):
        """What the call that found the end does afterwards belongs to the step as well, so the sum is taken
        later."""
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
            self.light_until = t_ns + apart * _median(self.lengths)
        else:
            self._begin(step, t_ns)

    def _apart(self, step):
        """Steps in a stretch. Not always the same, so that it does not go with what the program does every so
        many steps."""
        apart = _IN_FULL * _DISPLACED * self.cost_ns() / (_MAX_SHARE * max(1, _median(self.lengths)))
        return int(min(_FARTHEST, apart) * (0.8 + 0.4 * (step * 0.6180339887 % 1)))

    def _go_on(self, until, step, t_ns):
        if t_ns < until and self.in_vain < _TOO_OFTEN:
            self.light_until = until
        else:
            self._begin(step, t_ns)


def _median(values):
    return sorted(values)[len(values) // 2] if values else 0
