"""cache.features for samples that differ between epochs: keeps the results of pure functions in them.

A picture that is cropped at random is decoded in each epoch, although decoding itself is pure. The functions
that make a sample are tried from the outermost inwards. The results of a function are kept if all of this
holds:

- it is called with numbers and strings (and the dataset) only;
- the first results of every process are the same to the byte when they are made twice;
- it draws no random numbers, sets nothing, writes only into containers that it made itself, and uses nothing
  that the dataset changes;
- it costs more than a copy of its result.

One of 64 kept results is made again and compared. Each process keeps its own.
"""

import os
import time

from _unidle_shim.host import guard
from _unidle_shim.host.exception_origin import pass_on
from _unidle_shim.host.guard import caught
from _unidle_shim.loop.loop import now
from _unidle_shim.samples import packing
from _unidle_shim.source import fingerprint, module_reads, side_effects
from _unidle_shim.source.purity import drew, numbers_of, random_states, restore
from _unidle_shim.source.stand_in import Stub

_PROVED_TWICE = 3
_MISSES_PER_LOOK = 64  # after the first ones, arrays and objects are compared at one call in this many
_HITS_PER_PROOF = 64
_CHEAP_NS = 300_000
_TIMES_A_COPY = 4  # a call cheaper than this many copies of its result is not worth keeping
SHARE_OF_MEMORY = 0.25  # of free memory, for all processes together
_DEEPEST = 3
_PLAIN = (int, float, str, bytes, bool, type(None))


def held_by(dataset):
    """What the dataset holds, by name, in a form that can be compared later."""
    members = side_effects.members(dataset)
    return dict(
        ((name, fingerprint.of(each, data=True)) for name, each in list(members.items())),
        **numbers_of(dataset),
    )


def _text(value):
    """A text that differs where values differ, also if they are equal: 1, 1.0 and True; 0.0 and -0.0."""
    if type(value) is tuple:
        return "(%s)" % ", ".join(map(_text, value))
    if isinstance(value, os.PathLike):
        return "%s %r" % (type(value).__name__, os.fspath(value))
    base = next((kind for kind in (int, float, str) if isinstance(value, kind)), object)
    return "%s %s" % (type(value).__name__, base.__repr__(value) if base is not object else repr(value))


class KeptCalls:
    """Kept results of one dataset in one process."""

    def __init__(self, dataset, store, processes, say):
        """`store`: kept_samples.Store or DiskStore."""
        self.dataset, self.store, self.say = dataset, store, say
        self.room = store.calls_room // processes
        self.changes = set()  # names of attributes that the dataset changes
        self.held = numbers_of(dataset)
        self.taken = False
        self._descend(type(dataset).__getitem__, 1)

    def _descend(self, function, depth):
        """Tries the functions that this one calls, in its place."""
        for called in side_effects.calls_of(function, type(self.dataset)) if depth <= _DEEPEST else ():
            KeptFunction(self, called, depth)

    def give_up(self, kept, why):
        if kept.served:
            self.store.poison()
        self.say("broken" if kept.served else "refused", "%s: %s" % (kept.original.__qualname__, why))
        self._descend(kept.original, kept.depth + 1)

    def takes(self):
        if not self.taken:
            self.taken = True
            self.say("taken")

    def look_at_the_dataset(self, held=()):
        """`held`: what it holds now besides numbers. A number that was not there before has changed;
        anything else may be a file that was opened."""
        numbers = numbers_of(self.dataset)
        present = {**dict(held), **numbers}
        self.changes.update(
            name.split(".")[-1]
            for name, what in present.items()
            if self.held.get(name, self if name in numbers else what) != what
        )
        self.held.update(present)


class KeptFunction:
    """Replaces the function for every holder of a reference to it."""

    def __init__(self, calls, function, depth):
        self.calls, self.depth = calls, depth
        name = getattr(function, "__qualname__", "")
        self.kept, self.misses, self.hits, self.odd, self.served = calls.store.calls(name), 0, 0, 0, False
        self.waiting = []  # results that will be kept once enough are proved
        self.uses = side_effects.used(function, (calls.dataset,))
        self.reads = side_effects.reads_of(function, (calls.dataset,))
        self.leaves_something = side_effects.leaves_something(function, (calls.dataset,))
        self.stub = Stub(function, self._called)
        self.original = self.stub.original

    def _called(self, args, kwargs):
        seen = None
        try:
            if not guard.failed:
                key = self._key(args, kwargs)
                kept = self.kept.get(key) if key is not None else None
                if kept is not None:
                    self.hits += 1
                    if self.hits % _HITS_PER_PROOF != 1:
                        return packing.unpacked(kept)
                seen = self._look() if key is not None else None
        except BaseException as failure:
            seen = caught(failure)
        result = self.original(*args, **kwargs)
        if seen is not None:
            try:
                self._made(key, now() - seen[3], seen, result, args, kwargs)
            except BaseException as failure:
                caught(failure)
        return result

    def _key(self, args, kwargs):
        """The inputs that the result may depend on; None if an argument is neither a number nor a string."""
        if args and type(args[0]) is type(self.calls.dataset) and args[0] is not self.calls.dataset:
            # Another dataset of that class, for validation: its calls are left alone.
            return None
        plain = args[1:] if args and args[0] is self.calls.dataset else args
        if all(
            type(each) in _PLAIN
            or isinstance(each, os.PathLike)
            or type(each) is tuple
            and all(type(one) in _PLAIN for one in each)
            for each in (*plain, *kwargs.values())
        ):
            return _text((plain, tuple(sorted(kwargs)), *map(kwargs.get, sorted(kwargs)), self._state()))
        self.odd += 1
        if self.odd == 8:
            self._give_up("it is called with more than numbers and texts")
        return None

    def _state(self):
        """Numbers and texts of the dataset, and of modules, to which the function's names refer."""
        numbers = tuple(
            (name, value)
            for name, value in numbers_of(self.calls.dataset).items()
            if name.split(".")[-1] in self.uses
        )
        return numbers, tuple(value if type(value) in _PLAIN else None for value in self._read())

    def _read(self):
        return [module_reads.followed(names, read) for names, read in self.reads]

    def _look(self):
        """What the dataset and the modules hold before the call, the random states, and the start time."""
        closely = self.misses < _PROVED_TWICE or self.misses % _MISSES_PER_LOOK == 0
        return self._contents(), self._holds() if closely else None, random_states(), now()

    def _contents(self):
        return side_effects.contents(side_effects.members(self.calls.dataset))

    def _holds(self):
        """What the dataset and the modules hold that the function and those that it calls read."""
        return held_by(self.calls.dataset), [fingerprint.of(value, data=True) for value in self._read()]

    def _made(self, key, took_ns, seen, result, args, kwargs):
        contents, holds, drawn, _ = seen
        if key in self.kept:
            if _packed(result)[0] != self.kept[key]:
                self.served = True
                self._give_up("a result was different when it was made again")
            else:
                self.misses = max(self.misses, _PROVED_TWICE)
                self.calls.takes()
            return
        self.misses += 1
        sets = self.leaves_something or contents != self._contents()
        if not sets and holds is not None:
            holds_now = self._holds()
            self.calls.look_at_the_dataset(holds_now[0])
            sets = holds != holds_now
            if sets and self.misses == 1:
                return  # it may open files at first
        why = (
            "it leaves something behind"
            if sets
            else drew(drawn) or self._why_not(key, took_ns, result, drawn, args, kwargs)
        )
        if why:
            self._give_up(why)

    def _why_not(self, key, took_ns, result, drawn, args, kwargs):
        """Returns why the result cannot be kept; keeps it if there is no reason."""
        self.calls.look_at_the_dataset()
        shared = self.uses & self.calls.changes
        if shared:
            return "it has to do with %s, which the dataset changes" % sorted(shared)[0]
        data, why = _packed(result)
        if why is not None:
            return why
        if self.misses <= _PROVED_TWICE:
            begin = time.thread_time_ns()  # once: on a busy machine another program may run in between
            packing.unpacked(data)
            copy_ns = time.thread_time_ns() - begin
            if took_ns < max(_CHEAP_NS, _TIMES_A_COPY * copy_ns):
                return "it costs %.0f us, too little to keep" % (took_ns / 1000)
            why = self._another(data, drawn, args, kwargs)
            if why is not None:
                return why
        self.waiting.append((key, data))
        if self.misses >= _PROVED_TWICE:
            self._keep_waiting()
        return None

    def _keep_waiting(self):
        for key, data in self.waiting:
            if len(data) <= self.calls.room:
                self.calls.room -= len(data)
                self.kept[key] = data
                self.served = True
                self.calls.takes()
        self.waiting = []

    def _another(self, data, drawn, args, kwargs):
        """Returns why a repeated result differs from the first one, if it does."""
        try:
            again = _packed(self.original(*args, **kwargs))[0]
        except Exception as error:  # of the program's function
            pass_on(error)
            return "it cannot be called twice (%s)" % type(error).__name__
        finally:
            drew_again = drew(drawn)
            restore(drawn)
        return "the same arguments give another result each time" if drew_again or again != data else None

    def _give_up(self, why):
        self.stub.give_back()
        self.kept = {}
        self.calls.give_up(self, why)


def _packed(result):
    """(the bytes of a result, None), or (None, why it cannot be kept)."""
    try:
        return packing.packed(result), None
    except TypeError as error:
        return None, str(error)
