"""Counting call stacks for the flame graph; without torch."""

import json
import os
import sys
import unittest
from unittest import mock

SHIM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "shim")
sys.path.insert(0, SHIM)

from _unidle_shim.facts import call_stacks  # noqa: E402
from _unidle_shim.host import places  # noqa: E402


def code(name, file):
    """The code object of a function in a file, which need not exist."""
    module = compile(f"def {name}(): pass", file, "exec")
    return next(one for one in module.co_consts if hasattr(one, "co_code"))


TRAIN = places.full("train.py")
MAIN, STEP = code("main", TRAIN), code("step", TRAIN)
TORCH = "/env/lib/python3.11/site-packages/torch"
CALL = code("_call_impl", TORCH + "/nn/modules/module.py")
CONV = code("forward", TORCH + "/nn/modules/conv.py")
WRAPPER = code("wrapper", TORCH + "/optim/optimizer.py")
FROZEN = code("_find_and_load", "<frozen importlib._bootstrap>")
DUMP = code("dump", os.path.join(os.path.dirname(json.__file__), "__init__.py"))


class CallStacks(unittest.TestCase):
    def setUp(self):
        self.stacks = call_stacks.CallStacks()

    def counted(self, last=True):
        """{(phase, frames): looks} of the note."""
        note = self.stacks.note("train", last)
        return {
            (phase, *(tuple(note["frames"][number]) for number in numbers)): looks
            for phase, looks, numbers in note["stacks"]
        }

    def test_the_programs_frames_and_the_function_of_a_package_that_they_called(self):
        self.stacks.add("train", [(CONV, 9), (CALL, 1), (STEP, 12), (WRAPPER, 5), (MAIN, 30)])
        self.stacks.add("train", [(WRAPPER, 5), (STEP, 14), (MAIN, 30)])
        self.stacks.add("between", [(DUMP, 70), (MAIN, 31)])
        main = "main", "train.py:30"
        self.assertEqual(
            self.counted(),
            {
                ("train", main, ("step", "train.py:12"), ("forward", "torch")): 1,
                ("train", main, ("step", "train.py:14")): 1,
                ("between", ("main", "train.py:31"), ("dump", "json")): 1,
            },
        )

    def test_a_stack_without_the_program_names_the_package(self):
        self.stacks.add("startup", [(FROZEN, 1), (CONV, 9), (FROZEN, 1)])
        self.assertEqual(self.counted(), {("startup", ("forward", "torch")): 1})

    def test_looks_after_the_last_step_belong_to_none(self):
        for step in (0, 0, 1):
            self.stacks.add("between", [(MAIN, 30)], step)
        self.assertEqual(self.counted(), {("between", ("main", "train.py:30")): 3})
        self.stacks.finish("after")
        self.assertEqual(
            self.counted(), {("between", ("main", "train.py:30")): 2, ("after", ("main", "train.py:30")): 1}
        )

    def test_many_stacks_are_bounded_and_none_is_lost(self):
        with mock.patch.object(call_stacks, "_MOST_STACKS", 50):
            for line in range(200):
                self.stacks.add("train", [(MAIN, 1 + line)])
        self.assertEqual(sum(self.counted().values()), 200)
        self.assertEqual(self.counted()[("train",)], 150)

    def test_rare_stacks_count_for_their_phase(self):
        with mock.patch.object(call_stacks, "_MOST_WRITTEN", 10):
            for line in range(100):
                self.stacks.add("between" if line % 2 else "train", [(MAIN, 1 + line)])
            counted = self.counted()
        self.assertEqual((sum(counted.values()), len(counted)), (100, 12))
        self.assertEqual(counted[("train",)] + counted[("between",)], 90)

    def test_a_recursion_is_one_frame_and_a_long_path_keeps_both_ends(self):
        self.stacks.add("train", [(CONV, 9)] + [(STEP, 5)] * 900 + [(MAIN, 30)])
        self.assertEqual(
            self.counted(),
            {("train", ("main", "train.py:30"), ("step", "train.py:5"), ("forward", "torch")): 1},
        )
        self.stacks.add("between", [(CONV, 9)] + [(STEP, line) for line in range(200)])
        (path,) = (key[1:] for key in self.counted() if key[0] == "between")
        self.assertEqual(len(path), call_stacks._DEEPEST)
        self.assertEqual((path[0], path[-1]), (("step", "train.py:199"), ("forward", "torch")))

    def test_later_looks_count_for_several(self):
        for _ in range(2000):
            self.stacks.add("train", [(MAIN, 30)])
        self.assertEqual(self.counted(), {("train", ("main", "train.py:30")): 2000})

    def test_names_that_a_note_cannot_hold(self):
        odd = code("f" * 900, places.full("caf\udce9.py"))
        self.stacks.add("train", [(odd, 1)])
        json.dumps(self.stacks.note("train", True)).encode("ascii").decode("unicode_escape").encode("utf-8")
        ((function, where),) = self.stacks.note("train", True)["frames"]
        self.assertEqual((function, where), ("f" * call_stacks._LONGEST, "caf?.py:1"))

    def test_a_note_is_written_when_there_are_many_more_looks_and_at_the_end(self):
        self.assertIsNone(self.stacks.note("train", True))
        written = []
        for look in range(1, 101):
            self.stacks.add("train", [(MAIN, 30)])
            if self.stacks.note("train", False) is not None:
                written.append(look)
        self.assertEqual(written, [20, 30, 45, 68])
        self.assertEqual(self.stacks.note("train", True)["total"], 100)

    def test_what_was_seen_before_the_sampler(self):
        self.stacks.add_at_start("startup", ("train.py:1", "import torch", None), 40)
        self.stacks.add_at_start("startup", None, 2)
        self.assertEqual(self.counted(), {("startup", ("import torch", "train.py:1")): 40, ("startup",): 2})


if __name__ == "__main__":
    unittest.main()
