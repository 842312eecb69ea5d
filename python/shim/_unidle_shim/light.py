"""Steps that go by light: only fetching the batch and stepping the optimiser leave a mark, all else is as without us.

Forward and backward passes are not patched meanwhile. When the stretch is over, or something comes that is not of such a
step (another loader, an epoch's end, eval()), the marks become the events of the steps: their length, samples and input wait. Copies,
waits and logging, which come seldom and are dear by themselves, are timed as ever and laid upon the steps of the stretch.
"""

import sys

from .loop import AFTER_STEP, HAND, now
from .parts import Parts
from .probe import FLUSH, INPUT, LOG, STEP, SYNC, TRANSFER

_ALIKE = 2          # steps before that were made up of the same calls
_FEWEST = 8
_MOST_MARKS = 16384
_AT_ONCE = 32         # steps that are written together
_MOST_CHANGES = 400  # of a class: from Python 3.13 one that was changed a thousand times is never cached again


class Light:
    def __init__(self, state):
        self.state = state
        self.iterator = 0    # id of the one that is asked for batches; 0 without a loader
        self.optimizer = 0   # id of the one whose step is the last of a training step
        self.others = ()     # ids of those before it
        self.scaled = False  # it is stepped by a GradScaler, which may leave it out
        self.marks = []      # of a batch: begin, end, samples; of an optimiser: its end, negative
        self.until_ns = self.most = 0
        self.samples = None  # of the loader, where its samples are made in this process and are not cheap
        self.changes = 0

    def begin(self, loop, until_ns):
        """From here on; False where steps are not alike or somebody else follows them."""
        state, roots = self.state, self.state.roots
        left = loop.max_steps - loop.steps - 2 if loop.max_steps else _MOST_MARKS
        optimizers, fetches = loop.alike
        if (loop.alike_steps < _ALIKE or left < _FEWEST or not optimizers or loop.on_step is not None or loop.validation is not None
                or loop.pending is not None or roots.looks_out(loop.steps)):
            return False
        self.optimizer, self.others = optimizers[-1], optimizers[:-1]
        self.scaled = state.facts.scaler is not None
        self.iterator = loop.iterator if fetches else 0
        self.until_ns, self.most, self.marks = until_ns, min(_MOST_MARKS, (4 if fetches else 1) * left), []
        self.changes += 1
        if not state.actuators.adapts and (self.changes < _MOST_CHANGES or sys.version_info < (3, 13)):
            roots.step_aside()
        state.backward.step_aside(self.optimizer == id(HAND))
        loader = loop.last_loader
        self.samples = loader.samples if loader is not None and loader.samples.count and not loader.samples.cheap else None
        state.waits.loss_pointer = 0
        state.light = loop.light = self
        return True

    def mark(self):
        """The last optimiser of a step has stepped."""
        t = now()
        self.marks.append(-t)
        if not self.iterator and (t >= self.until_ns or len(self.marks) >= self.most):
            self.state.loop.look_up()

    def end(self, loop):
        """The next steps are seen in full."""
        self.state.light = loop.light = None
        self.state.roots.step_back()
        self.state.backward.step_back()
        before = loop.steps
        self._tell(loop)
        loop.weight.resume(loop.steps, now(), max(1, loop.steps - before))

    def _tell(self, loop):
        """Of the steps of the stretch. The last one stays open: it goes on."""
        steps, parts = [], loop.parts or Parts(now())
        begin, waited, samples, fetches = parts.begin, parts.input, parts.samples, parts.fetches
        stepped = loop.stepped_at if parts.optimizers and parts.optimizers[-1] == self.optimizer else 0
        marks, at, waited_all, fetched, first = iter(self.marks), 0, 0, 0, 0
        for at in marks:
            if stepped:  # the step before is over
                end = at if at > 0 else stepped
                steps.append((begin, end - begin, waited, samples, fetches))
                begin, waited, samples, fetches, stepped = end, 0, 0, 0, 0
            if at < 0:
                stepped = -at
            else:
                end, size = next(marks), next(marks)
                first = first or at
                waited += end - at
                waited_all += end - at
                samples += size
                fetched += size
                fetches += 1
        self._write(loop, parts, steps)
        if first:
            self._account(loop.last_loader, first, waited_all, fetched, sum(1 for at in self.marks if at > 0) // 3)
        self.marks = []
        loop.parts = parts = Parts(begin)
        parts.dim = True
        parts.input, parts.samples, parts.fetches = waited, samples, fetches
        parts.forwards = parts.backwards = fetches
        parts.last = parts.begin + waited
        loop.after = AFTER_STEP
        if stepped:
            parts.optimizers = self.others + (self.optimizer,)
            parts.last = loop.stepped_at = stepped

    def _write(self, loop, parts, steps):
        ring, number, usual, micro = loop.ring, loop.steps, loop.usual_samples, max(loop.micro, key=loop.micro.get)
        shares = _laid(parts, steps) if parts.rare else None
        row, count, values = "", 0, []  # steps in a row that are made up of the same events go out together
        for index, (begin, length, waited, samples, fetches) in enumerate(steps):
            samples, micro = samples or usual, fetches or micro
            layout, before = ("pS", (begin, waited, number, INPUT)) if fetches else ("S", ())
            if shares is not None:
                rare, events = _rare(shares[index], parts.pinned, begin, number)
                layout, before = rare + layout, events + before
            if layout != row or count == _AT_ONCE:
                ring.emit_all(row * count, values)
                row, count, values = layout, 0, []
            count += 1
            values += before
            values += (begin, length, number, samples, micro, STEP)
            loop.micro[micro] = loop.micro.get(micro, 0) + 1
            loop.samples += samples
            number += 1
        ring.emit_all(row * count, values)
        loop.steps = number
        for kind, ns in ((LOG, parts.log), (FLUSH, parts.flush)):
            if ns:
                ring.emit(kind, parts.begin, ns, number)

    def _account(self, loader, first, waited_ns, samples, batches):
        loader.wait_ns += waited_ns
        loader.batches += batches
        if loader.samples.cheap:
            loader.samples.pass_by(self.state.ring, first, waited_ns, samples, batches)


def _rare(share, pinned, begin, number):
    moved, transfer, sync, syncs = share
    layout, values = "", ()
    if moved or transfer:
        layout, values = "e", (begin, transfer, number, moved, pinned, 0.0, TRANSFER)
    if syncs:
        layout, values = layout + "e", values + (begin, sync, number, 0, 0, float(syncs), SYNC)
    return layout, values


def _laid(parts, steps):
    """Copies in proportion to the length of the steps, waits upon the longest ones: (bytes, ns of copies, ns of waits, waits)."""
    whole = sum(step[1] for step in steps) or 1
    shares = [[parts.moved * step[1] // whole, parts.transfer * step[1] // whole, 0, 0] for step in steps]
    longest = sorted(range(len(steps)), key=lambda index: -steps[index][1])[:parts.syncs]
    whole = sum(steps[index][1] for index in longest) or 1
    for rank, index in enumerate(longest):
        room = max(0, steps[index][1] - steps[index][2] - shares[index][1])
        shares[index][2] = min(room, parts.sync * steps[index][1] // whole)
        shares[index][3] = parts.syncs // len(longest) + (rank < parts.syncs % len(longest))
    return shares
