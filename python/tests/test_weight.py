"""What a step of observation costs, from parts that were timed; against times that are made up."""

import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "shim"))

from _unidle_shim import samples, weight  # noqa: E402


class WeightTest(unittest.TestCase):
    def run_steps(self, count, step_ns, own_ns):
        weighing = weight.Weight()
        self.weighed = 0
        for step in range(count):
            if weighing.on:
                self.weighed += 1
                weighing.ns += own_ns(step)
            if step >= weighing.next_step:
                weighing.turn(step, step * step_ns)
        return weighing

    def test_nothing_is_said_before_it_was_timed(self):
        self.assertEqual(self.run_steps(4, 1_000_000, lambda step: 5000).cost_ns(), 0)

    def test_the_median_of_the_newest(self):
        weighing = self.run_steps(20000, 10_000_000, lambda step: 5000 if step % 5 else 900_000)
        self.assertEqual(weighing.cost_ns(), 5000)
        self.assertEqual(weighing.step_ns, 10_000_000)
        self.assertEqual(weighing.every, 1)

    def test_few_steps_are_weighed(self):
        self.run_steps(20000, 1_000_000, lambda step: 5000)
        self.assertLess(self.weighed, 120)
        self.assertGreater(self.weighed, 60)

    def test_short_steps_are_seen_less_closely(self):
        self.assertEqual(self.run_steps(2000, 1_000_000, lambda step: 15_000).every, 8)
        self.assertEqual(self.run_steps(2000, 1_000_000, lambda step: 9_000).every, 1)


class Ring:
    def __init__(self):
        self.told = []

    def emit(self, kind, t_ns, duration_ns, step=0, a=0, b=0, value=0.0, reserved=0):
        self.told.append((duration_ns, value))


class PassedBatchesTest(unittest.TestCase):
    def test_batches_that_are_not_looked_into_are_counted_all_the_same(self):
        mine, ring, t = samples.Samples(0), Ring(), 0
        for batch in range(80):
            if batch < 8 or batch % 8 == 0:
                mine.collate_begin = t + 3000
                samples.account(mine, ring, t, t + 4000, 32, 3000, 1000, 0)
            else:
                mine.pass_by(ring, t, 4000, 32)
            t += 1_000_000
        mine.tell()
        note = mine.note()
        self.assertEqual((note["count"], note["batches"]), (80 * 32, 80))
        self.assertAlmostEqual(note["seconds_total"], 80 * 3e-6)
        self.assertAlmostEqual(note["batch_collate_seconds"], 80 * 1e-6)
        self.assertEqual(sum(count for _, count in ring.told), 80 * 32)
        self.assertTrue(mine.cheap)


if __name__ == "__main__":
    unittest.main()
