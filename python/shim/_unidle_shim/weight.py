"""What observing costs the followed thread: now and then the patched calls of one step time their own part of it.

Where a step is so short that this part exceeds a hundredth of it, what need not be seen in every step (the loss, each
batch of a loader in the same process) is left to one step in eight.
"""

_FIRST_STEP = 4          # the first ones fill caches and read settings
_OFTEN, _SELDOM = 32, 256  # steps between two weighings, for the first eight and later
_KEPT = 15
_MAX_SHARE = 0.01
_THINNED = 8


class Weight:
    def __init__(self):
        self.on = False           # this step is weighed
        self.ns = 0               # own time so far in the step that is weighed
        self.next_step = _FIRST_STEP
        self.costs = []           # ns a step, the newest ones
        self.count = 0
        self.since = None         # (step, ns) of the last weighing
        self.step_ns = 0
        self.every = 1            # what need not be seen in every step is seen in each of so many

    def turn(self, step, t_ns):
        """At the end of step `step`: begins or ends a weighing. What the call that found the end does afterwards belongs to
        the step as well, so the sum is taken when the next weighing begins."""
        if self.on:
            self.on = False
            self.next_step = step + (_OFTEN if self.count < 8 else _SELDOM)
            return
        self._take(step, t_ns)
        self.on, self.ns, self.next_step = True, 0, step + 1
        self.since = (step, t_ns)

    def _take(self, step, t_ns):
        if self.since is None:
            return
        self.count += 1
        self.costs = self.costs[1 - _KEPT:] + [self.ns]
        self.step_ns = (t_ns - self.since[1]) // (step - self.since[0])
        if self.count >= 4 and self.cost_ns() > _MAX_SHARE * self.step_ns:
            self.every = _THINNED

    def cost_ns(self):
        """Own time of the followed thread in one step, the median of the newest weighings; 0 before the first."""
        return sorted(self.costs)[len(self.costs) // 2] if self.costs else 0
