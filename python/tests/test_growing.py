"""Containers of the program that grow with its steps."""

import contextlib
import os
import sys
import types
import unittest
import weakref

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "shim"))

from _unidle_shim.facts import growing  # noqa: E402

of_module = []


class Tensor:
    grad_fn = "computed"

    def numel(self):
        return 100

    def element_size(self):
        return 4


TORCH = types.SimpleNamespace(
    Tensor=Tensor, _C=types.SimpleNamespace(DisableTorchFunction=contextlib.nullcontext)
)


class Program:
    def __init__(self):
        self.logs = {"loss": []}
        self.seen = growing.Growing(types.SimpleNamespace(torch=TORCH))

    def train(self, steps):
        kept, last, fixed = [], [], list(range(100))
        for step in range(1, steps + 1):
            kept.append((step, Tensor()))
            last = (last + [step])[-20:]
            self.logs["loss"].append(0.5)
            if growing.is_time(step):
                self.look(step)
        return kept, last, fixed

    def look(self, step):
        self.seen.look(sys._getframe(1), step)

    def found(self):
        return {name: note for (_, name), note in self.seen.notes()}


def look_from_here(seen, step):
    seen.look(sys._getframe(1), step)


class GrowingTest(unittest.TestCase):
    def line(self, text):
        with open(__file__) as source:
            lines = source.read().splitlines()
        return next(number for number, line in enumerate(lines, 1) if line.strip() == text)

    def test_variables_and_attributes_with_their_lines(self):
        program = Program()
        program.train(300)
        found = program.found()
        self.assertEqual(set(found), {"kept", "self.logs"})
        self.assertTrue(
            found["kept"]["where"].endswith("test_growing.py:%d" % self.line("kept.append((step, Tensor()))"))
        )
        self.assertEqual(found["kept"]["per_step"], 1)
        self.assertGreater(found["kept"]["bytes_per_step"], 400)
        self.assertEqual([found[name]["graph"] for name in ("kept", "self.logs")], [True, False])

    def test_a_short_run_or_one_that_stops_growing_tells_nothing(self):
        program = Program()
        program.train(64)
        self.assertEqual(program.found(), {})

        seen, bounded = growing.Growing(types.SimpleNamespace(torch=TORCH)), {}
        for step in range(1, 600):
            bounded[step % 50] = step
            if growing.is_time(step):
                look_from_here(seen, step)
        self.assertEqual(list(seen.notes()), [])

    def test_nothing_is_kept_alive(self):
        seen = growing.Growing(types.SimpleNamespace(torch=TORCH))
        value = Tensor()
        gone = weakref.ref(value)
        look_from_here(seen, 16)
        del value
        self.assertIsNone(gone())

    def test_variables_that_somebody_else_has_are_kept(self):
        def variables_of_caller():
            return sys._getframe(1).f_locals

        def train():
            width = 3
            seen = growing.Growing(types.SimpleNamespace(torch=TORCH))
            kept = variables_of_caller()
            look_from_here(seen, 16)
            return kept, width

        # Without the name that the filter knows: the count of references alone decides.
        names = growing._SEES_ITS_VARIABLES
        self.addCleanup(setattr, growing, "_SEES_ITS_VARIABLES", names)
        growing._SEES_ITS_VARIABLES = frozenset()
        kept, width = train()
        self.assertEqual(kept["width"], width)

    def test_its_own_memory_does_not_grow(self):
        seen = growing.Growing(types.SimpleNamespace(torch=TORCH))
        for step in range(1000):
            seen._compare(("fixed", Program.train.__code__), [1], step)
            seen._compare(("of_module", Program.train.__code__), of_module, step)
        self.assertLess(max(map(len, seen.known.values())), 10)

    def test_elements_are_not_asked(self):
        class Proxy:
            @property
            def __class__(self):
                raise AssertionError("asked")

        self.assertFalse(growing.Growing(types.SimpleNamespace(torch=TORCH))._has_graph(Proxy(), 1))

    def test_the_body_of_a_class_keeps_its_names(self):
        seen = growing.Growing(types.SimpleNamespace(torch=TORCH))

        class Training:
            step, kept = 0, []
            while step < 64:
                step += 1
                kept.append(step)
                look_from_here(seen, step)

        self.assertEqual(len(Training.kept), 64)

    def test_a_function_that_reads_its_variables_keeps_them(self):
        seen = growing.Growing(types.SimpleNamespace(torch=TORCH))
        value = 1
        names = locals()
        look_from_here(seen, 16)
        self.assertEqual(names["value"], value)


if __name__ == "__main__":
    unittest.main()
