"""The training loop: which step each observed call belongs to, and how the time of a step divides into parts.

A step begins with its first call: the fetch of its batch, or its forward pass. It ends where the next one
begins, so that steps follow each other without gaps. The end of a step is only known afterwards, because an
optimiser step may be followed by the next iteration or by a second optimiser of the same one (a GAN). So the
step is held back. If a batch is fetched at the place of the step's first one, or the same optimiser steps
again, the held step was over. If another optimiser steps, it was not.

All times are exclusive: a wait inside a forward pass counts as wait, not as forward pass. Only the training
thread is followed; calls of other threads are passed through.
"""

import time

from _unidle_shim.loop.checkpoints import Checkpoints
from _unidle_shim.loop.doubts import Doubts
from _unidle_shim.loop.step_parts import FirstFetches, Parts
from _unidle_shim.loop.steps import Steps
from _unidle_shim.loop.validation import INPUT_PHASE, TRAIN_PHASE, VALIDATE_PHASE, Preview, Validations

now = time.monotonic_ns
STARTUP_PHASE = "startup"
AFTER_STEP, AFTER_FORWARD, AFTER_BACKWARD = 0, 1, 2
# Batches fetched before the step that uses them. A program that fetches more trains in a place that we do not
# see.
_MOST_AHEAD = 4096
HAND = (-1,)  # stands for the optimiser of a program without one


class Loop(Steps, Validations, Checkpoints, Doubts):
    def __init__(self, ring, thread, process_start_ns, max_steps=0):
        Steps.__init__(self, ring, process_start_ns, max_steps)
        Checkpoints.__init__(self)
        Doubts.__init__(self)
        self.thread = thread
        # ns of all calls that were counted, to subtract from a call the time of other such calls inside it
        self.total = 0
        self.inside = False  # in a forward pass: calls of submodules do not count
        self.in_optimizer = 0
        self.updating = False  # in an optimiser's step, and not in its closure
        self.phase = STARTUP_PHASE
        self.validations = 0
        self.validated_steps = 0  # after which validations were made, however many
        self.validated_at = None  # the newest of them
        # Of the newest batch for validation: when it was requested, its samples, ns of waiting for it and in
        # forward passes
        self.validated = [0, 0, 0, 0]
        # [begin, end, samples, whether samples are counted by the loader's batches, id of the iterator if it
        # is one of the training loader]
        self.validation = None
        # validation.Preview, if this validation may only be samples made for inspection
        self.preview = None
        self.previews = 0  # so far
        self.preview_samples = 0  # of a forward pass of the newest one
        self.drawing = False  # whether one of them made a picture
        self.previewed_at = 0  # step of the newest preview
        self.played_at = None  # the same for the newest passes in evaluation mode
        self.playing = False  # whether the newest passes in evaluation mode were those of an agent
        # [loader, begin, input ns so far, batches]: from a loader that may be for training or for validation.
        self.pending = None
        self.optimizer_ns = {}  # id of an optimiser -> time of its steps that were observed in full
        self.last_loader = None  # the loader of the newest batch
        self.eval_called = 0
        # id of a module in evaluation mode with gradients enabled: a backward pass will decide
        self.perhaps_trains = 0
        self.lone_eval = None
        self.after = AFTER_STEP  # the kind of the last observed call
        # By kind of the last observed call: share of the time after it that fetches data, if there is no
        # loader. None until enough lines were sampled there.
        self.gap_is_input = [None, None, None]
        # Share of the time between a forward pass and the backward pass after it that computes the loss, by
        # stack samples. The rest is code between the steps, like a metric.
        self.gap_is_loss = 0.0
        self.forward_at = self.forward_total = 0  # at the end of the newest forward pass: when, and `total`
        self.passes = 0  # forward passes of the step before the newest backward pass
        self.assembled = False  # arrays became tensors since the last observed call
        self.by_hand = True  # no optimiser was called yet: the program may update its parameters itself
        self.batch_axis = 0  # of the model's input
        self.optimizer_steps = 0
        self.unseen = False  # no model was called since a batch for validation was fetched
        self.iterator = 0  # id of the iterator of the newest batch
        self.fetch_place = None  # where the program requested it
        self.fetched_ns = 0  # when it was received
        self.telling = False
        self.first_fetches = FirstFetches()
        self.step_places = {}  # id of an optimiser -> {code: line} of the stack of its first step

    def works_on_batch(self):
        """Whether a step is in progress on a batch that was fetched for it."""
        parts = self.parts
        return parts is not None and parts.fetches > 0 and not parts.optimizers and self.marking is None

    def within(self):
        """Whether we are in a call that is timed as a whole, like the fetch of a batch: calls within it do
        not count."""
        return self.inside or (self.marking is not None and self.marking.asks())

    # -- input --

    def fetch_begins(self, loader, t, place=None):
        """`place`: the program's call that requests the batch; None if another loader may begin there."""
        self.phase, self.fetch_place = INPUT_PHASE, place
        if self.doubts:
            self.other_loader_continues(loader)
        if self.pending is not None and self.pending[0] is not loader and self.pending[3] > 1:
            self.drop_pending()
        self.taken_back = None
        # The short path for most steps; the code below would do the same.
        if loader.use == "train" and self.validation is None and self.held is None:
            parts = self.parts
            if parts is None:
                return
            if parts.optimizers:
                if not self.begins_anew(parts, place):
                    self.split(t, False)
                    return
                parts.end = t
                self.parts = Parts(t)
                self.write(parts)
                if self.max_steps and self.steps >= self.max_steps:
                    self.stop()
                return
            if parts.looked is None:
                return
        if loader.use == "validate" or (loader.use == "train" and self.evaluation_goes_on()):
            if self.unseen:
                self.watch_models(self.steps)
            self.split(t, True)
            self.open_validation(t)
            self.preview, self.phase = None, VALIDATE_PHASE
            return
        if loader.use == "train":
            self.close_validation(t)
        self.split(t, self.begins_anew(self.held or self.parts, place))
        if not loader.proven:
            self.doubt(loader, t)
        if loader.use is None:
            if self.pending is None:
                self.pending = [loader, t, 0, 1]
            else:
                self.pending[3] += self.pending[0] is loader
                self.watch_models(self.steps)

    @staticmethod
    def begins_anew(parts, place):
        """Whether a batch fetched at `place` certainly belongs to another step. A batch fetched elsewhere
        than the first one of the step may be for its second optimiser."""
        return parts is None or place is None or parts.place is None or parts.place == place

    def fetch_ends(self, loader, t0, t1, own_ns, samples, got):
        """`samples`: in the batch; `got`: false at the end of the epoch."""
        self.phase = TRAIN_PHASE
        again = got and self.last_loader is loader
        if not self.steps:
            self.first_fetches.add(t0, own_ns, got)
        if not loader.proven and got:
            self.gave(loader, samples)
        if got:
            self.last_loader = loader
        elif self.last_loader is loader:
            self.last_loader = None
            if not loader.proven:
                self.has_ended(loader)
        if loader.use == "validate" or (loader.use == "train" and self.evaluates()):
            self.touch_validation(t1)
            self.phase = VALIDATE_PHASE
            if got:
                self.validation[2] += samples
                self.validated = [t0, samples, own_ns, 0]
                self.unseen = True
            return
        parts = self.parts or self.current(t0)
        parts.input += own_ns
        parts.last = t1
        if self.pending is not None:
            self.pending[2] += own_ns
        if got:
            if not parts.fetches:
                parts.place = self.fetch_place
            if parts.fresh:
                parts.take(samples)
                parts.fresh = False
            elif again:
                if len(self.ahead) >= _MOST_AHEAD:
                    self.ahead.clear()
                self.ahead.append((loader, samples))
            elif loader.begun_ns > self.fetched_ns and parts.place == self.fetch_place is not None:
                parts.take_instead(samples)  # the loop began again, with another loader
            self.fetched_ns = t1

    def take_ahead(self, parts):
        """A forward pass begins on a batch that was fetched together with the previous one."""
        parts.take(self.ahead.pop(0)[1])

    # -- forward --

    def forward_goes_on(self, module):
        """The short path for most steps. True: a forward pass of training on the batch that was fetched for
        it. False: `forward_begins` has to decide. Requires gradients to be enabled."""
        parts, loader = self.parts, self.last_loader
        if (
            parts is None
            or not parts.samples
            or parts.optimizers
            or self.validation is not None
            or self.pending is not None
            or loader is None
            or loader.use != "train"
            or self.in_optimizer
            or self.batch_axis
            or not module.training
        ):
            return False
        self.models[id(module)] = True
        self.lone_eval, self.perhaps_trains, self.unseen = None, 0, False
        if self.ahead and parts.backwards >= parts.fetches:
            self.take_ahead(parts)
        parts.forwards += 1
        parts.fresh = True
        return True

    def forward_begins(self, module, t, grad, samples):
        """Returns True for a forward pass of training, False for validation, None for neither (left to its
        step)."""
        key = id(module)
        self.unseen = False
        trains = grad and (module.training or key in self.eval_models)
        self.perhaps_trains = key if grad and not trains else 0
        if trains and self.validation is not None and self.validates_with_gradients():
            self.phase = VALIDATE_PHASE
            return False
        if self.pending is not None and (trains or not self.in_optimizer):
            self.settle_pending(not trains, t)
        if trains:
            self.models[key] = True
            self.lone_eval = self.taken_back = None
            if self.in_optimizer:
                parts = self.current(t)
                parts.forward_samples = max(parts.forward_samples, samples)
                return True
            last = self.last_loader
            if last is not None and last.use == "validate":
                self.trains_after_all(last)
            elif self.evaluates():
                self.newest_leaves_validation()
            if self.validation is not None:
                self.close_validation(t)
            parts = self.parts
            if parts is not None:
                self.gap(parts, t, self.after == AFTER_BACKWARD)
                if parts.optimizers:
                    self.split(t, False)
            parts = self.current(t)
            if self.ahead and parts.backwards >= parts.fetches:
                self.take_ahead(parts)
            parts.forwards += 1
            parts.fresh = True
            if parts.forward_samples == 0 or not parts.fetches:
                parts.forward_samples = (
                    parts.forward_samples + samples
                    if parts.backwards
                    else max(parts.forward_samples, samples)
                )
            self.phase = TRAIN_PHASE
            return True
        looks = module.training and not grad
        if self.validation is not None:
            self.phase = VALIDATE_PHASE
            preview = self.preview
            if preview is not None:
                preview.of_training = key in self.models
                if not looks and not preview.evaluates:
                    self.preview = None
            return False
        parts = self.parts
        if (
            parts is not None
            and not parts.optimizers
            and (parts.fetches or parts.forwards or parts.backwards)
        ):
            if key in self.models and parts.is_untrained():
                if looks:
                    parts.looked = self.iterator
                    return None
                self.validates_after_all(t)
                self.phase = VALIDATE_PHASE
                return False
            return None  # within a step: a frozen model beside the one that trains
        if not self.in_optimizer and (key in self.models or self.steps == 0 or self.lone_eval is not None):
            begin = self.lone_eval or t
            if self.eval_called > self.stepped_at:
                begin = min(begin, self.eval_called)
            self.split(begin, True)
            self.open_validation(begin, Preview(key in self.models, not module.training))
            self.phase = VALIDATE_PHASE
            return False
        self.lone_eval = t
        return None

    def forward_ends(self, kind, t, own_ns, samples):
        if kind is False:
            validation = self.validation
            self.validated[3] += own_ns
            if validation is not None:
                validation[1] = t
                if self.preview is not None:
                    self.preview.passed(own_ns, samples)
                if not validation[3]:
                    validation[2] += samples
            return
        parts = self.parts or self.current(t - own_ns)
        parts.forward += own_ns
        parts.last, self.forward_at, self.forward_total = t, t, self.total
        self.after, self.assembled = AFTER_FORWARD, False

    # -- the rest --

    def gap(self, parts, t, batches):
        """Counts the time since the last observed call as input, if there is no loader and the lines that run
        there look like fetching data. If the time is too short to be sampled, it counts if arrays became
        tensors in it; and only with `batches`, which says that these are a batch. Between two forward passes
        they may be an environment's response to the first one."""
        share = self.gap_is_input[self.after]
        if share is None:
            share = 1.0 if self.assembled and batches else 0.0
        if parts.fetches or not share:
            return
        begin = parts.last if self.after else max(parts.last, self.stepped_at)
        own = round((t - begin) * share)
        parts.input += own
        self.total += own

    def loss_gap(self, parts, t):
        """Counts the time since the forward pass as part of it, as far as it computes a loss that is no
        module. Returns it."""
        self.passes = parts.forwards
        if not self.gap_is_loss:
            return 0
        own = max(0, round((t - self.forward_at - (self.total - self.forward_total)) * self.gap_is_loss))
        parts.forward += own
        self.total += own
        return own

    def backward_begins(self, t):
        """Returns the time that a loss took which is no module."""
        if self.perhaps_trains:
            self.eval_models[self.perhaps_trains] = True
            self.models[self.perhaps_trains] = True
            self.perhaps_trains = 0
            if self.last_loader is not None and self.last_loader.use == "validate":
                self.trains_after_all(self.last_loader)
            elif self.evaluates():
                self.newest_leaves_validation()
            self.validation = None
        if self.doubts or self.taken_back is not None or self.validation is not None:
            self.gradients_are_taken()
        parts = self.parts
        if parts is not None and parts.optimizers and not self.in_optimizer:
            self.split(self.stepped_at, False)  # neither batch nor model: a loop of bare tensors
        elif parts is not None and self.after == AFTER_FORWARD:
            self.gap(parts, t, True)
            return self.loss_gap(parts, t)
        return 0

    def backward_ends(self, t0, t1, own_ns, loss):
        parts = self.parts or self.current(t0)
        if self.validation is not None:
            self.close_validation(t0)
        self.phase = TRAIN_PHASE
        parts.backward += own_ns
        if self.after == AFTER_BACKWARD and parts.forwards and not self.in_optimizer:
            parts.repeated += 1  # another loss of the same batch
        # An optimiser may call its closure several times.
        parts.backwards = max(1, parts.backwards) if self.in_optimizer else parts.backwards + 1
        parts.fresh = True
        parts.last = t1
        self.after, self.assembled = AFTER_BACKWARD, False
        if loss is not None and (self.in_optimizer or not parts.optimizers):
            parts.loss += loss
            parts.losses += 1

    def updates_by_hand(self, t):
        """A program without an optimiser updates its parameters itself after a backward pass: that counts as
        its optimiser step."""
        if self.by_hand and not self.in_optimizer:
            self.optimizer_ends(HAND, t, t, 0)
            self.by_hand = True

    def optimizer_begins(self, optimizer):
        parts = self.parts
        if parts is not None and id(optimizer) in parts.optimizers:
            self.split(self.stepped_at, True)  # the whole step is in its closure

    def optimizer_ends(self, optimizer, t0, t1, own_ns):
        parts = self.parts or self.current(t0)
        if self.doubts:
            self.prove()
        key = id(optimizer)
        held = self.held
        if held is not None:
            self.held = None
            if key in held.optimizers:
                self.write(held)
            else:
                held.absorb(parts)
                parts = self.parts = held
        parts.optimizer += own_ns
        self.optimizer_ns[key] = self.optimizer_ns.get(key, 0) + own_ns
        parts.last = self.stepped_at = t1
        self.after, self.by_hand, self.assembled = AFTER_STEP, False, False
        if key not in parts.optimizers:
            parts.optimizers += (key,)
        self.optimizer_steps += 1

    def drop_batch(self):
        """A call of the program has failed, so the current batch is not trained. Returns its samples."""
        parts = self.parts
        if parts is None or parts.optimizers or self.validation is not None or self.marking is not None:
            return 0
        before = parts.samples or parts.forward_samples
        parts.drop()
        samples = before - parts.samples
        self.ahead.clear()
        return samples
