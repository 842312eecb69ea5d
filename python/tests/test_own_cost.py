"""The cost of observing a step, from timed parts, and which steps are observed in full because of it; with
simulated times."""

import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "shim"))

from _unidle_shim.loop import own_cost
from _unidle_shim.samples import sample_cost  # noqa: E402


class OwnCostTest(unittest.TestCase):
    def run_steps(self, count, step_ns, own_ns, longest=1 << 60):
        """As in Loop and MarkedSteps; no stretch is longer than `longest` steps."""
        cost, step, t = own_cost.OwnCost(), 0, 0
        self.timed, self.stretches, self.inspected = 0, [], []
        while step < count:
            if cost.on:
                self.timed += 1
                cost.ns += own_ns(step)
            t += step_ns
            if step >= cost.next_step:
                cost.turn(step, t)
            step += 1
            if cost.marked_until:
                self.inspected.append(cost.may_inspect(1, t))
                steps = min(longest, max(1, (cost.marked_until - t) // step_ns))
                self.stretches.append((step, steps))
                step, t = step + steps, t + steps * step_ns
                cost.resume(step, t, steps)
        self.marked = sum(steps for _, steps in self.stretches)
        return cost

    def test_nothing_is_said_before_it_was_timed(self):
        self.assertEqual(self.run_steps(4, 1_000_000, lambda step: 5000).cost_ns(), 0)

    def test_the_median_of_the_newest(self):
        cost = self.run_steps(20000, 100_000_000, lambda step: 5000 if step % 5 else 900_000)
        self.assertEqual(cost.cost_ns(), 5000)
        self.assertEqual(self.stretches, [])
        self.assertFalse(cost.thinned)

    def test_batches_are_inspected_in_as_many_stretches_as_are_cheap(self):
        for step_ns in (1_000_000, 4_000_000, 30_000_000):
            self.run_steps(600_000_000_000 // step_ns, step_ns, lambda step: 80_000)
            inspected = sum(steps for (_, steps), seen in zip(self.stretches, self.inspected) if seen)
            share = inspected * 40_000 / 600_000_000_000
            self.assertGreater(share, 0.0008)
            self.assertLess(share, 0.00101)

    def test_few_steps_are_timed(self):
        self.run_steps(20000, 100_000_000, lambda step: 5000)
        self.assertLess(self.timed, 120)
        self.assertGreater(self.timed, 60)

    def test_short_runs_are_seen_in_full(self):
        self.run_steps(2000, 1_000_000, lambda step: 40_000)
        self.assertEqual(self.stretches, [])

    def test_short_steps_are_only_marked_most_of_the_time(self):
        for step_ns, own_ns, most in (
            (1_000_000, 40_000, 0.02),
            (10_000_000, 60_000, 0.1),
            (100_000, 20_000, 0.02),
        ):
            count = 200_000
            self.run_steps(count, step_ns, lambda step: own_ns)
            full = count - self.marked
            self.assertLess((full - 2e9 / step_ns - 512) / count, most)
            self.assertGreater(len(self.stretches), 50)
            gaps = {
                follower[0] - one[0] - one[1] for one, follower in zip(self.stretches, self.stretches[1:])
            }
            self.assertTrue(min(gaps) >= 8, gaps)
            self.assertGreater(len({steps for _, steps in self.stretches}), 10)

    def test_a_stretch_that_is_cut_off_goes_on(self):
        self.run_steps(20_000, 1_000_000, lambda step: 40_000, longest=50)
        self.assertGreater(self.marked, 14_000)

    def test_stretches_that_are_cut_off_at_once_are_given_up(self):
        self.run_steps(20_000, 1_000_000, lambda step: 40_000, longest=3)
        self.assertLess(self.marked, 100)


class Ring:
    def __init__(self):
        self.told = []

    def emit(self, kind, t_ns, duration_ns, step=0, a=0, b=0, value=0.0, reserved=0):
        self.told.append((duration_ns, value))


class PassedBatchesTest(unittest.TestCase):
    def test_batches_that_are_not_looked_into_are_counted_all_the_same(self):
        mine, ring, t = sample_cost.Samples(0), Ring(), 0
        for batch in range(80):
            if batch < 8 or batch % 8 == 0:
                mine.collate_begin = t + 3000
                sample_cost.account(mine, ring, t, t + 4000, 32, 3000, 1000)
            elif batch % 8 == 1:
                mine.count_unwatched(ring, t, 7 * 4000, 7 * 32, 7)
            t += 1_000_000
        mine.tell()
        note = mine.note()
        self.assertEqual((note["count"], note["batches"]), (80 * 32, 80))
        self.assertAlmostEqual(note["seconds_total"], 80 * 3e-6)
        self.assertAlmostEqual(note["batch_collate_seconds"], 80 * 1e-6)
        self.assertEqual(sum(count for _, count in ring.told), 80 * 32)
        self.assertTrue(mine.cheap)

    def test_a_sampler_works_in_the_wait_for_such_batches_and_makes_no_samples(self):
        mine, ring = sample_cost.Samples(0), Ring()
        for _ in range(8):
            mine.collate_begin = 3000
            sample_cost.account(mine, ring, 0, 4000, 32, 3000, 1000)
        mine.count_unwatched(
            ring, 4000, 72 * 5_000_000, 72 * 32, 72
        )  # of which the samples took 4000 ns each
        mine.tell()
        note = mine.note()
        self.assertAlmostEqual(note["seconds_total"], 80 * 3e-6)
        self.assertAlmostEqual(note["batch_collate_seconds"], 80 * 1e-6)
        self.assertAlmostEqual(sum(ns for ns, _ in ring.told) * 1e-9, 80 * 4e-6, delta=9e-6)


class TimedSamplesTest(unittest.TestCase):
    def timed(self, sample_ns, rows, batches=400):
        """Returns the share of the batches whose samples were timed one by one, and the samples made."""
        samples = sample_cost.Samples(0)
        for _ in range(batches):
            if samples.each():
                samples.took += [sample_ns] * rows
            samples.collate_begin = 1
            sample_cost.account(samples, Ring(), 0, sample_ns * rows, rows, sample_ns * rows, 0)
        return samples.timed / samples.count, samples

    def test_timing_samples_costs_half_a_percent_of_making_them(self):
        for rows in (1, 16, 128, 1000):
            for sample_ns in (2_000, 30_000, 100_000):
                with self.subTest(rows=rows, sample_ns=sample_ns):
                    share, _ = self.timed(sample_ns, rows)
                    self.assertAlmostEqual(share, 0.005 * sample_ns / 1500, delta=4 / 400)
            self.assertEqual(self.timed(1_000_000, rows)[0], 1.0)

    def test_the_histogram_places_a_time_within_a_quarter_of_an_octave(self):
        for sample_ns in (1, 3, 7, 8, 1_000, 29_999, 123_456, 5_000_000_000):
            _, samples = self.timed(sample_ns, 16, 1)
            if sample_ns > 7:
                self.assertAlmostEqual(samples.percentile(0.5) * 1e9 / sample_ns, 1, delta=0.13)
            self.assertEqual(samples.max_ns, sample_ns)
            self.assertEqual(samples.took, [])


if __name__ == "__main__":
    unittest.main()
