"""Where steps end, and their events. A base class of Loop.

A step is held back until it is certain that it is over; then its event is written.
"""

from _unidle_shim.host import event_kinds
from _unidle_shim.host.guard import caught
from _unidle_shim.loop import step_events
from _unidle_shim.loop.own_cost import OwnCost
from _unidle_shim.loop.step_parts import Parts

_MOST_MODELS = 4096
_NEWEST = 5  # steps


def _nobody(step):
    pass


class Steps:
    def __init__(self, ring, process_start_ns, max_steps):
        self.ring = ring
        self.process_start_ns = process_start_ns
        self.max_steps = max_steps  # the program is ended after this many; 0: never
        self.ended = False
        self.parts = None  # of the current step
        self.held = None  # a step that may be over
        self.stepped_at = 0  # end of the last optimiser step
        self.steps = 0  # written
        self.samples = 0
        self.in_full = 0  # steps that were observed in full
        self.backwards = 0  # backward passes in them
        self.newest_samples = []  # samples of the newest of them
        self.usual_samples = 0  # their median: an evaluation may be part of one
        self.micro = {}  # micro-batches -> number of steps with that many
        self.alike = (), 0  # optimisers and number of batches of the last step
        self.alike_steps = 0  # steps before it with the same ones
        # Steps in which each batch had its own backward pass; others.
        self.one_each = self.one_for_several = 0
        # (loader, samples) of the batches that no forward pass has used yet, except the first one.
        self.ahead = []
        self.models = {}  # id of an outermost module -> True: it has been training
        self.eval_models = {}  # the same, for those that train in evaluation mode
        self.watch_models = _nobody  # called with the step if a model is expected and none was called
        self.look_again = 1000  # the step at which models are searched in any case
        self.on_step = None  # called after a step is written, while it is not None
        self.device = None  # facts.device_time.DeviceTimer
        self.own_cost = OwnCost()
        self.marked_steps = None  # short_steps.MarkedSteps, once it is made
        self.marking = None  # the same, while steps are only marked

    def current(self, t):
        if self.parts is None:
            self.parts = Parts(t)
        return self.parts

    def split(self, t, certain):
        """The step may end at t, where something else begins. `certain`: it certainly does."""
        parts = self.parts
        if parts is None or not parts.optimizers:
            if certain and self.held is not None:
                self.write(self.held)
                self.held = None
            return
        if self.held is not None:  # otherwise it would have been written: several optimisers alternate
            self.held.absorb(parts)
            parts = self.held
        parts.end = t
        self.held, self.parts = parts, Parts(t)
        if certain:
            self.write(parts)
            self.held = None
        if self.max_steps and self.steps + (self.held is not None) >= self.max_steps:
            self.stop()

    def stop(self):
        self.finish()
        self.ended = True
        self.max_steps = 0
        raise SystemExit(0)

    def write(self, parts):
        """Writes the event of a step."""
        step = self.steps
        if step == 0:
            self.first_fetches.leave_out(parts)
            before = max(0, parts.begin - self.process_start_ns)
            self.ring.emit(event_kinds.STARTUP, self.process_start_ns, before)
        begin = parts.begin
        if parts.incomplete:
            # These are sums over micro-batches, some of which may be missing.
            parts.forward = parts.backward = parts.optimizer = parts.losses = 0
            if not parts.fetches:
                parts.input = 0
            samples = parts.samples if parts.samples and not self.batch_axis else self.usual_samples
        else:
            self.leave_out_untrained(parts)
            samples = (
                (parts.forward_samples if self.batch_axis else 0) or parts.samples or parts.forward_samples
            )
            self.newest_samples = [*self.newest_samples[1 - _NEWEST :], samples]
            self.usual_samples = sorted(self.newest_samples)[(len(self.newest_samples) - 1) // 2]
            self.in_full += 1
            self.backwards += parts.backwards
            if not parts.forward:
                self.watch_models(step)
        micro = parts.micro_batches()
        alike = parts.optimizers, parts.fetches
        self.alike_steps = self.alike_steps + 1 if alike == self.alike else 0
        self.alike = alike
        step_events.write(self.ring, parts, step, self.samples, samples, micro)
        if self.device is not None and not parts.incomplete:
            self.device.step_over(step, begin, parts.end)
        self.micro[micro] = self.micro.get(micro, 0) + 1
        self.steps = step + 1
        self.samples += samples
        if len(self.models) > _MOST_MODELS:  # the program keeps making new modules
            self.models.clear()
            self.eval_models.clear()
        if self.ahead:
            del self.ahead[:-1]  # one may belong to the next step; the others were fetched and not used
        if step >= self.own_cost.next_step:
            self.turn(step, parts.end)
        if self.on_step is not None:
            self.on_step(self)

    def loss_was_read(self, step, samples_before, loss, t):
        """The program has read the loss of a step from the device: of the step not yet written, or of a
        finished one."""
        parts = self.held or self.parts
        if step == self.steps and parts is not None:
            parts.loss, parts.losses = loss, 1
        else:
            self.ring.emit(event_kinds.LOSS, t, 0, step, samples_before, 0, loss)

    def leave_out_untrained(self, parts):
        """If each batch has its own backward pass, a batch without one was not trained, perhaps because its
        loss was not finite. Other programs add up the losses of several batches."""
        if parts.fetches == parts.backwards:
            self.one_each += 1
        elif parts.fetches > parts.backwards > 0 and len(parts.optimizers) == 1:
            if self.one_each <= self.one_for_several:
                self.one_for_several += 1
                return
            parts.samples = round(parts.samples * parts.backwards / parts.fetches)
            parts.fetches = parts.backwards

    def turn(self, step, t):
        cost = self.own_cost
        cost.turn(step, t)
        if step >= self.look_again:
            self.look_again *= 2
            self.watch_models(step)
        if cost.marked_until and not (
            self.marked_steps is not None and self.marked_steps.begin(self, cost.marked_until)
        ):
            cost.resume(step, t, 0)

    def look_up(self):
        """Ends a stretch of marked steps: something else begins, or it is time to observe steps in full."""
        try:
            if self.marking is not None:
                self.marking.end(self)
        except BaseException as failure:
            caught(failure)

    def finish(self):
        """The process ends: writes the steps that are still held."""
        self.look_up()
        self.close_validation(None)
        if self.held is not None:
            self.write(self.held)
            self.held = None
        parts = self.parts
        if parts is not None and parts.optimizers:
            parts.end = max(parts.last, self.stepped_at)
            self.write(parts)
        self.parts = None
        if self.device is not None:
            self.device.finish()
