"""Runs of short steps, only some of which are observed in full: the record of all of them, compared with the
program's own counts."""

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import unittest

import package
from run_case import HAS_TORCH, HERE, UNIDLE, Record, environment, started

LONG_S = 3  # until steps are sampled and the others have only been marked for long enough
PROGRAM = os.path.join(HERE, "programs", "short_steps.py")


@unittest.skipUnless(os.path.exists(UNIDLE) and HAS_TORCH, "UNIDLE_BIN is not set, or there is no torch")
class ShortStepsTest(unittest.TestCase):
    more = {}

    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)

    def run_program(self, mode, seconds=LONG_S, *options):
        record, told = os.path.join(self.folder, "record"), os.path.join(self.folder, "told.json")
        given = environment(OMP_NUM_THREADS="1", UNIDLE_BIN=os.path.dirname(UNIDLE), **self.more)
        command = started([sys.executable, PROGRAM, mode, str(seconds), told], given)
        done = subprocess.run(
            [UNIDLE, "run", "-o", record, *options, "--", *command],
            env=given,
            cwd=self.folder,
            capture_output=True,
            text=True,
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        self.record = Record(record)
        self.assertEqual(self.record.meta("problems"), [])
        self.note = self.record.notes("shim")[-1]
        self.assertEqual(self.note["status"], "on", self.note)
        self.said = self.read(told) if os.path.exists(told) else None

    @staticmethod
    def read(path):
        with open(path) as file:
            return json.load(file)

    def check(self, mode, thinned=True):
        self.run_program(mode)
        steps, samples = self.record.rows("select count(*), sum(samples) from steps")[0]
        self.assertEqual((steps, samples), (self.said["steps"], self.said["samples"]))
        full = self.record.one(
            "select count(*) from steps where forward_ns is not null or backward_ns is not null"
        )
        if thinned:
            self.assertLess(full, 0.9 * steps)
            self.assertEqual(self.note["steps_in_full"], full)
        overlapping = self.record.one(
            "select count(*) from steps a join steps b on b.idx = a.idx + 1 "
            "where a.t_ns + a.duration_ns > b.t_ns"
        )
        self.assertEqual(overlapping, 0)
        return steps, full

    def error_of_input(self):
        """The relative difference between the recorded wait for a batch and the program's own, in the steps
        that were only marked. The difference is the cost of the patches. Medians: on a busy machine, another
        process may run between the two readings of the clock."""
        rows = self.record.rows("select input_ns, forward_ns from steps order by idx")
        pairs = [
            (input_ns * 1e-9, own)
            for (input_ns, forward), own in zip(rows, self.said["waits_s"])
            if not forward
        ]
        recorded, own = (statistics.median(column) for column in zip(*pairs))
        return abs(recorded - own) / own

    def test_a_loader_with_validation_now_and_then(self):
        steps, _ = self.check("map")
        self.assertEqual(
            self.record.one("select count(*) from spans where kind = 'validate'"), self.said["validations"]
        )
        self.assertLess(self.error_of_input(), 0.1)
        self.assertEqual(
            [note for note in self.record.notes("loader") if note["id"] == 0][-1]["batches"], steps
        )
        samples = [note for note in self.record.notes("samples") if note["id"] == 0][-1]
        self.assertEqual(samples["count"], self.said["samples"])
        bare = os.path.join(self.folder, "bare.json")
        given = environment(OMP_NUM_THREADS="1")
        subprocess.run(
            started([sys.executable, PROGRAM, "map", str(LONG_S), bare], given), env=given, check=True
        )
        pairs = list(zip(self.read(bare)["losses"], self.said["losses"]))
        self.assertGreater(len(pairs), 5)
        self.assertEqual(*zip(*pairs))

    @unittest.skipUnless(package.LIBRARY.exists(), "there is no library of the package")
    def test_a_loader_of_the_package(self):
        steps, _ = self.check("package")
        self.assertLess(self.error_of_input(), 0.3)  # short: patches count
        self.assertEqual(
            [note for note in self.record.notes("loader") if note["id"] == 0][-1]["batches"], steps
        )
        samples = [note for note in self.record.notes("samples") if note["id"] == 0][-1]
        self.assertEqual(samples["count"], self.said["samples"])

    def test_an_iterable_dataset(self):
        self.check("iterable")

    def test_validation_every_few_steps(self):
        self.check("often", thinned=False)
        self.assertEqual(
            self.record.one("select count(*) from spans where kind = 'validate'"), self.said["validations"]
        )

    def test_micro_batches(self):
        self.check("accumulated")
        self.assertEqual(self.record.rows("select distinct micro_batches from steps"), [(5,)])

    def test_without_a_loader(self):
        self.check("sliced")

    def test_what_follows_the_last_step_is_no_training(self):
        self.check("tested")
        looks = {
            note["phase"]: note["total"]
            for note in self.record.notes("hot")
            if note["phase"] in ("train", "after")
        }
        self.assertGreater(looks.get("after", 0), looks["train"] / 2, looks)
        after = max(self.record.notes("hot"), key=lambda note: note["hits"] * (note["phase"] == "after"))
        self.assertEqual(after["function"], "test_the_model")

    def test_without_an_optimiser(self):
        self.check("by-hand")

    def test_two_optimisers(self):
        self.check("two")

    def test_two_optimisers_with_batches_of_their_own(self):
        self.check("two-batches")
        self.assertEqual(
            self.record.rows("select micro_batches from steps group by 1 order by count(*) desc")[0], (1,)
        )

    def test_a_scaler_that_leaves_steps_out(self):
        import torch

        if not hasattr(torch.amp, "GradScaler"):
            self.skipTest("this torch has no scaler for CPUs")
        self.check("scaled")

    def test_batches_that_are_not_learnt_from(self):
        self.check("skips")

    def test_parameters_that_something_else_changes(self):
        self.check("clamped")

    def test_schedulers_that_are_made_meanwhile(self):
        self.check("scheduled")

    def test_it_stops_after_the_asked_steps(self):
        self.run_program("map", 300, "--steps", "20000")
        self.assertIsNone(self.said)
        steps, last = self.record.rows("select count(*), max(idx) from steps")[0]
        self.assertEqual((steps, last), (20000, 19999))
        self.assertLess(self.note["steps_in_full"], 20000)


class WithoutLibraryTest(ShortStepsTest):
    """The patch of batch fetches in Python, used if the library cannot be loaded."""

    more = {"UNIDLE_LIGHT_LIBRARY": ""}

    test_without_a_loader = test_without_an_optimiser = test_validation_every_few_steps = (
        test_it_stops_after_the_asked_steps
    ) = None
    test_two_optimisers = test_batches_that_are_not_learnt_from = (
        test_parameters_that_something_else_changes
    ) = None
    test_a_scaler_that_leaves_steps_out = test_an_iterable_dataset = None


if __name__ == "__main__":
    unittest.main()
