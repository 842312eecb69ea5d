"""Which batches and forward passes are validation, often known only once they were seen: a part of Loop."""

import time

from . import probe

now = time.monotonic_ns
INPUT_PHASE, TRAIN_PHASE, VALIDATE_PHASE = "input", "train", "validate"


class Validations:
    def settle_pending(self, validates, t):
        """The first batch of a loader has reached a model: now its use is known."""
        loader, begin, input_ns = self.pending
        self.pending = None
        loader.use = "validate" if validates else "train"
        if not validates:
            self.close_validation(begin)
            return
        parts = self.parts
        if parts is not None:
            parts.input = max(0, parts.input - input_ns)
            self.open_validation(begin)
            self.validation[2] += parts.samples + sum(samples for source, samples in self.ahead if source is loader)
            self.validation[3] = True
            self.ahead = [one for one in self.ahead if one[0] is not loader]
            parts.samples = parts.fetches = 0
            parts.fresh = True
        self.touch_validation(t)

    def trains_after_all(self, loader):
        """A frozen model saw the batches first, and so the loader was taken for one of validation."""
        loader.use = "train"
        validation, self.validation = self.validation, None
        parts = self.current(validation[0] if validation is not None else now())
        parts.fetches += 1
        parts.samples += validation[2] if validation is not None else 0
        if validation is not None and not parts.optimizers:
            parts.begin = min(parts.begin, validation[0])

    def validates_after_all(self, t):
        """The model is evaluated on the batches of the training loader."""
        parts = self.parts
        self.open_validation(parts.begin)
        self.validation[2], self.validation[3] = parts.samples, False
        parts.input = parts.samples = parts.fetches = 0
        parts.fresh = True
        self.touch_validation(t)

    def open_validation(self, t):
        if self.validation is None:
            self.validation = [t, t, 0, self.phase == INPUT_PHASE]
            self.lone_eval = None

    def touch_validation(self, t):
        if self.validation is not None:
            self.validation[1] = t

    def close_validation(self, t):
        validation = self.validation
        if validation is None:
            return
        self.validation = None
        self.phase = TRAIN_PHASE
        begin, end, samples, _ = validation
        self.validations += 1
        self.ring.emit(probe.VALIDATE, begin, max(0, end - begin), self.steps, samples)
        parts = self.parts
        if parts is not None and not (parts.input or parts.forward or parts.optimizers) and t is not None:
            parts.begin = parts.last = end
