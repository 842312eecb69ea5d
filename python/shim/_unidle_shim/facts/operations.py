"""How many differentiable operations a forward pass makes, with a loss that is no module, how long they take
on average, and how often the same model is called."""

_FIRST = 3  # forward passes that also prepare things
_MOST_MODULES = 1000


class Operations:
    """Counts by the numbers that torch gives to the nodes of its graph, per thread. Used by the training
    thread alone."""

    def __init__(self, torch):
        self.number = getattr(torch.autograd, "_get_sequence_nr", None)  # torch 2.1 and later
        self.before = self.passes = self.count = self.ns = 0
        self.module = None  # id of the one that is called
        self.after = None  # torch's number at the end of the newest forward pass
        self.modules = {}  # id of an outermost module -> [calls, ns]

    def begin(self, module):
        if self.number is not None:
            self.module, self.before = id(module), self.number()

    def end(self, own_ns):
        module, self.module, self.after = self.module, None, None
        if module is None:
            return
        self.passes += 1
        if self.passes > _FIRST:
            self.after = self.number()
            self.count += self.after - self.before
            self.ns += own_ns
            if module in self.modules or len(self.modules) < _MOST_MODULES:
                entry = self.modules.setdefault(module, [0, 0])
                entry[0] += 1
                entry[1] += own_ns

    def loss_ends(self, own_ns):
        """A loss that is no module was computed since the newest forward pass."""
        if self.after is not None:
            self.count += self.number() - self.after
            self.ns += own_ns
            self.after = None

    def note(self, loop):
        passes = self.passes - _FIRST
        if passes <= 0 or self.count <= 0:
            return None
        calls, ns = max(list(self.modules.values()))
        return {
            "type": "operations",
            "passes": passes,
            "count": self.count,
            "seconds": self.ns * 1e-9,
            "backwards": loop.backwards,
            "most_called": calls,
            "most_called_seconds": ns * 1e-9,
            "previews": loop.previews,
            "preview_samples": loop.preview_samples,
        }
