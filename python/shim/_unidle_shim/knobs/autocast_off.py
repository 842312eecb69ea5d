"""precision.amp=off: the program's autocast regions are entered and change nothing, wherever they are. That
includes those of compiled code, which are made while it is compiled."""

from _unidle_shim.host.patching import put


def install(torch):
    original = torch.autocast.__init__

    def init(self, *args, **kwargs):
        original(self, *args, **kwargs)
        self._enabled = False

    put(torch.autocast, "__init__", init)
