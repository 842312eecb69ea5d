"""cache.features for functions within samples: what counts as the same call, and what a function leaves."""

import os
import pathlib
import sys
import types
import unittest

from run_case import HAS_TORCH, HERE

sys.path.insert(0, os.path.join(HERE, "..", "shim"))

from _unidle_shim.source import fingerprint, side_effects, stand_in  # noqa: E402

COUNTS = []
SIZE = 3


def count(number):
    COUNTS[0] = number


class Data:
    def __init__(self):
        self.scale = 1

    def counts(self, number):
        count(number)

    def alone(self, number):
        made = [number]
        made[0] = SIZE
        return made

    def given(self, row):
        row[0] = 1


@unittest.skipUnless(HAS_TORCH, "there is no torch")
class ChangesTest(unittest.TestCase):
    def test_a_new_number_is_a_change_and_a_new_object_is_none(self):
        from _unidle_shim.knobs import kept_calls

        data = Data()
        calls = types.SimpleNamespace(dataset=data, held=kept_calls.numbers_of(data), changes=set())
        data.epoch, data.file = 1, object()
        kept_calls.KeptCalls.look_at_the_dataset(calls, kept_calls.held_by(data))
        self.assertEqual(calls.changes, {"epoch"})


class LeavesTest(unittest.TestCase):
    def test_what_leaves_something(self):
        for function, expected in ((Data.counts, True), (Data.alone, False), (Data.given, True)):
            self.assertEqual(side_effects.leaves_something(function, (Data(),)), expected, function)

    def test_a_function_that_is_replaced_now_is_read_as_it_was(self):
        stub = stand_in.Stub(count, lambda args, kwargs: None)
        try:
            self.assertTrue(side_effects.leaves_something(Data.counts, (Data(),)))
        finally:
            stub.give_back()
        self.assertTrue(side_effects.leaves_something(Data.counts, (Data(),)))

    def test_functions_of_other_modules_are_followed(self):
        other = types.ModuleType("other")
        exec("BUFFER = [0]\ndef fill(i): BUFFER[0] = i\ndef load(i): return fill(i)", vars(other))
        for name in ("fill", "load"):
            function = getattr(other, name)
            function.__code__ = function.__code__.replace(co_filename=__file__)  # of the program
        names = {"other": other}
        exec("def makes(i): return other.load(i)", names)
        makes = names["makes"]
        makes.__code__ = makes.__code__.replace(co_filename=__file__)
        self.assertTrue(side_effects.leaves_something(makes, ()))
        self.assertIn((vars(other), ("BUFFER",)), side_effects.reads_of(makes, ()))


@unittest.skipUnless(HAS_TORCH, "this Python has no torch")
class KeyTest(unittest.TestCase):
    def setUp(self):
        from _unidle_shim.knobs.kept_calls import KeptFunction

        self.kept = object.__new__(KeptFunction)
        self.kept.calls = types.SimpleNamespace(dataset=Data())
        self.kept.uses, self.kept.odd = {"scale"}, 0
        self.kept.reads = [(globals(), ("SIZE",))]

    def key(self, *args, **kwargs):
        return self.kept._key(args, kwargs)

    def test_values_of_different_types_differ(self):
        for values in (
            (1, 1.0, True, "1", b"1", None, pathlib.Path("1")),
            (0.0, -0.0),
            ((1, 2), (1.0, 2), (True, 2), "(int 1, int 2)"),
        ):
            self.assertEqual(len({self.key(3, each) for each in values}), len(values), values)
            self.assertEqual(len({self.key(3, scale=each) for each in values}), len(values), values)

    def test_the_same_call_has_the_same_key(self):
        self.assertEqual(self.key(3, b=(1, "x"), a=2.5), self.key(3, a=2.5, b=(1, "x")))
        self.assertIsNone(self.key(3, [1]))
        self.assertNotEqual(self.key(3, a=1), self.key(3, b=1))

    def test_it_changes_with_what_the_dataset_and_the_module_hold(self):
        global SIZE
        before = self.key(3)
        self.kept.calls.dataset.scale = 1.0
        changed = self.key(3)
        self.assertNotEqual(changed, before)
        SIZE = 3.0
        self.addCleanup(globals().update, SIZE=3)
        self.assertNotEqual(self.key(3), changed)


@unittest.skipUnless(HAS_TORCH, "this Python has no torch")
class DataTest(unittest.TestCase):
    def changed(self, value, change):
        before = fingerprint.of(value, data=True)
        self.assertEqual(fingerprint.of(value, data=True), before)
        change(value)
        return fingerprint.of(value, data=True) != before

    def test_arrays_are_compared_by_value(self):
        import numpy as np
        import torch

        for value in (np.zeros(100_000), np.zeros((3000, 3000)), np.zeros((500, 4))[:, ::2], np.zeros(0)):
            self.assertEqual(self.changed(value, lambda array: array[:].fill(1)), value.size > 0)
        for dtype in (torch.float32, torch.bfloat16, torch.int64):
            self.assertTrue(self.changed(torch.zeros(100_000, dtype=dtype), lambda one: one.data.add_(1)))

    def test_data_sets_within_data_sets_are_followed(self):
        import numpy as np
        import torch

        class Inner(torch.utils.data.Dataset):
            def __init__(self):
                self.buffer = np.zeros(5000)

        def fill(subset):
            subset.dataset.buffer[:] = 1

        self.assertTrue(self.changed(torch.utils.data.Subset(Inner(), [1]), fill))

    def test_what_has_no_numbers_is_left(self):
        import torch

        for value in (torch.zeros(3, device="meta"), torch.zeros(3).to_sparse()):
            self.assertFalse(self.changed(value, lambda one: None))


if __name__ == "__main__":
    unittest.main()
