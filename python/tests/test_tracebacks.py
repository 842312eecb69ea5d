"""Stack walks find no frame of ours, whenever this version of Python takes the stack, and neither does what
Python prints of uncaught exceptions."""

import os
import re
import subprocess
import sys
import traceback
import types
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "shim"))

from _unidle_shim.host import exceptions  # noqa: E402


def of_the_call(f):
    """As since Python 3.14: the stack of the call. Before, it was that of the first `next`."""
    frame = sys._getframe().f_back if f is None else f

    def walk(frame):
        while frame is not None:
            yield frame, frame.f_lineno
            frame = frame.f_back

    return walk(frame)


def called(walk):
    return walk(None)


def given(walk):
    return walk(sys._getframe())


def names(frames):
    return [frame.f_code.co_name for frame, _ in frames][:4]


# Functions named `ours` have the file name of a patch. Without "hooks" their frames show.
UNCAUGHT = """
import gc, sys, threading, weakref, _thread
sys.path.insert(0, sys.argv[1])
from _unidle_shim.host import exceptions, hidden_frames, imports

def patched(function):
    def ours(*args):
        return function(*args)
    ours.__code__ = hidden_frames.renamed(ours.__code__, hidden_frames.MARK + "/patches/some.py>")
    return ours

if "hooks" in sys.argv:
    imports.watch_failures()
assert sys.excepthook is sys.__excepthook__ and sys.unraisablehook is sys.__unraisablehook__

@patched
def fails(*args):
    raise KeyError("no row")

class Freed:
    def __del__(self):
        fails()

def closed():
    try:
        yield
    finally:
        fails()

def chained():
    try:
        fails()
    except KeyError as error:
        raise ValueError("bad data") from error

def in_context():
    try:
        chained()
    except ValueError:
        fails()

thread = threading.Thread(target=in_context, name="trains")
thread.start()
thread.join()
Freed()
started = closed()
next(started)
del started
one = Freed()
weak = weakref.ref(Freed, lambda _: None), weakref.ref(one, fails)  # the outermost frame is ours
del one
kept = Freed()  # until Python shuts down
if "own" in sys.argv:
    def hook(kind, value, trace):
        print("own hook", file=sys.stderr)
        sys.__excepthook__(kind, value, trace)
    sys.excepthook = hook
if "group" in sys.argv and sys.version_info >= (3, 11):
    try:
        chained()
    except ValueError as error:
        raise ExceptionGroup("several", [error, OSError(1)])
in_context()
"""


class UncaughtTest(unittest.TestCase):
    def stderr(self, *words):
        shim = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "shim")
        done = subprocess.run(
            [sys.executable, "-c", UNCAUGHT, shim, *words], capture_output=True, text=True, check=False
        )
        self.assertEqual(done.returncode, 1, done.stderr)
        return re.sub("0x[0-9a-f]+", "0x", done.stderr)

    def test_what_python_prints_itself(self):
        for words in ([], ["own"], ["group"]):
            with self.subTest(words):
                bare = self.stderr(*words).splitlines()
                self.assertGreater(sum(exceptions.hidden_frames.MARK in line for line in bare), 7)
                self.assertEqual(
                    self.stderr("hooks", *words).splitlines(),
                    [line for line in bare if exceptions.hidden_frames.MARK not in line],
                )


class WalkStackTest(unittest.TestCase):
    def ours(self, bare):
        module = types.SimpleNamespace(
            walk_tb=traceback.walk_tb, extract_tb=traceback.extract_tb, walk_stack=bare
        )
        exceptions._hide_from(module)
        return module.walk_stack

    def test_the_stack_of_the_call(self):
        ours = self.ours(of_the_call)
        self.assertEqual(names(called(ours))[0], "called")
        for way in (called, given):
            self.assertEqual(names(way(ours)), names(way(of_the_call)))

    def test_the_stack_of_this_python(self):
        bare = traceback.walk_stack
        for way in (called, given):
            self.assertEqual(names(way(self.ours(bare))), names(way(bare)))
            self.assertEqual(
                traceback.StackSummary.extract(way(self.ours(bare))).format()[-3:],
                traceback.StackSummary.extract(way(bare)).format()[-3:],
            )


if __name__ == "__main__":
    unittest.main()
