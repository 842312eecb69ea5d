"""Counts the call stacks that the sampler sees, for the flame graph of a page."""

from _unidle_shim.facts import module_methods
from _unidle_shim.host import places

_MOST_STACKS = 2000  # different ones; others count for their phase alone
_MOST_FRAMES = 5000  # different ones
_MOST_WRITTEN = 300
_LEAST_SHARE = 0.002  # of all looks
_DEEPEST = 40  # frames of a path; of longer ones both ends
_MOST_NAMED, _LONGEST = 1500, 150  # frames of a note, characters of a name
_ALL, _EVERY = 200, 4  # so many looks count; after that one in four, for four: each costs some 10 us
_FIRST_NOTE = 20  # looks
_NOTE_GROWTH = 1.5  # a note is long: it is written again when there are so many times as many looks


class CallStacks:
    """Of the program's own frames with their lines, the outermost first, and last the function of a package
    that the innermost one called. Not thread-safe: the sampler's thread uses it."""

    def __init__(self):
        self.looks = {}  # (phase, path) -> stack samples
        self.pending = {}  # the same since the last finished step: they belong to the next one, or to none
        self.step = 0
        self.seen = self.total = self.written = 0
        self.frames = {}  # (file, function, line) -> _frame() of it

    def add(self, phase, stack, step=None):
        """`step`: steps finished before, where the look belongs to a step."""
        if step is not None and step != self.step:
            self.finish()
            self.step = step
        self.seen += 1
        looks = 1 if self.seen <= _ALL else _EVERY
        if self.seen % looks:
            return
        self.total += looks
        self._count(self.looks if step is None else self.pending, phase, self._path(stack), looks)

    def add_at_start(self, phase, found, looks):
        """`found`: what places.of_start() found; the stack is not known any more."""
        self.total += looks
        known = found is not None and found[1] is not None
        self._count(self.looks, phase, (_written(found[1], found[0] or ""),) if known else (), looks)

    def finish(self, phase=None):
        """Counts what is pending, in another phase where one is given."""
        for (own, path), looks in self.pending.items():
            self._count(self.looks, phase or own, path, looks)
        self.pending = {}

    @staticmethod
    def _count(looks_of, phase, path, looks):
        key = phase, path
        if key not in looks_of and len(looks_of) >= _MOST_STACKS:
            key = phase, ()
        looks_of[key] = looks_of.get(key, 0) + looks

    def _path(self, stack):
        """((function, "file:line" of the program or package), ...)"""
        path, called, frames = [], None, self.frames
        for code, line in stack:  # the innermost first
            key = code.co_filename, code.co_name, line
            if key not in frames:
                if len(frames) >= _MOST_FRAMES:
                    frames.clear()
                frames[key] = self._frame(code, line)
            own, frame = frames[key]
            if own:
                if not path or path[-1] != frame:  # a recursion is one frame
                    path.append(frame)
            elif not path and frame is not None:
                called = frame
        if called is not None:
            path.insert(0, called)
        path.reverse()
        if len(path) > _DEEPEST:
            path = path[: _DEEPEST // 2] + path[-(_DEEPEST // 2) :]
        return tuple(path)

    @staticmethod
    def _frame(code, line):
        """(whether it is the program's own, what a path says of it or None)"""
        if places.is_own(code):
            return True, _written(places.name_of(code), places.text(code, line))
        calls_module = code.co_name in module_methods.CALLS and module_methods.FILE in code.co_filename
        called = None if calls_module else places.package_function(code)
        return False, None if called is None else _written(*called)

    def note(self, role, last):
        """None while little has changed since the last one."""
        if not last and self.total < max(_FIRST_NOTE, _NOTE_GROWTH * self.written):
            return None
        if not self.total:
            return None
        self.written = self.total
        looks_of = dict(self.looks)
        for key, looks in self.pending.items():
            looks_of[key] = looks_of.get(key, 0) + looks
        frames, stacks, rest = {}, [], {}
        fewest = 2 if role == "worker" else 1  # there may be hundreds of workers
        least = max(_LEAST_SHARE * self.total, fewest)
        for (phase, path), looks in sorted(looks_of.items(), key=lambda entry: -entry[1]):
            if looks < least or len(stacks) >= _MOST_WRITTEN or len(frames) > _MOST_NAMED:
                rest[phase] = rest.get(phase, 0) + looks
            else:
                stacks.append([phase, looks, [frames.setdefault(frame, len(frames)) for frame in path]])
        stacks += [[phase, looks, []] for phase, looks in rest.items()]
        return {"type": "stacks", "role": role, "total": self.total, "frames": list(frames), "stacks": stacks}


def _written(name, where):
    """Both as a note can hold them: without surrogates, and not too long."""
    name, where = (text.encode("utf-8", "replace").decode("utf-8") for text in (name, where))
    return name[:_LONGEST], where[-_LONGEST:]
