"""Python loops in the model: how much of the forward pass a loop takes, and how often Python itself runs.

Python holds its lock while it interprets, and nearly every operation of torch releases it. So a loop over
single numbers holds the lock for much of its time, and a loop over large layers for hardly any."""

import os
import sys

from _unidle_shim.facts import module_methods
from _unidle_shim.host import places
from _unidle_shim.source import code_loops

_AUTOGRAD = os.path.join("torch", "autograd", "")
_MOST = 500  # functions whose loops are known, and samples of a step
_MOST_MODULES = 5000
_TOP = 5
_NO_LOOPS = (), frozenset()
# What a loop calls in a stack sample: no module, or the same modules in each iteration. None: other modules.
_DIRECT, _REPEATED = "direct", "repeated"
_ITSELF = ""  # among the attributes that hold several modules: the object itself is such a container


class PythonLoops:
    """Counts stack samples of the forward pass. Used by the sampling thread alone."""

    def __init__(self):
        self.known = {}  # code -> code_loops.loops_of(it)
        # (loop's place or None, line's place, function) -> [samples, those in which Python's lock was held,
        # those in which that is known, those of _DIRECT, those of _REPEATED]
        self.lines = {}
        self.forward = 0  # samples of the forward pass of finished steps
        self.pending = []  # (key of lines or None, what the loop called, held), since the last finished step
        self.steps = None  # their number at the newest sample
        # Of the methods of the model's modules: code -> (names of attributes that hold several modules, those
        # of modules)
        self.stacks = {}
        self.stacks_of = None  # id of the model that they are of
        self.layers = set()  # places of loops in other functions that seem to be stacks of layers

    def count(self, stack, held, steps, model, of_loss=None):
        """`stack`: [(code, line)], the innermost first. `held`: whether Python's lock was held, or None.
        `steps`: the finished ones. `model`: the one that trains, or None. `of_loss`: how many of the
        innermost frames compute a loss that is no module; it counts as part of the forward pass."""
        if steps != self.steps:
            self._finish()
            self.steps = steps
        inner = within_model(stack) if of_loss is None else stack[:of_loss]
        if inner is not None and model is not None and len(self.pending) < _MOST:
            if self.stacks_of != id(model):
                self.stacks, self.stacks_of = stacks_of(model), id(model)
            self.pending.append((*self._key_of(inner), held))

    def _finish(self):
        for key, called, held in self.pending:
            self.forward += 1
            if key is not None:
                line = self.lines.setdefault(key, [0, 0, 0, 0, 0])
                line[0] += 1
                line[1] += bool(held)
                line[2] += held is not None
                line[3] += called == _DIRECT
                line[4] += called == _REPEATED
        self.pending.clear()

    def _key_of(self, inner):
        own = [entry for entry in inner if places.is_own(entry[0])]
        if not own:
            return None, None
        loop, called = self._loop_of(inner, own)
        return (loop, places.text(*own[0]), places.name_of(own[0][0])), called

    def _loop_of(self, inner, own):
        """The place of the innermost loop around these lines, and what it calls here. A loop over modules, a
        stack of layers, is left out: nothing can compute it at once."""
        for depth, (code, line) in enumerate(own):
            around, (loops, outside) = code, self._loops_in(code)
            if code.co_name.startswith("<") and depth + 1 < len(own):  # a comprehension is code of its own
                around = own[depth + 1][0]
                outside = set(around.co_names)
            for loop in loops:
                if line in loop.lines:
                    place = places.text(code, loop.first)
                    direct = module_methods.outermost_call(inner[: inner.index(own[depth])]) is None
                    if not self._is_stack(around, loop, outside, place, direct):
                        _, modules = self.stacks.get(around, (None, frozenset()))
                        repeats = not loop.calls.isdisjoint(modules)
                        return place, _DIRECT if direct else _REPEATED if repeats else None
        return None, None

    def _loops_in(self, code):
        found = self.known.get(code)  # one look-up: the hash of code takes long
        if found is None:
            if len(self.known) >= _MOST:
                return _NO_LOOPS
            found = self.known[code] = code_loops.loops_of(code)
        return found

    def _is_stack(self, code, loop, outside, place, direct):
        if code in self.stacks:
            several, _ = self.stacks[code]
            return _ITSELF in several or bool(several & (loop.names | outside))
        # In a helper or a loss, every attribute that the loop reads may hold the modules that it calls.
        if loop.names and not direct:
            self.layers.add(place)
        return place in self.layers

    def notes(self):
        loops = {}  # place of the loop, or of a line without one -> its lines
        for (loop, where, function), counts in list(self.lines.items()):
            if loop in self.layers:  # it called no module in the first samples
                loop = None
            loops.setdefault(loop or where, []).append((*counts, where, function, loop is not None))
        loops = sorted(loops.items(), key=lambda entry: -sum(line[0] for line in entry[1]))
        for loop, lines in loops[:_TOP]:
            samples, held, known, direct, repeated = (sum(line[part] for line in lines) for part in range(5))
            *_, where, function, is_loop = max(lines, key=lambda line: line[0])
            yield (
                ("python", loop),
                {
                    "type": "python",
                    "place": loop,
                    "in_loop": is_loop,
                    "where": where,
                    "function": function,
                    "hits": samples,
                    "held": held,
                    "known": known,
                    "direct": direct,
                    "repeated": repeated,
                    "total": self.forward,
                },
            )


def within_model(stack):
    """The part of the stack within the outermost call of a module; None if there is none, and in the backward
    pass, which computes forward passes again."""
    depth = module_methods.outermost_call(stack)
    if depth is None or any(_AUTOGRAD in code.co_filename for code, _ in stack[depth + 1 :]):
        return None
    return stack[:depth]


def stacks_of(model):
    """For the code of each method of the model's modules: the attributes of its objects that hold several
    modules, and those that are modules. Runs no code of the program."""
    nn = sys.modules["torch"].nn
    found, ahead, seen = {}, [model], set()
    while ahead and len(seen) < _MOST_MODULES:
        module = ahead.pop()
        if id(module) in seen:
            continue
        seen.add(id(module))
        members = dict(object.__getattribute__(module, "__dict__"))  # copies: the program may go on meanwhile
        children = dict(members.get("_modules") or {})
        several = {name for name, child in children.items() if issubclass(type(child), _kinds(nn))}
        several |= {name for name, value in members.items() if _holds_modules(nn, value)}
        several |= code_loops.GIVE_MODULES
        if issubclass(type(module), _kinds(nn)):
            several.add(_ITSELF)
        for kind in type(module).__mro__:
            for member in list(vars(kind).values()):
                code = module_methods.code_of(member)
                if code is not None:
                    of_code = found.setdefault(code, (set(), set()))
                    of_code[0].update(several)
                    of_code[1].update(children)
        ahead.extend(child for child in children.values() if child is not None)
    return found


def _kinds(nn):
    return nn.ModuleList, nn.ModuleDict, nn.Sequential


def _holds_modules(nn, value):
    if type(value) is dict:
        value = list(value.values())
    return type(value) in (list, tuple) and any(issubclass(type(one), nn.Module) for one in value[:_TOP])
