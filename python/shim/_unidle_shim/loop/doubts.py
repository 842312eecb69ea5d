"""Validation that is written like training: batches go through a model with gradients enabled, and no
backward pass follows. A base class of Loop.

A backward pass or an optimiser step proves that a loader is for training, and with it all others that have
given batches since the last one. Until then the purpose of a loader is in doubt. It is validation if it ends,
or if another loader continues, without training in between.
"""

from _unidle_shim.loop.validation import VALIDATE_PHASE

_FEWEST = 2  # batches in a row that form a separate loop


class Doubt:
    """Of one loader: the step before its first batch, and the batches it has given since."""

    def __init__(self, loader, t, parts):
        self.loader, self.begin = loader, t
        self.before = parts.copy()
        self.batches = self.samples = 0

    def is_unused(self, parts):
        """Whether its batches have gone through a model without training."""
        before = self.before
        return (
            parts is not None
            and self.batches > 0
            and parts.forwards > before.forwards
            and parts.backwards == before.backwards
            and not parts.optimizers
        )


class Doubts:
    def __init__(self):
        self.doubts = []
        self.taken_back = None  # (Doubt, the step with its batches) of the newest loader taken back

    def doubt(self, loader, t):
        """A batch is requested from the loader, which is not yet proved to be for training."""
        if all(one.loader is not loader for one in self.doubts):
            self.doubts.append(Doubt(loader, t, self.current(t)))

    def gave(self, loader, samples):
        for one in self.doubts:
            if one.loader is loader:
                one.batches += 1
                one.samples += samples

    def prove(self):
        """Training is proved for all loaders in doubt."""
        for one in self.doubts:
            one.loader.proven = True
        self.doubts = []

    def other_loader_continues(self, loader):
        """A batch of `loader` is requested, after those of the loaders in doubt."""
        for one in self.doubts:
            alone = loader.proven or one.batches >= _FEWEST
            if one.loader is not loader and alone and one.is_unused(self.parts):
                self.take_back(one)
                return

    def has_ended(self, loader):
        for one in self.doubts:
            if one.loader is loader and one.is_unused(self.parts):
                self.take_back(one)
                return

    def take_back(self, one):
        """Batches counted as training since the doubt began were validation."""
        one.loader.use, one.loader.with_gradients = "validate", True
        self.taken_back = one, self.parts
        end, self.parts = self.parts.last, one.before
        self.doubts = [other for other in self.doubts if other.begin < one.begin]
        self.ahead = [ahead for ahead in self.ahead if ahead[0] is not one.loader]
        self.phase = VALIDATE_PHASE
        self.validation, self.preview = [one.begin, end, one.samples, True, None], None

    def validates_with_gradients(self):
        """Whether the newest batch is of a loader that counts as validation with gradients."""
        last = self.last_loader
        return last is not None and last.use == "validate" and last.with_gradients

    def gradients_are_taken(self):
        """A backward pass begins. Directly after batches that were taken back, it belongs to them."""
        last = self.last_loader
        if self.taken_back is not None:
            one, self.parts = self.taken_back
            one.loader.use, one.loader.with_gradients = "train", False
            self.validation = None
            one.loader.proven = True
        elif self.validates_with_gradients():
            self.newest_was_trained(last)
        self.taken_back = None
        self.prove()

    def newest_was_trained(self, loader):
        """A loader that counted as validation is training from its newest batch on; earlier batches stay
        validation."""
        loader.use, loader.with_gradients, loader.proven = "train", False, True
        self.newest_leaves_validation()
