"""unidle.data.Loader: threads that are started and stopped automatically, and the memory of batches made
ahead."""

import os
import subprocess
import sys
import time
import unittest

import package

import unidle
from unidle.data import Loader, arrays

np = package.needs("numpy")

CPUS = len(os.sched_getaffinity(0))


def numbers(count):
    return arrays(np.arange(count), np.zeros((count, 100), np.float32))


def taken(loader):
    return [batch[0].tolist() for batch in loader]


class PaceTest(unittest.TestCase):
    def test_nothing_but_the_pace_depends_on_it(self):
        expected = [taken(Loader(numbers(101), 4, workers=0, tensors="numpy")) for _ in range(2)]
        with Loader(numbers(101), 4, prefetch=4, tensors="numpy") as loader:
            self.assertLessEqual(loader.workers, CPUS)
            for round in range(6):
                loader.set_epoch(0)
                batches = []
                for batch in loader:
                    batches.append(batch[0].tolist())
                    if round % 2:
                        time.sleep(0.003)  # another share of waiting
                self.assertEqual(batches, expected[0])
                self.assertTrue(1 <= loader.active_workers <= loader.workers)
                self.assertTrue(2 <= loader.batches_ahead <= max(2, 4 * loader.workers))

    def test_a_slow_program_is_left_one_thread(self):
        with Loader(numbers(100_000), 4, prefetch=8, tensors="numpy") as loader:
            for _ in loader:
                time.sleep(0.01)
                if loader.active_workers == 1 and loader.batches_ahead <= 4:
                    break
            self.assertEqual(loader.active_workers, 1)
            self.assertLessEqual(loader.batches_ahead, 4)

    def test_a_number_is_kept(self):
        with Loader(numbers(1000), 4, workers=2, tensors="numpy") as loader:
            for batch in loader:
                time.sleep(0.001)
            self.assertEqual((loader.active_workers, loader.workers, loader.batches_ahead), (2, 2, 4))
        with Loader(numbers(10), 4, workers=0, tensors="numpy") as loader:
            self.assertEqual((loader.active_workers, loader.workers), (0, 0))

    def test_a_forked_child_is_told_and_the_parent_goes_on(self):
        program = """
import os, sys, time
import numpy as np
import unidle
from unidle.data import Loader, arrays
loader = Loader(arrays(np.arange(100_000)), 5, prefetch=8, tensors="numpy")
batches = iter(loader)
for _ in range(100):
    next(batches)
    time.sleep(0.002)
child = os.fork()
if child == 0:
    try:
        next(batches)
    except unidle.ForkedError:
        os._exit(7)
    os._exit(1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
for _ in range(100):
    next(batches)
loader.close()
print("ended")
"""
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        done = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, env=environment, timeout=120
        )
        self.assertEqual((done.stdout, done.returncode), ("ended\n", 0), done.stderr)

    def test_stops_at_any_time(self):
        for stop in (0, 1, 7, 30):
            loader = Loader(numbers(1000), 4, prefetch=8, tensors="numpy")
            for number, _ in enumerate(loader):
                if number == stop:
                    break
            loader.close()
            self.assertEqual(len(next(iter(loader))[0]), 4)
            loader.close()


class MaxBytesTest(unittest.TestCase):
    BATCH = 4 * (8 + 400)

    def test_batches_ahead_are_as_many_as_fit(self):
        expected = taken(Loader(numbers(50), 4, workers=0, tensors="numpy"))
        for fit in (2, 3, 5):
            loader = Loader(
                numbers(50), 4, workers=3, prefetch=4, max_bytes=fit * self.BATCH, tensors="numpy"
            )
            self.assertEqual(loader.batches_ahead, fit)
            self.assertEqual(taken(loader), expected)
            loader.close()

    def test_what_does_not_fit_is_told_with_what_would(self):
        with self.assertRaisesRegex(unidle.UsageError, f"max_bytes.*max_bytes={2 * self.BATCH}"):
            Loader(numbers(50), 4, max_bytes=2 * self.BATCH - 1)
        for value in (0, -1, "x", 1.5):
            with self.assertRaisesRegex(unidle.UsageError, "max_bytes"):
                Loader(numbers(50), 4, max_bytes=value)


if __name__ == "__main__":
    unittest.main()
