"""loader.gather on programs whose rows could be others when they are taken together: the same losses to the
bit, and a true reason where it is refused."""

import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import run_case  # noqa: E402
from run_case import HAS_TORCH, HERE, UNIDLE  # noqa: E402

PROGRAM = os.path.join(HERE, "programs", "gathered.py")


@unittest.skipUnless(HAS_TORCH, "this Python has no torch")
@unittest.skipUnless(os.path.exists(UNIDLE), "UNIDLE_BIN is not set: there is no unidle to run")
class GatheredTest(run_case.RunCase):
    def _applied(self, kind, workers="0"):
        command = (sys.executable, PROGRAM, kind, workers)
        bare = self.bare(*command)
        done = self.observed(*command, options=["--apply", "loader.gather=true"])
        errors = "".join(line for line in done.stderr.splitlines(True) if not line.startswith("unidle: "))
        self.assertEqual((done.returncode, done.stdout, errors), (0, bare.stdout, bare.stderr))
        self.assertEqual([note for note in self.record.notes("shim") if note["status"] == "off"], [])
        said = [note for note in self.record.notes("apply") if note["knob"] == "loader.gather"]
        return {note["status"] for note in said}, " ".join(note["why"] for note in said if note["why"])

    def _taken(self, *kinds, workers="0"):
        for kind in kinds:
            with self.subTest(kind):
                self.assertEqual(self._applied(kind, workers), ({"taken"}, ""))

    def _refused(self, kinds, workers="0"):
        for kind, reason in kinds.items():
            with self.subTest(kind):
                status, why = self._applied(kind, workers)
                self.assertEqual((status, reason in why), ({"refused-in-part"}, True), why)

    def test_rows_that_share_memory_are_apart_in_the_batch(self):
        self._taken("twice", "view")

    def test_rows_of_parts_named_rows_and_other_forms(self):
        self._taken("plain", "split", "plain-array", "named", "inherited", "inference", "change-values")

    def test_workers(self):
        self._taken("plain", "twice", "named", workers="2")
        self._refused({"branch": "self.y[i] > 1", "draws": "np.random.rand"}, workers="2")

    def test_code_that_decides_by_the_contents_of_a_row(self):
        self._refused({"late": "self.y[i].min() > 1", "branch": "self.y[i] > 1", "clipped": "calls min"})

    def test_a_refused_program_is_asked_as_without_it(self):
        self._refused(
            {
                "kinds": "seen.add",
                "kinds-split": "seen.add",
                "kinds-array": "seen.add",
                "kinds-tensor": "no list",
                "draws": "np.random.rand",
                "together-split": "whole batches already",
                "joined": "idx < 0",
            }
        )

    def test_indices_that_are_no_plain_numbers(self):
        self._taken("odd-negative", "odd-bools", "odd-tensors", "odd-repeated", "tensors-odd")
        self._refused({"tensors-tensor": "no list"})

    def test_numbers_of_which_single_rows_warn(self):
        status, why = self._applied("warns")
        self.assertEqual(status, {"taken", "refused-in-part"})
        self.assertIn("FloatingPointError", why)

    def test_whole_numbers_that_are_rounded_twice(self):
        self._refused({"rounded": "ValueError"})

    def test_a_program_that_changes_its_dataset_while_it_trains(self):
        for kind in ("change-array", "change-class", "change-function", "change-together"):
            with self.subTest(kind):
                status, why = self._applied(kind)
                self.assertEqual(status, {"taken", "refused-in-part"})
                self.assertIn("changes how rows are taken", why)

    def test_modes_that_see_what_torch_does(self):
        self._refused({"device": "a default device"})
        status, why = self._applied("mode")
        self.assertEqual(status, {"taken", "refused-in-part"})
        self.assertIn("a mode of torch", why)


if __name__ == "__main__":
    unittest.main()
