"""Training steps that are only marked, not observed in full, to observe short steps at low overhead.

A stretch is a sequence of such steps. In a stretch only the fetch of a batch is patched. It leaves a mark:
when the batch was requested and when it was received. The forward pass, the backward pass and usually the
optimiser are not patched. A stretch ends when it is time to observe steps in full again, or at anything that
is not part of such a step: another loader, the end of an epoch, eval(). Then the marks are converted into the
events of the steps, with length, samples and input wait. Copies, waits and logging are rare and expensive in
themselves. They are always timed, and their time is distributed over the steps of the stretch.

The number of samples in a batch and the number of optimiser steps are computed afterwards (regular_steps.py).
If that is impossible, both are marked as well. The remaining patch is written in C++
(python/native/light.cpp) where that library can be loaded.
"""

import sys
import weakref

from _unidle_shim.host import native
from _unidle_shim.loop import regular_steps
from _unidle_shim.loop.loop import AFTER_STEP, HAND, now
from _unidle_shim.loop.marks_file import MOST, Stretch
from _unidle_shim.loop.step_events import write_marked
from _unidle_shim.loop.step_parts import Parts

_ALIKE = 2  # steps before a stretch that consist of the same calls
_FEWEST = 8  # steps that are worth a stretch
_MOST_STEPS = MOST
_NEVER = 1 << 63  # ns
# Our changes of a class: from Python 3.13, the attributes of a class that was changed a thousand times are
# never cached again.
_MOST_CHANGES = 400


class Marks:
    """The marks of one stretch. For each batch: when it was requested and received (ns), and its samples. For
    the optimiser: when its steps were over (ns)."""

    def __init__(self):
        self.asked, self.got, self.sizes, self.stepped = [], [], [], []
        self.alive = True  # the stretch continues


class Patch:
    """A patch that is replaced by a shorter function while steps are only marked. `shorter` makes that
    function from MarkedSteps."""

    def __init__(self, owner, name, ours, shorter):
        self.owner, self.name, self.ours, self.shorter, self.there = owner, name, ours, shorter, None

    def step_aside(self, marking):
        if self.owner.__dict__.get(self.name) is self.ours:  # otherwise the program's patch stays
            self.there = self.shorter(marking)
            setattr(self.owner, self.name, self.there)

    def step_back(self):
        there, self.there = self.there, None
        if there is not None and self.owner.__dict__.get(self.name) is there:
            setattr(self.owner, self.name, self.ours)


class MarkedSteps:
    """Begins, follows and ends stretches. Only the training thread uses it."""

    def __init__(self, state):
        self.state = state
        self.native = native.library()
        self.iterator = 0  # id of the loader's iterator; 0 without a loader
        self.optimizer = 0  # id of the optimiser whose step is the last one of a training step
        self.others = ()  # ids of the optimisers that step before it
        self.scaled = False  # a GradScaler calls its step, and may skip it
        self.marks = Marks()
        self.plain = None  # short_fetches.Plain, or Fetching in C: batches leave times only
        self.versions = None  # regular_steps.Versions at the end of the last stretch
        self.rhythm = None  # regular_steps.Rhythm, if steps and samples are counted afterwards
        self.size = 0  # samples per batch in that case
        self.each = 0  # batches per step
        self.may_count = True  # False once the count did not match the batches
        self.followed = None  # weak reference to the iterator
        self.fetch = None  # the shorter function that the iterator's patch calls
        self.shorter = []  # patches that are currently replaced
        self.may_change = True
        self.until_ns = self.most = 0
        # Sample costs of the loader, if the stretch inspects each batch: this process makes the samples, and
        # they are not cheap.
        self.samples = None
        self.changes = 0
        self.stretch = None  # marks_file.Stretch; False without space for its file
        self.shared = None  # the same, once it receives the marks of this stretch

    def begin(self, loop, until_ns):
        """Starts a stretch. Returns False if it cannot: steps are not alike, or something has to see each of
        them."""
        state, module_classes = self.state, self.state.module_classes
        left = loop.max_steps - loop.steps - 2 if loop.max_steps else _MOST_STEPS
        optimizers, fetches = loop.alike
        if (
            loop.alike_steps < _ALIKE
            or left < _FEWEST
            or not optimizers
            or loop.on_step is not None
            or loop.validation is not None
            or loop.pending is not None
            or module_classes.is_searching(loop.steps)
        ):
            return False
        self.optimizer, self.others = optimizers[-1], optimizers[:-1]
        self.scaled = state.facts.scaler is not None
        self.iterator = loop.iterator if fetches else 0
        self.until_ns, self.most = until_ns, min(_MOST_STEPS, left)
        self.marks, self.plain, self.fetch, self.followed, self.shared = Marks(), None, None, None, None
        loader = loop.last_loader
        costly = loader is not None and loader.samples.count and not loader.samples.cheap
        self.samples = loader.samples if costly and loop.own_cost.may_inspect(fetches, now()) else None
        self.changes += 1
        self.may_change = self.changes < _MOST_CHANGES or sys.version_info < (3, 13)
        self.each = fetches
        self.rhythm = self._rhythm(loop, loader) if fetches else None
        self._step_aside()
        if state.device is not None:
            state.device.drop()
        state.waits.loss = None
        state.marking = loop.marking = self
        return True

    def _rhythm(self, loop, loader):
        """Returns a regular_steps.Rhythm if samples and steps can be counted afterwards: batches have one
        size, and each step changes some parameter equally often. Otherwise None."""
        versions, self.size = self.versions, regular_steps.batch_size(loader, self.state.torch)
        if (
            not self.may_count
            or self.scaled
            or self.samples is not None
            or not self.size
            or versions is None
            or versions.optimizer != self.optimizer
        ):
            return None
        return versions.rhythm(loop.steps)

    def steps_seen(self, before):
        """Finished steps, of which `before` were written; None with a loader, whose end ends the stretch."""
        return None if self.iterator else before + len(self.marks.stepped)

    def asks(self):
        """Whether a batch is being fetched."""
        return self.plain is not None and self.plain.asking

    def _step_aside(self):
        state = self.state
        if self.may_change and not state.actuators.adapts:
            state.module_classes.step_aside()
        state.backward.step_aside(self.optimizer == id(HAND))

    def first_fetch(self, iterator):
        """The first batch of the stretch is requested. The batch being fetched when it began is observed in
        full."""
        fetches = next(patch for patch in self.state.fetches if isinstance(iterator, patch.owner))
        if self.fetch is None:
            self._share(self.state.loop)
            self.fetch, self.followed = fetches.shorter(self), weakref.ref(iterator)
        self.shorten(fetches)
        if self.samples is None:
            for patch in self.state.makers:
                self.shorten(patch)

    def _share(self, loop):
        """From here on, also writes the marks to a file, so that the steps survive a killed process."""
        if self.stretch is None:
            try:
                self.stretch = Stretch()
            except (OSError, ValueError):
                self.stretch = False
        parts = loop.parts
        if not self.stretch or parts is None:
            return
        stepped = parts.optimizers and parts.optimizers[-1] == self.optimizer
        self.stretch.begin(
            loop.steps,
            parts,
            self.each if self.rhythm is not None else 0,
            self.size if self.rhythm is not None else 0,
            loop.usual_samples,
            max(loop.micro, key=loop.micro.get),
            loop.stepped_at if stepped else 0,
        )
        self.shared = self.stretch
        for number, t in enumerate(self.marks.stepped):
            self.shared.stepped[number] = t

    def shorten(self, patch):
        if patch.there is None and self.may_change:
            patch.step_aside(self)
            self.shorter.append(patch)

    def step_back(self):
        """Puts all patches back."""
        for patch in self.shorter:
            patch.step_back()
        self.shorter = []
        self.state.module_classes.step_back()
        self.state.backward.step_back()

    def give_up(self):
        """Observation ends: shorter functions that the program has kept only call the original from now
        on."""
        self.step_back()
        self._forget()

    def _forget(self):
        """Shorter functions of this stretch that the program has kept only call the original from now on."""
        self.marks.alive = False
        if self.plain is not None:
            self.plain.alive = False

    def mark(self, t):
        """The last optimiser of a step has stepped."""
        stepped = self.marks.stepped
        if not stepped and not self.iterator:
            self._share(self.state.loop)
        if self.shared is not None and len(stepped) < MOST:
            self.shared.stepped[len(stepped)] = t
        stepped.append(t)
        if not self.iterator and (t >= self.until_ns or len(stepped) >= self.most):
            self.state.loop.look_up()

    def end(self, loop):
        """Ends the stretch: writes its events, and observes the next steps in full."""
        self.state.marking = loop.marking = None
        self.step_back()
        self._forget()
        before = loop.steps
        self._tell(loop)
        if self.shared is not None:
            self.shared.end()
        self._take_versions(loop)
        loop.own_cost.resume(loop.steps, now(), max(1, loop.steps - before))

    def _take_versions(self, loop):
        """Until the next stretch, the steps show how often each changes a parameter."""
        optimizer = next(
            (one for one in self.state.facts.living_optimizers() if id(one) == self.optimizer), None
        )
        stepped = self.optimizer in loop.parts.optimizers
        self.versions = (
            regular_steps.Versions(optimizer, loop.steps + stepped) if optimizer is not None else None
        )

    def _marked(self, loop, parts):
        """(requested, received, sizes, stepped) of the stretch."""
        marks, plain = self.marks, self.plain
        asked, got, sizes = marks.asked, marks.got, marks.sizes
        if plain is not None:
            asked, got = plain.asked, plain.got
            sizes = regular_steps.sizes(loop.last_loader, self.size, self.followed(), len(asked))
        if self.rhythm is None:
            return asked, got, sizes, marks.stepped
        before, each = parts.fetches, self.each
        batches, steps = before + len(asked), self.rhythm.steps()
        if steps is None or not regular_steps.fits(batches, each, steps):
            self.may_count = False  # from now on each is marked
            if steps is None or steps * each > batches:
                steps = batches // each  # something else has changed the parameter
            else:
                each = batches // max(1, steps)  # some were left out
        self.rhythm = None
        stepped = (
            marks.stepped
            if len(marks.stepped) >= steps
            else regular_steps.marks(asked, before, each, steps, now())
        )
        return asked, got, sizes, stepped

    def _tell(self, loop):
        """Writes the steps of the stretch. The last one stays open, because it continues."""
        parts = loop.parts or Parts(now())
        marked = asked, got, sizes, _ = self._marked(loop, parts)
        ended = self._cut(
            parts,
            marked,
            loop.stepped_at if parts.optimizers and parts.optimizers[-1] == self.optimizer else 0,
        )
        steps, begin, waited, samples, fetches, stepped = ended
        self._write(loop, parts, steps)
        if asked:
            self._account(loop.last_loader, asked[0], sum(got) - sum(asked), sum(sizes), len(asked))
        if steps:
            parts = Parts(begin)
        loop.parts = parts
        parts.incomplete = True
        parts.input, parts.samples, parts.fetches = waited, samples, fetches
        parts.newest = sizes[-1] if fetches and sizes else 0
        parts.forwards = parts.backwards = fetches
        parts.last = parts.begin + waited
        loop.after = AFTER_STEP
        if stepped:
            parts.optimizers = self.others + (self.optimizer,)
            parts.last = loop.stepped_at = stepped

    @staticmethod
    def _cut(parts, marked, stepped):
        """Returns the finished steps, each (begin, length, input wait, samples, batches), and the same for
        the unfinished one, with the end of its optimiser step, if any. A step is over when the next batch is
        requested, or the optimiser steps again."""
        steps, begin, waited, samples, fetches = [], parts.begin, parts.input, parts.samples, parts.fetches
        all_asked, all_got, all_sizes, all_stepped = marked
        marks = iter(all_stepped)
        mark = next(marks, _NEVER)
        for asked, got, size in zip(all_asked + [_NEVER - 1], all_got + [_NEVER - 1], all_sizes + [0]):
            while mark <= asked:
                if stepped:
                    steps.append((begin, stepped - begin, waited, samples, fetches))
                    begin, waited, samples, fetches = stepped, 0, 0, 0
                stepped, mark = mark, next(marks, _NEVER)
            if asked >= _NEVER - 1:
                break
            if stepped:
                steps.append((begin, asked - begin, waited, samples, fetches))
                begin, waited, samples, fetches, stepped = asked, 0, 0, 0, 0
            waited += got - asked
            samples += size
            fetches += 1
        return steps, begin, waited, samples, fetches, stepped

    def _write(self, loop, parts, steps):
        ring, number, counts, usual = loop.ring, loop.steps, loop.micro, loop.usual_samples
        usual_micro, trained = max(counts, key=counts.get), 0
        shares = _shared(parts, steps) if parts.rare else None
        for index, (begin, length, waited, samples, fetches) in enumerate(steps):
            samples = samples or usual
            micro = usual_micro if fetches in (0, self.each) else fetches
            waited = (waited if waited > 0 else 0) if fetches else None
            write_marked(ring, begin, length, number, samples, micro, waited, shares and shares[index])
            counts[micro] = counts.get(micro, 0) + 1
            trained += samples
            number += 1
        loop.samples += trained
        loop.steps = number

    def _account(self, loader, first, waited_ns, samples, batches):
        loader.wait_ns += waited_ns
        loader.batches += batches
        if loader.samples.count and self.samples is None:
            loader.samples.count_unwatched(self.state.ring, first, waited_ns, samples, batches)


def _shared(parts, steps):
    """Distributes the times of the stretch over its steps: copies in proportion to their length, waits over
    the longest ones; logging and flushing go to the first. Per step: [ns of copies, ns of waits, number of
    waits, ns of logging, ns of flushing]."""
    whole = sum(step[1] for step in steps) or 1
    shares = [[parts.transfer * step[1] // whole, 0, 0, 0, 0] for step in steps]
    longest = sorted(range(len(steps)), key=lambda index: -steps[index][1])[: parts.syncs]
    whole = sum(steps[index][1] for index in longest) or 1
    for rank, index in enumerate(longest):
        room = max(0, steps[index][1] - steps[index][2] - shares[index][0])
        shares[index][1] = min(room, parts.sync * steps[index][1] // whole)
        shares[index][2] = parts.syncs // len(longest) + (rank < parts.syncs % len(longest))
    if shares:
        shares[0][3:] = parts.log, parts.flush
    return shares
