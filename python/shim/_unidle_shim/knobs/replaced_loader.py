"""loader.replace: a DataLoader gives the batches of a Loader of unidle.data, whose source is like its data
set. Only where unidle.data.like() knows the data set, and has compared samples that are not random."""

import importlib
import sys
import weakref

from _unidle_shim.facts import replaceable
from _unidle_shim.host.guard import caught
from _unidle_shim.host.patching import put
from _unidle_shim.host.whose import pass_on

KNOB = "loader.replace"


class Replaced:
    """`value`: what of it is in force in this process, for reading back."""

    def __init__(self, actuators):
        self._actuators = actuators
        self._loaders = []  # (weak reference to the DataLoader, Loader or None)
        self.value = None

    def stands_for(self, real):
        """The Loader that is iterated over instead; None where there is none."""
        for known, loader in self._loaders:
            if known() is real:
                return loader
        loop = self._actuators.state.loop
        if loop is None:
            return None  # a thread that is not followed
        inside, loop.inside = loop.inside, True  # samples that are compared are no batches of the program
        try:
            loader = self._made(real)
        finally:
            loop.inside = inside
        self._loaders = [(known, one) for known, one in self._loaders if known() is not None]
        self._loaders.append((weakref.ref(real), loader))
        return loader

    def _made(self, real):
        try:
            why = replaceable.why_not(real)
            if why is None:
                loader = self._open(real)
                self.value = True
                self._actuators.say(KNOB, True, "taken", None, True)
                return loader
        except Exception as failure:  # UsageError of like(), and whatever a source says of its files
            pass_on(failure)
            why = str(failure)
        # Another loader (of validation, say) is none of its business.
        self._actuators.say(KNOB, True, "refused-in-part", why[:300])
        return None

    def _open(self, real):
        data = _package()
        order = replaceable.order_of(real)
        order.setdefault("rank", 0)
        order.setdefault("world", 1)
        source = data.like(real.dataset)
        seed = self._actuators.state.torch.initial_seed()
        return data.Loader(
            source,
            batch_size=real.batch_size,
            seed=seed,
            batch_transform=list,
            pin_memory=bool(real.pin_memory),  # or the program's copies to the device would block
            **order,
        )


def _package():
    """Of the program's packages, or the one beside the shim."""
    try:
        return importlib.import_module("unidle.data")
    except ImportError:
        sys.path.append(replaceable.PACKAGES)
        try:
            return importlib.import_module("unidle.data")
        finally:
            sys.path.remove(replaceable.PACKAGES)


def install(actuators):
    """Before the loaders are watched: what takes the place of batches is watched as they are."""
    from torch.utils.data import DataLoader

    replaced = Replaced(actuators)
    original = DataLoader.__iter__

    def iterate(self):
        loader = None
        try:
            loader = replaced.stands_for(self)
        except BaseException as failure:
            caught(failure)
        return original(self) if loader is None else iter(loader)

    put(DataLoader, "__iter__", iterate)
    return replaced
