"""Distinguishes validation from training, batch by batch and forward pass by forward pass. A base class of
Loop.

The purpose of a batch is often known only after it was used, so counts are moved afterwards.
"""

import time

from _unidle_shim.host import event_kinds

now = time.monotonic_ns
EACH_STEP = 1  # at most this many steps between two previews
_PASSES_OF_PLAY = 8  # at least
_MOST_CALLS = 16  # previews whose call is looked up
INPUT_PHASE, TRAIN_PHASE, VALIDATE_PHASE = "input", "train", "validate"


class Preview:
    """Forward passes that train nothing, on data that did not come from a loader. They may be validation,
    samples made for inspection, or the actions of an agent that plays. What the program does with the results
    decides."""

    def __init__(self, of_training, evaluates):
        self.evaluates = evaluates  # in evaluation mode, which most often is validation
        self.passes = 0
        self.call = None  # (code, line) of the program that leads to its first pass, where it was looked up
        self.forward_ns = self.log_ns = 0
        self.told = []  # (logging_calls.Logging, place, ns)
        self.drawn = None  # the newest of `told` that made a picture
        self.of_training = of_training  # whether the newest pass is of a model that trains
        self.most = 0  # samples of a forward pass, of a model that trains if there is one
        self.most_of_training = False

    def passed(self, ns, samples):
        """Called when a forward pass has ended. A target network, which is not trained, may see whole batches
        while the model that trains chooses single actions."""
        self.forward_ns += ns
        self.passes += 1
        if self.of_training and not self.most_of_training:
            self.most, self.most_of_training = samples, True
        elif self.of_training == self.most_of_training:
            self.most = max(self.most, samples)

    def tell(self, logging, place, own_ns, draws):
        self.told.append((logging, place, own_ns))
        self.log_ns += own_ns
        if draws:
            self.drawn = self.told[-1]


class Validations:
    def settle_pending(self, validates, t):
        """The first batch of a loader has reached a model, which shows whether the loader is for
        validation."""
        loader, begin, input_ns, _ = self.pending
        self.pending = None
        loader.use = "validate" if validates else "train"
        if not validates:
            self.close_validation(begin)
            return
        self.preview = None
        parts = self.parts
        if parts is not None:
            parts.input = max(0, parts.input - input_ns)
            self.open_validation(begin)
            self.validation[3] = True
            self.take_batches(loader, begin, input_ns)
        self.touch_validation(t)

    def drop_pending(self):
        """Another loader goes on, and no model got the batches: they are neither trained nor validated."""
        loader, _, input_ns, _ = self.pending
        self.pending, parts = None, self.parts
        if parts is not None and not parts.forwards:
            parts.input = max(0, parts.input - input_ns)
            self.take_from_step(loader)

    def take_from_step(self, loader):
        """Takes the batches, all of this loader, from the step; returns their samples."""
        parts = self.parts
        samples = parts.samples + sum(samples for source, samples in self.ahead if source is loader)
        self.ahead = [one for one in self.ahead if one[0] is not loader]
        parts.samples = parts.fetches = 0
        parts.fresh = True
        return samples

    def take_batches(self, loader, begin, input_ns):
        """The step's batches, all of this loader, are for validation."""
        samples = self.take_from_step(loader)
        self.validation[2] += samples
        self.validated = [begin, samples, input_ns, self.parts.forward]

    def trains_after_all(self, loader):
        """The loader is for training. It was taken for validation because a frozen model used its batches
        first."""
        loader.use = "train"
        self.newest_leaves_validation()

    def validates_after_all(self, t):
        """The model is evaluated on a batch of the training loader: counts it as validation, and with it the
        following batches of this iterator until one of them is trained."""
        parts = self.parts
        self.open_validation(parts.begin)
        self.validation[3] = parts.fetches > 0
        if parts.fetches:
            self.validation[4] = self.iterator
            self.take_batches(self.last_loader, parts.begin, parts.input)
        parts.input = parts.forward = 0
        parts.looked = None
        self.touch_validation(t)

    def evaluates(self):
        """Whether the validation is a pass over the training loader, by the iterator of the newest batch."""
        return self.validation is not None and self.validation[4] == self.iterator

    def evaluation_goes_on(self):
        """Whether the next batch of a loader for training continues a pass over it without training."""
        parts = self.parts
        if parts is not None and parts.looked == self.iterator and parts.is_untrained():
            self.validates_after_all(parts.last)
        return self.evaluates()

    def newest_leaves_validation(self):
        """The newest batch for validation is trained; earlier ones stay validation."""
        begin, samples, input_ns, forward_ns = self.validated
        validation = self.validation
        if validation is not None:
            validation[1], validation[2] = min(validation[1], begin), validation[2] - samples
            if validation[2] <= 0:
                self.validation = None
            self.close_validation(begin)
        parts = self.current(begin)
        if parts.fresh:
            parts.take(samples)
            parts.place = self.fetch_place
            parts.input += input_ns
            parts.forward += forward_ns
        if validation is not None and not parts.optimizers:
            parts.begin = min(parts.begin, begin)

    def pass_begins(self, t):
        """A new pass over a loader begins. One directly after another of validation is another validation."""
        if self.validation is not None and self.validation[2] and self.validation[3]:
            self.validation[1] = t
            self.close_validation(t)

    def open_validation(self, t, preview=None):
        self.look_up()  # the step before, once written, may have begun a stretch of marked steps
        if self.validation is None:
            self.validation = [t, t, 0, self.phase == INPUT_PHASE, None]
            self.lone_eval, self.preview = None, preview
            self.previews += preview is not None

    def touch_validation(self, t):
        if self.validation is not None:
            self.validation[1] = t

    def close_validation(self, t):
        validation = self.validation
        if validation is None:
            return
        self.validation = None
        self.phase = TRAIN_PHASE
        begin, end, samples, *_ = validation
        preview, self.preview = self.preview, None
        if preview is not None:
            looks = self.plays(preview, end - begin) if preview.evaluates else self.only_looks(preview)
            if looks and self.steps:
                self.preview_samples = preview.most
                self.leave_to_step(preview, begin, end)
            if looks or not (self.steps or preview.evaluates):
                return  # before the first step: start-up
        self.validations += 1
        if self.validated_at != self.steps:
            self.validated_at, self.validated_steps = self.steps, self.validated_steps + 1
        self.ring.emit(event_kinds.VALIDATE, begin, max(0, end - begin), self.steps, samples)
        parts = self.parts
        if parts is not None and not (parts.input or parts.forward or parts.optimizers) and t is not None:
            parts.begin = parts.last = end

    def asks_for_call(self):
        """Whether to look up which line led to this forward pass: the first one of a preview, among the first
        previews or in a program that draws."""
        preview = self.preview
        return preview is not None and not preview.passes and (self.drawing or self.previews <= _MOST_CALLS)

    def only_looks(self, preview):
        """Whether the preview only makes samples for inspection. So it is if the result was drawn, or is
        logged in every step, which is too often for validation; if each forward pass had fewer samples than
        training has, as when a text is generated word by word or an environment is played; or if every step
        has such a pass over as many samples as it trains on, as with a target network or a teacher."""
        last, self.previewed_at = self.previewed_at, self.steps
        if preview.drawn is not None or preview.most < self.usual_samples:
            return True
        each_step = self.steps - last <= EACH_STEP
        return each_step and (bool(preview.told) or preview.most == self.usual_samples)

    def plays(self, preview, ns):
        """Whether the passes in evaluation mode choose actions: several before every step, each with fewer
        samples than training has, and with more time spent between them than in them."""
        last, self.played_at = self.played_at, self.steps
        self.playing = (
            preview.passes >= _PASSES_OF_PLAY
            and 2 * preview.forward_ns < ns
            and (not self.steps or (last is not None and self.steps - last <= EACH_STEP))
            and self.last_loader is None
            and (preview.most < self.usual_samples or not self.steps)
        )
        return self.playing

    def leave_to_step(self, preview, begin, end):
        """Adds the preview to the next step; drawing and writing count as logging, and so does all that was
        done for a picture."""
        parts = self.current(begin)
        parts.begin = min(parts.begin, begin)
        if preview.drawn is None:
            parts.forward += preview.forward_ns
        else:
            self.drawing = True
            logging, place, _ = preview.drawn
            for_picture_ns = max(0, end - begin - preview.log_ns)
            own_line = preview.call is not None and preview.call != place
            logging.count(preview.call or place, for_picture_ns, calls=int(own_line))
            parts.log += for_picture_ns
        parts.log += preview.log_ns
        parts.rare = parts.rare or bool(preview.told)
        parts.last = max(parts.last, end)
        for logging, place, own_ns in preview.told:
            logging.count(place, own_ns)
