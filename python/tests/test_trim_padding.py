"""batch.trim_padding at run time: batches for training end after their longest sequence, or stay, with a
reason."""

import os
import sys
import unittest

from run_case import HAS_TORCH, HERE, RunCase

PROGRAM = os.path.join(HERE, "programs", "padded.py")


@unittest.skipUnless(HAS_TORCH, "this Python has no torch")
class TrimPaddingTest(RunCase):
    def run_of(self, form, applied):
        """Returns what the program printed, with the outcome of the knob and the note on padding."""
        options = ["--apply", "batch.trim_padding=true"] if applied else []
        done = self.observed(sys.executable, PROGRAM, form, options=options)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([note for note in self.record.notes("shim") if note["status"] == "off"], [])
        widths, weights = done.stdout.splitlines()
        outcome = [(note["status"], note["why"]) for note in self.record.notes("apply")]
        padding = self.record.notes("padding")
        return widths, float(weights), outcome, padding[-1] if padding else None

    def test_batches_end_after_their_longest_sequence(self):
        for form in ("dict", "tuple", "pair", "workers", "spawned", "inverted"):
            with self.subTest(form):
                widths, weights, _, padding = self.run_of(form, False)
                self.assertEqual(widths, "[40] [40]")
                self.assertTrue(padding["cuts"])
                self.assertLess(padding["real"], padding["longest"])
                self.assertLess(padding["longest"], padding["padded"])
                trimmed, same, outcome, padding = self.run_of(form, True)
                self.assertEqual(trimmed, "[8, 16, 40] [40]", "the first batch, and those for the test, stay")
                self.assertEqual(outcome, [("taken", None)])
                self.assertAlmostEqual(same / weights, 1, places=5)
                self.assertEqual(self.record.settings()["batch.trim_padding"], "true")

    def test_batches_stay_where_their_end_may_be_used(self):
        refused = ("copied", "fixed", "lists", "next", "objects", "tags", "tokens", "unmasked")
        for form, status in [
            *((form, "refused") for form in refused),
            ("left", "ignored"),
            ("full", "ignored"),
        ]:
            with self.subTest(form):
                *plain, _, padding = self.run_of(form, False)
                self.assertFalse(padding["cuts"])
                *trimmed, ((said, why),), _ = self.run_of(form, True)
                self.assertEqual(said, status)
                self.assertTrue(why)
                self.assertEqual(trimmed, plain)


if __name__ == "__main__":
    unittest.main()
