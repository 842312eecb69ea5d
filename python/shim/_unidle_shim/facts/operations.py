"""How many differentiable operations a forward pass makes, and how long they take on average."""

_FIRST = 3  # forward passes that also prepare things


class Operations:
    """Counts by the numbers that torch gives to the nodes of its graph, per thread. Used by the training
    thread alone."""

    def __init__(self, torch):
        self.number = getattr(torch.autograd, "_get_sequence_nr", None)  # torch 2.1 and later
        self.before = self.passes = self.count = self.ns = 0

    def begin(self):
        if self.number is not None:
            self.before = self.number()

    def end(self, own_ns):
        if self.number is None:
            return
        self.passes += 1
        if self.passes > _FIRST:
            self.count += self.number() - self.before
            self.ns += own_ns

    def note(self, steps):
        """`steps`: the finished ones."""
        passes = self.passes - _FIRST
        if passes <= 0 or self.count <= 0:
            return None
        return {
            "type": "operations",
            "passes": passes,
            "steps": steps,
            "count": self.count,
            "seconds": self.ns * 1e-9,
        }
