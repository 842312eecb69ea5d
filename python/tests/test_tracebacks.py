"""Stack walks find no frame of ours, whenever this version of Python takes the stack."""

import os
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
