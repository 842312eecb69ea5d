"""Lists, dicts and sets of the program that grow with its steps: what slows steps down or fills memory.

Looked at by the training thread in a few forward passes, so that nothing of the program is destroyed in
another thread.
"""

import itertools
import linecache
import re
import sys
from collections import deque

from _unidle_shim.host import places
from _unidle_shim.host.exception_origin import pass_on
from _unidle_shim.host.shapes import hidden_queries

_CONTAINERS = (list, dict, set, deque)
_OF_FUNCTION = 1  # inspect.CO_OPTIMIZED. f_locals of other code, of a class for one, are its real variables
_MOST_FRAMES = 40
_MOST_NAMES = 2000  # of a module or an object
_MOST_KNOWN = 500
_LOOKS = 3  # in which a container must have grown
_FEWEST = 16  # elements more
_UNEVEN = 4  # the most that its growth in a step may differ between looks
_SEES_ITS_VARIABLES = frozenset(
    (
        "locals",
        "vars",
        "dir",
        "exec",
        "eval",
        "f_locals",
        "_getframe",
        "currentframe",
        "getargvalues",
        "stack",
    )
)
_OURS = (
    3  # references to the dict of a frame's f_locals: the frame, our variable, the argument of getrefcount
)
_DEPTH, _WIDTH = 3, 64  # of an element whose bytes are counted
# A line that makes a container grow, or one in it: x.append(..), x[k].append(..), x += .., x[k] = ..
_GROWS = (
    r"(?<![\w.])%s(?:\[[^\]]*\])*?\s*"
    r"(?:\.(?:append|extend|add|update|insert|setdefault|appendleft)\s*\(|\+=|\[[^\]=]*\]\s*=[^=])"
)


def is_time(forwards):
    """Whether to look in this forward pass: in the 16th, 32nd, 64th ... and in every 1024th."""
    return forwards >= 16 and (not forwards & (forwards - 1) or not forwards & 1023)


class Growing:
    def __init__(self, state):
        self.state = state
        self.known = {}  # (name, code that uses it, id) -> [(steps, length)]
        self.found = {}  # name -> note

    def look(self, frame, steps):
        """`frame`: of the program, in a forward pass."""
        try:
            torch, seen = self.state.torch, set()
            for key, container in _containers(frame):
                if id(container) not in seen:
                    seen.add(id(container))
                    with hidden_queries(torch):
                        self._compare(key, container, steps)
        except Exception as failure:
            pass_on(failure)

    def _compare(self, key, container, steps):
        key = key + (id(container),)
        looks = self.known.get(key)
        if looks is None:
            if len(self.known) < _MOST_KNOWN:
                self.known[key] = [(steps, len(container))]
            return
        looks.append((steps, len(container)))
        del looks[1:-_LOOKS]
        if len(looks) <= _LOOKS or not _grows(looks):
            return
        name, code = key[:2]
        where = _place(code, name)
        if where is not None:
            per_step = (looks[-1][1] - looks[0][1]) / (looks[-1][0] - looks[0][0])
            self.found[name] = {
                "type": "growing",
                "name": name,
                "where": where,
                "length": len(container),
                "per_step": round(per_step, 3),
                "graph": self._has_graph(_newest(container), _DEPTH),
                "bytes_per_step": round(per_step * self._bytes_of(_newest(container), _DEPTH)),
            }

    def _bytes_of(self, element, depth):
        """Of an element of known kind, without the graph that a tensor belongs to."""
        kind = type(element)
        if issubclass(kind, self.state.torch.Tensor):
            return element.numel() * element.element_size()
        if kind in (str, bytes, bytearray):
            return 50 + len(element)
        if kind.__module__ == "numpy":
            return getattr(element, "nbytes", 8)
        if depth == 0 or kind not in (list, tuple, dict):
            return 32
        inside = list(itertools.islice(element.values() if kind is dict else element, _WIDTH))
        if not inside:
            return 56
        mean = sum(self._bytes_of(each, depth - 1) for each in inside) / len(inside)
        return 56 + len(element) * (8 + mean)

    def _has_graph(self, element, depth):
        """Whether it holds a tensor with the graph that computed it."""
        kind = type(element)  # a proxy may compute its __class__
        if issubclass(kind, self.state.torch.Tensor):
            return element.grad_fn is not None
        if depth == 0 or kind not in (list, tuple, dict):
            return False
        inside = list(itertools.islice(element.values() if kind is dict else element, _WIDTH))
        return any(self._has_graph(each, depth - 1) for each in inside)

    def notes(self):
        for name, note in list(self.found.items()):
            yield ("growing", name), note


def _containers(frame):
    """((name, code), container) of the program's frames and of their modules."""
    modules = set()
    for _ in range(_MOST_FRAMES):
        if frame is None:
            return
        code = frame.f_code
        if places.is_own(code):
            if id(frame.f_globals) not in modules:
                modules.add(id(frame.f_globals))
                yield from _named(frame.f_globals, "", code)
            if code.co_flags & _OF_FUNCTION:
                yield from _of_function(frame, code)
        frame = frame.f_back


def _of_function(frame, code):
    for name, held in _variables(frame, code).items():
        if type(held) in _CONTAINERS:
            yield from _named({name: held}, "", code)
        elif name == "self" and places.is_own_file(_file_of(type(held))):
            yield from _named(_own_names(held), "self.", code)


def _variables(frame, code):
    """Before Python 3.13, the frame keeps the dict of its f_locals, and all that is in it alive: it is
    emptied at once. A function that may see that dict, or a debugger, is left alone."""
    if sys.version_info >= (3, 13):
        return dict(frame.f_locals)
    if sys.gettrace() is not None or not _SEES_ITS_VARIABLES.isdisjoint(code.co_names):
        return {}
    kept = frame.f_locals
    variables = dict(kept)
    if sys.getrefcount(kept) <= _OURS:  # otherwise somebody else has it
        kept.clear()
    return variables


def _own_names(held):
    try:
        return object.__getattribute__(held, "__dict__")  # no method of the program is called
    except AttributeError:
        return None


def _file_of(kind):
    module = sys.modules.get(kind.__module__)
    return getattr(module, "__file__", None) or "<unknown>"


def _named(names, before, code):
    if type(names) is not dict or len(names) > _MOST_NAMES:
        return
    for name, held in list(names.items()):
        if type(name) is not str or name.startswith("__") or type(held) not in _CONTAINERS:
            continue
        yield (before + name, code), held
        if type(held) is dict and len(held) <= _MOST_NAMES:
            for inner in list(held.values()):
                if type(inner) in _CONTAINERS:
                    yield (before + name, code), inner


def _grows(looks):
    """Whether it has grown in each look, about evenly over the steps."""
    rates = [
        (length - before) / (steps - earlier)
        for (earlier, before), (steps, length) in zip(looks, looks[1:])
        if steps > earlier
    ]
    grown = looks[-1][1] - looks[0][1]
    return len(rates) >= _LOOKS and grown >= _FEWEST and min(rates) > 0 and max(rates) <= _UNEVEN * min(rates)


def _place(code, name):
    """The line of the file at which it grows; None if there is none."""
    pattern = re.compile(_GROWS % re.escape(name))
    lines = linecache.getlines(code.co_filename)
    for number, line in enumerate(lines, 1):
        if number >= code.co_firstlineno or name.startswith("self.") or code.co_name == "<module>":
            if pattern.search(line.split("#", 1)[0]):
                return "%s:%d" % (places.short(code.co_filename), number)
    return None


def _newest(container):
    if not container:
        return None
    kind = type(container)
    if kind is list or kind is deque:
        return container[-1]
    return next(reversed(container.values())) if kind is dict else None
