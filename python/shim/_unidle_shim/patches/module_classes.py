"""Which modules are called outermost, so that only their classes need to be patched.

Every call of a submodule, too, passes through a patch of nn.Module.__call__. So that patch stays only until
it has shown for some steps which classes the outermost modules have. Then each of these classes gets a
`__call__` of its own and torch's goes back to nn.Module. Whatever tells that there may be another outermost
module (see `watch_all`) puts the general patch back for a while. How often that happens is bounded: to set
attributes of nn.Module empties the interpreter's caches for all modules, and from Python 3.13 a class that
was changed a thousand times is never cached again.
"""

import sys
import types

# Steps without a new class before the general patch goes, and twice as many each time when that goes on.
_PATIENCE = 8
_OFTEN = 8
_MOST_TIMES = 100
_MOST_CLASSES = 16


class ModuleClasses:
    """`Module` is nn.Module (tests pass another), `general` the patch of its `__call__`, `narrow` what a
    single class gets."""

    def __init__(self, Module, general, narrow, dynamo):
        self.Module, self.general = Module, general
        self.bare = Module.__dict__["__call__"]
        self.class_call = _ClassCall(narrow, Module)
        self.dynamo = (
            dynamo  # torch has a compiler; it remembers what nn.Module.__call__ was when it was imported
        )
        self.watching = True  # the general patch is in place
        self.for_good = False
        self.kinds = []  # classes that were called outermost
        self.known = set()  # classes that were switched between training and evaluation
        self.patched = []
        self.aside = []  # of these, those without the patch for a while
        self.times = 0
        self.due = _PATIENCE  # the step at which the general patch goes

    def seen(self, module, steps):
        """An outermost call, while the general patch is in place."""
        kind = type(module)
        if kind not in self.kinds:
            self.kinds.append(kind)
            self.due = max(self.due, steps + _PATIENCE)
            self.for_good |= len(self.kinds) > _MOST_CLASSES
        elif steps >= self.due and not self.for_good:
            self._narrow()

    def switched(self, module, steps):
        """train() or eval() was called for it."""
        kind = type(module)
        if kind not in self.known and len(self.known) < 1000:
            self.known.add(kind)
            if kind not in self.kinds:
                self.watch_all(steps)

    def watch_all(self, steps):
        """There may be an outermost module of another class: a new loader, an epoch that is over, a step or a
        batch without a forward pass, now and then."""
        if self.watching or self.Module.__dict__["__call__"] is not self.bare:
            return  # or somebody else has patched it: theirs stays
        for kind in self.patched:
            if kind.__dict__.get("__call__") is self.class_call:
                del kind.__call__
        self.patched = []
        self.Module.__call__ = self.general
        self.watching = True
        self.times += 1
        self.for_good |= self.times >= _MOST_TIMES
        self.due = steps + (_PATIENCE << max(0, self.times - _OFTEN) if self.times < 20 else 1 << 16)

    def is_searching(self, steps):
        """Every call is of interest: which classes are called outermost is being found out."""
        return self.watching and not self.for_good and steps <= self.due

    def step_aside(self):
        """No call is of interest for a while."""
        for kind in self.patched:
            if kind.__dict__.get("__call__") is self.class_call:
                del kind.__call__
                self.aside.append(kind)

    def step_back(self):
        aside, self.aside = self.aside, []
        for kind in aside:
            if "__call__" not in kind.__dict__:
                kind.__call__ = self.class_call

    def watch_all_for_good(self):
        """A compiler is going to read the classes: it takes a `__call__` of their own for the program's."""
        self.for_good = True
        self.watch_all(0)

    def _narrow(self):
        if self.Module.__dict__["__call__"] is not self.general or not all(map(self._inherits, self.kinds)):
            self.for_good = True
            return
        if self.dynamo and "torch._dynamo" not in sys.modules:
            return
        try:
            for kind in self.kinds:
                if not any(base in self.kinds for base in kind.__mro__[1:]):
                    self.patched.append(kind)
                    kind.__call__ = self.class_call
        except (TypeError, AttributeError):  # a class that forbids it
            self.patched.pop()
            self.for_good = True
            for kind in self.patched:
                del kind.__call__
            self.patched = []
            return
        self.Module.__call__ = self.bare
        self.watching = False

    def _inherits(self, kind):
        """No class between it and nn.Module has a `__call__` of its own, as that of torch.compile has."""
        for one in kind.__mro__:
            if "__call__" in one.__dict__:
                return one is self.Module
        return False


class _ClassCall:
    """The `__call__` of one class. Not a plain function, so that a class that is pickled by value (by
    cloudpickle) takes torch's along and not ours."""

    def __init__(self, function, Module):
        self.function, self.Module = function, Module

    def __get__(self, instance, owner=None):
        return self.function if instance is None else types.MethodType(self.function, instance)

    def __reduce__(self):
        return getattr, (self.Module, "__call__")
