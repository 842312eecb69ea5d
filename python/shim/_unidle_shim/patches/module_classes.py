"""Finds the classes of the program's models, so that only these are patched instead of every module.

A model is a module called by the program, not by another module: the outermost call. A patch of
nn.Module.__call__ sees the calls of all submodules as well, which costs time. So it stays only for some
steps, until the classes of the models are known. Then each of these classes gets its own `__call__`, and
nn.Module gets torch's back. When there may be a model of another class (see `watch_all`), the general patch
is put back for a while. The number of such searches is limited: setting an attribute of nn.Module clears the
interpreter's caches for all modules, and from Python 3.13 a class that was changed a thousand times is never
cached again.
"""

import sys
import types

_PATIENCE = 8  # steps without a new class before the general patch is removed
_OFTEN = 8  # after this many searches the patience doubles each time
_MOST_TIMES = 100
_MOST_CLASSES = 16


class ModuleClasses:
    """`Module` is nn.Module (tests pass another), `general` the patch of its `__call__`, and `narrow` the
    patch for a single class."""

    def __init__(self, Module, general, narrow, dynamo):
        self.Module, self.general = Module, general
        self.bare = Module.__dict__["__call__"]
        self.class_call = _ClassCall(narrow, Module)
        self.dynamo = dynamo  # torch has a compiler, which remembers nn.Module.__call__ from its import
        self.watching = True  # the general patch is active
        self.for_good = False
        self.kinds = []  # classes of models
        self.known = set()  # classes that were switched between training and evaluation
        self.evaluated = False  # a model was called in evaluation mode
        self.patched = []
        self.aside = []  # those of `kinds` without the patch for a while
        self.times = 0
        self.due = _PATIENCE  # the step at which the general patch is removed

    def seen(self, module, steps):
        """An outermost call, seen by the general patch."""
        kind = type(module)
        if kind in self.kinds:
            self.evaluated |= not module.training
            if steps >= self.due and not self.for_good:
                self._narrow()
        elif module.training or not steps or not kind.__module__.startswith("torch."):
            self.kinds.append(kind)
            self.due = max(self.due, steps + _PATIENCE)
            self.for_good |= len(self.kinds) > _MOST_CLASSES
        # Otherwise it is a layer of a model whose method evaluates.

    def switched(self, module, steps, trains):
        """train() or eval() was called for the module. A program may evaluate by a method of the model, which
        calls its layers: until a model was called in evaluation mode, all modules are watched then."""
        kind = type(module)
        if kind not in self.known and len(self.known) < 1000:
            self.known.add(kind)
            if kind not in self.kinds:
                self.watch_all(steps)
        if not trains and steps and kind in self.kinds and not self.evaluated:
            self.watch_all(steps)

    def watch_all(self, steps):
        """Puts the general patch back: there may be a model of another class. Signs of that are a new loader,
        the end of an epoch, and a step or a batch without a forward pass. It is also done periodically."""
        if self.watching or self.Module.__dict__["__call__"] is not self.bare:
            return  # in the second case the program patched it, too: its patch stays
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
        """Whether the search for model classes is active: then every call must be seen."""
        return self.watching and not self.for_good and steps <= self.due

    def step_aside(self):
        """Removes the patches of the classes for a while."""
        for kind in self.patched:
            if kind.__dict__.get("__call__") is self.class_call:
                del kind.__call__
                self.aside.append(kind)

    def step_back(self):
        aside, self.aside = self.aside, []
        for kind in aside:
            if "__call__" not in kind.__dict__:
                kind.__call__ = self.class_call

    def watch_all_permanently(self):
        """Patches no single class any more: a compiler would take our `__call__` of a class for the
        program's."""
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
        """Whether no class between it and nn.Module has its own `__call__`, as that of torch.compile has."""
        for one in kind.__mro__:
            if "__call__" in one.__dict__:
                return one is self.Module
        return False


class _ClassCall:
    """The `__call__` of one class. Not a plain function, so that a class pickled by value (by cloudpickle)
    contains torch's and not ours."""

    def __init__(self, function, Module):
        self.function, self.Module = function, Module

    def __get__(self, instance, owner=None):
        if instance is None:
            return self.Module.__call__  # a program may compare the two
        return types.MethodType(self.function, instance)

    def __reduce__(self):
        return getattr, (self.Module, "__call__")
