"""Tensors that claim to lie on a device, where there is none; what `.item()` of them is served with, copies
that arrive three copies later. To be imported before torch."""

try:
    from _unidle_shim.knobs import metrics_interval
except ImportError:  # the program runs unobserved
    metrics_interval = None

waited = [0, 0]  # reads that were served later; of these, waited for


class SlowCopies:
    kind = "cpu"
    made = 0

    class Event:
        def __init__(self, number):
            self.number = number

        def query(self):
            return SlowCopies.made >= self.number + 3

    def __init__(self, torch):
        self.Tensor = torch.Tensor

    def begin(self, tensor):
        SlowCopies.made += 1
        waited[0] += 1
        return tensor.detach().as_subclass(self.Tensor).clone(), SlowCopies.Event(SlowCopies.made)

    def end(self, host, event):
        waited[1] += not event.query()
        return host.numpy().item()


if metrics_interval is not None:
    metrics_interval.CudaCopies = SlowCopies

import torch  # noqa: E402


class Claimed(torch.Tensor):
    is_cpu = property(lambda self: False)
