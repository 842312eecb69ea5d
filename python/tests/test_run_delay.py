"""A sample that was held up because its thread had no CPU is no slow sample; with simulated times, and beside
busy processes."""

import os
import subprocess
import sys
import types
import unittest
from unittest import mock

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "shim")]

import run_case  # noqa: E402
from _unidle_shim.samples import run_delay, sample_cost  # noqa: E402
from run_case import HAS_TORCH, UNIDLE, environment  # noqa: E402

MS = 1_000_000
BUSY = "import os\nparent = os.getppid()\nwhile os.getppid() == parent: pass"


class Machine:
    """Time passes only where a sample is made: on the CPU, standing ready for one, or waiting for others."""

    def __init__(self):
        self.now_ns = self.cpu_ns = self.delay_ns = self.reads = 0

    def spend(self, cpu_ns, delay_ns=0, other_ns=0):
        self.now_ns += cpu_ns + delay_ns + other_ns
        self.cpu_ns += cpu_ns
        self.delay_ns += delay_ns

    def read(self):
        self.reads += 1
        return self.delay_ns


class Fetcher:
    """As torch's fetcher of a map-style data set."""

    auto_collation = True

    def __init__(self, dataset):
        self.dataset, self.collate_fn = dataset, list

    def fetch(self, indices):
        return self.collate_fn([self.dataset[index] for index in indices])


class SimulatedTest(unittest.TestCase):
    def note(self, cost_of, batches=40, read=None):
        """The note about samples whose costs cost_of(index) returns: on the CPU, standing ready, waiting."""
        machine, samples = Machine(), sample_cost.Samples(0)

        class Data:
            def __getitem__(self, index):
                machine.spend(*cost_of(index))
                return index

        fetcher, state = Fetcher(Data()), types.SimpleNamespace(ring=mock.Mock())
        with (
            mock.patch.object(sample_cost, "now", lambda: machine.now_ns),
            mock.patch.object(sample_cost, "_thread_time", lambda: machine.cpu_ns),
            mock.patch.object(run_delay, "read", read or machine.read),
        ):
            for batch in range(batches):
                indices = list(range(16 * batch, 16 * batch + 16))
                made = sample_cost.fetch(Fetcher.fetch, fetcher, indices, samples, state)
                self.assertEqual(made, indices)
        self.reads = machine.reads
        return samples.note()

    def test_a_preempted_sample_costs_what_others_cost(self):
        note = self.note(lambda index: (2 * MS, 0 if index % 50 else 200 * MS))
        self.assertLess(note["p99"], 1.3 * note["p50"])
        self.assertAlmostEqual(note["run_delay_seconds"], note["wait_seconds"], places=6)

    def test_a_sample_that_computes_is_slow(self):
        note = self.note(lambda index: (2 * MS if index % 50 else 200 * MS,))
        self.assertGreater(note["p99"], 80 * note["p50"])
        self.assertEqual(note["run_delay_seconds"], 0)

    def test_a_sample_that_waits_is_slow(self):
        note = self.note(lambda index: (2 * MS, 0, 0 if index % 50 else 200 * MS))
        self.assertGreater(note["p99"], 80 * note["p50"])
        self.assertEqual(note["run_delay_seconds"], 0)
        self.assertGreater(note["wait_seconds"], 1)

    def test_a_slow_sample_that_was_held_up_as_well_keeps_its_own_time(self):
        note = self.note(lambda index: (2 * MS, MS // 2, 0) if index % 50 else (2 * MS, 200 * MS, 100 * MS))
        self.assertAlmostEqual(note["p99"] / 0.102, 1, delta=0.2)

    def test_short_samples_cost_no_reading(self):
        self.note(lambda index: (MS // 2,), batches=10)
        self.assertEqual(self.reads, 2 * 10)

    def test_samples_that_all_take_long_cost_one_batch_of_readings(self):
        self.note(lambda index: (2 * MS,), batches=10)
        self.assertEqual(self.reads, 2 * 10 + 16)

    def test_readings_are_no_reads_of_the_program(self):
        self.assertIs(self.note(lambda index: (2 * MS,), read=run_delay.read)["reads_files"], False)

    def test_nothing_is_said_where_the_kernel_does_not_count(self):
        note = self.note(lambda index: (2 * MS,), read=lambda: None)
        self.assertNotIn("run_delay_seconds", note)
        self.assertIn("p99", note)

    def test_zeros_are_no_count(self):
        with mock.patch.object(run_delay.os, "read", lambda file, size: b"0 0 0\n"):
            self.assertIsNone(run_delay.read())

    def test_this_kernel(self):
        first = run_delay.read()
        if first is None:
            self.skipTest("this kernel does not count it")
        self.assertGreaterEqual(run_delay.read(), first)


@unittest.skipUnless(HAS_TORCH, "this Python has no torch")
@unittest.skipUnless(os.path.exists(UNIDLE), "UNIDLE_BIN is not set: there is no unidle to run")
@unittest.skipIf(run_delay.read() is None, "this kernel does not count it")
class BesideOthersTest(run_case.DiagnosedCase):
    def keep_cpus_busy(self):
        for _ in range(2 * len(os.sched_getaffinity(0))):
            busy = subprocess.Popen([sys.executable, "-c", BUSY])
            self.addCleanup(busy.wait)
            self.addCleanup(busy.kill)

    def test_samples_that_compute_or_wait_are_slow_wherever_they_run(self):
        for kind in ("heavy", "waits"):
            with self.subTest(kind):
                self.assertIn("dataset-heavy-tail", self.diagnosed("tails.py", kind))
        self.keep_cpus_busy()
        with self.subTest("waits, beside others"):
            found = self.diagnosed("tails.py", "waits")
            note = self.record.notes("samples")[-1]
            if note["run_delay_seconds"] < note["seconds_total"] / 2:  # else this cannot be told
                self.assertIn("dataset-heavy-tail", found)

    def test_samples_that_others_hold_up_are_not_slow(self):
        self.keep_cpus_busy()
        self.assertNotIn("dataset-heavy-tail", self.diagnosed("tails.py", "light"))
        note = self.record.notes("samples")[-1]
        self.assertLess(note["p99"], 8 * note["p50"])
        self.assertGreater(note["run_delay_seconds"], note["wait_seconds"] / 2)
        said = subprocess.run(
            [UNIDLE, "diagnose", self.record.folder], env=environment(), capture_output=True, text=True
        )
        self.assertTrue(said.stdout.startswith("Other processes took"), said.stdout)


if __name__ == "__main__":
    unittest.main()
