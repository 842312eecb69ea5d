"""Python loops in the forward pass: how much of its time a loop takes, and how often Python itself runs
there.

Python holds its lock while it interprets, and nearly every operation of torch releases it. So a loop over
single numbers holds the lock for much of its time, and a loop over large layers for hardly any."""

import linecache
import os
import re

from _unidle_shim.host import places

_HEADER = re.compile(r"\s*(?:async\s+)?(?:for\s+(?P<names>.+?)\s+in\b|while\b)")
_COMPREHENSION = re.compile(r"\bfor\s+(?P<names>[\w\s,()*]+?)\s+in\b")
_NOT_CODE = re.compile(r"\s*(#|$)")
_NAME = re.compile(r"[A-Za-z_]\w*")
# `x = layer(x)`, where the loop's variable is what is called, directly or as an index.
_CALLS_VARIABLE = r"^\s*(?P<result>\w+)\b.*=.*\b(?:{names})\b[^=(]*\((?:.*\W)?(?P=result)\b"
_OTHER_WORK = (os.path.join("torch", "autograd", ""), os.path.join("torch", "optim", ""))
_MOST = 500  # lines whose loop is known, and samples of a step
_TOP = 5


def _width(text):
    return len(text) - len(text.lstrip())


class Source:
    """A loop around a line, by the indentation of the source."""

    def __init__(self, file):
        self.lines = linecache.getlines(file)

    def text(self, line):
        return self.lines[line - 1] if 0 < line <= len(self.lines) else ""

    def loops(self, line, first):
        """The loops around a line of the function that begins at `first`, the innermost first:
        (first line, last line). Stacks of layers are left out: nothing can compute them at once."""
        found = _COMPREHENSION.search(self.text(line))
        if found and not _HEADER.match(self.text(line)):
            yield line, line
        width = _width(self.text(line)) + 1  # the line may be the loop's own
        for above in range(line, first - 1, -1):
            text = self.text(above)
            if _NOT_CODE.match(text) or _width(text) >= width:
                continue
            width = _width(text)
            header = _HEADER.match(text)
            if header:
                last = self._end(above)
                if not self._is_stack_of_layers(header, above, last):
                    yield above, last

    def _end(self, header):
        width, last = _width(self.text(header)), header
        for below in range(header + 1, len(self.lines) + 1):
            text = self.text(below)
            if _NOT_CODE.match(text):
                continue
            if _width(text) <= width:
                break
            last = below
        return last

    def _is_stack_of_layers(self, header, first, last):
        names = _NAME.findall(header.group("names") or "")
        if not names:
            return False
        calls = re.compile(_CALLS_VARIABLE.format(names="|".join(names)))
        return any(calls.match(self.text(line)) for line in range(first + 1, min(last, first + 100) + 1))


class PythonLoops:
    """Counts stack samples of the forward pass. Used by the sampling thread alone."""

    def __init__(self):
        self.sources = {}  # file -> Source
        self.known = {}  # (file, line) of the innermost own frame -> the loop's place, or None
        # (loop's place or None, line's place, function) -> [samples, those in which Python's lock was held]
        self.lines = {}
        self.forward = 0  # samples of the forward pass of finished steps
        self.pending, self.steps = [], None  # (key of lines or None, held), since the last finished step

    def count(self, stack, held, steps, step_places):
        """`stack`: [(code, line)], the innermost first. `held`: whether Python's lock was held. `steps`: the
        finished ones. `step_places`: for each optimiser, the line of each function on the stack at its
        step: a loop around such a line is the training loop."""
        if steps != self.steps:
            self._finish()
            self.steps = steps
        if not step_places or len(self.pending) >= _MOST:
            return
        if not any(folder in code.co_filename for code, _ in stack for folder in _OTHER_WORK):
            self.pending.append((self._key_of(stack, step_places), held))

    def _finish(self):
        for key, held in self.pending:
            self.forward += 1
            if key is not None:
                line = self.lines.setdefault(key, [0, 0])
                line[0] += 1
                line[1] += held
        self.pending.clear()

    def _key_of(self, stack, step_places):
        own = [entry for entry in stack if places.is_own(entry[0])]
        if not own:
            return None
        line = own[0][0].co_filename, own[0][1]
        if line not in self.known:
            if len(self.known) >= _MOST:
                return None
            self.known[line] = self._loop_of(own, step_places)
        return self.known[line], places.text(*own[0]), places.name_of(own[0][0])

    def _loop_of(self, own, step_places):
        for code, line in own:
            file = code.co_filename
            if file not in self.sources:
                self.sources[file] = Source(file)
            steps = [lines[code] for lines in step_places if code in lines]
            for first, last in self.sources[file].loops(line, code.co_firstlineno):
                if not any(first <= step <= last for step in steps):
                    return places.text(code, first)
            if steps:
                return None
        return None

    def notes(self):
        loops = {}  # place of the loop, or of a line without one -> its lines
        for (loop, where, function), (samples, held) in list(self.lines.items()):
            loops.setdefault(loop or where, []).append((samples, held, where, function, loop is not None))
        loops = sorted(loops.items(), key=lambda entry: -sum(line[0] for line in entry[1]))
        for loop, lines in loops[:_TOP]:
            samples, held = sum(line[0] for line in lines), sum(line[1] for line in lines)
            if held == 0:
                continue
            _, _, where, function, is_loop = max(lines, key=lambda line: line[0])
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
                    "total": self.forward,
                },
            )
