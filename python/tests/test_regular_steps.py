"""Counting afterwards when all steps are alike."""

import os
import sys
import types
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "shim"))

from _unidle_shim.loop import regular_steps, short_steps  # noqa: E402
from _unidle_shim.loop.step_parts import Parts  # noqa: E402


class Parameter:
    def __init__(self, version=0):
        self._version = version


def optimizer_of(*parameters):
    return types.SimpleNamespace(param_groups=[{"params": list(parameters)}])


class RhythmTest(unittest.TestCase):
    def test_steps_are_the_changes_of_a_parameter(self):
        frozen, uneven, good = Parameter(3), Parameter(), Parameter(7)
        versions = regular_steps.Versions(optimizer_of(frozen, uneven, good), 100)
        uneven._version, good._version = 21, 7 + 20
        rhythm = versions.rhythm(110)
        self.assertIs(rhythm.parameter, good)
        self.assertEqual((rhythm.changes, rhythm.steps()), (2, 0))
        good._version += 14
        self.assertEqual(rhythm.steps(), 7)
        good._version += 1
        self.assertIsNone(rhythm.steps())

    def test_without_a_regular_one_there_is_none(self):
        uneven = Parameter()
        versions = regular_steps.Versions(optimizer_of(uneven, Parameter()), 0)
        uneven._version = 11
        self.assertIsNone(versions.rhythm(10))
        self.assertIsNone(versions.rhythm(0))

    def test_a_parameter_that_is_gone_is_passed_over(self):
        gone, good = Parameter(), Parameter()
        versions = regular_steps.Versions(optimizer_of(gone, good), 0)
        good._version = 10
        del gone
        self.assertIs(versions.rhythm(10).parameter, good)


class MarksTest(unittest.TestCase):
    def test_the_optimiser_steps_before_the_next_batch(self):
        self.assertEqual(regular_steps.marks([10, 20, 30], 1, 1, 3, 99), [10, 20, 30])
        self.assertEqual(regular_steps.marks([10, 20, 30], 1, 1, 4, 99), [10, 20, 30, 99])
        self.assertEqual(regular_steps.marks([10, 20, 30, 40, 50], 1, 2, 3, 99), [20, 40, 99])
        self.assertEqual(regular_steps.marks([], 1, 1, 1, 99), [99])

    def test_batches_and_steps_fit_or_not(self):
        self.assertTrue(
            regular_steps.fits(10, 1, 10) and regular_steps.fits(10, 1, 9) and regular_steps.fits(13, 5, 2)
        )
        self.assertFalse(
            regular_steps.fits(10, 1, 8) or regular_steps.fits(10, 1, 11) or regular_steps.fits(16, 5, 2)
        )


class SizesTest(unittest.TestCase):
    def loader(self, samples, drop_last=False):
        sampler = types.SimpleNamespace(drop_last=drop_last, sampler=range(samples))
        return types.SimpleNamespace(real=lambda: types.SimpleNamespace(batch_sampler=sampler))

    def test_the_last_batch_of_an_epoch_may_be_shorter(self):
        at = lambda number: types.SimpleNamespace(_num_yielded=number)  # noqa: E731
        self.assertEqual(regular_steps.sizes(self.loader(10), 4, at(3), 2), [4, 2])
        self.assertEqual(regular_steps.sizes(self.loader(10), 4, at(2), 2), [4, 4])
        self.assertEqual(regular_steps.sizes(self.loader(12), 4, at(3), 2), [4, 4])
        self.assertEqual(regular_steps.sizes(self.loader(10, True), 4, at(2), 2), [4, 4])
        self.assertEqual(regular_steps.sizes(self.loader(10), 4, None, 1), [4])


class SharesTest(unittest.TestCase):
    def test_rare_times_of_a_stretch_are_given_to_its_steps_once(self):
        parts = Parts(0)
        parts.transfer, parts.sync, parts.syncs, parts.log, parts.flush = 40, 60, 3, 5, 6
        steps = [(0, 100, 10, 4, 1), (100, 300, 10, 4, 1)]  # begin, length, input wait, samples, batches
        self.assertEqual(short_steps._shared(parts, steps), [[10, 15, 1, 5, 6], [30, 45, 2, 0, 0]])


if __name__ == "__main__":
    unittest.main()
