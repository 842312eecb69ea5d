"""cache.features=disk: a run does not repeat an earlier run's computations; and nothing stale is ever
used."""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import package
from run_case import HAS_TORCH, HERE, UNIDLE, Record, environment, started

COUNT = 24


@unittest.skipUnless(HAS_TORCH and package.LIBRARY.exists(), "needs torch and libunidle.so")
class KeptOnDiskTest(unittest.TestCase):
    def setUp(self):
        self.folder = Path(tempfile.mkdtemp(prefix="unidle-kept-"))
        self.addCleanup(shutil.rmtree, self.folder)
        self.program = self.folder / "features.py"
        shutil.copy(os.path.join(HERE, "programs", "features.py"), self.program)
        self.data = self.folder / "data"
        self.data.mkdir()
        for item in range(COUNT):
            self.write(item, item)
        self.runs, self.bare = 0, {}

    def write(self, item, value):
        import numpy as np

        np.save(self.data / f"{item}.npy", np.arange(8) + value)

    def trained(self, kind="plain", workers=0, value="disk", **more):
        """(the computed samples, the message about the knob) of a run, whose output must be the bare
        one's."""
        self.runs += 1
        command = started(
            [sys.executable, str(self.program), str(self.data), kind, str(workers)], environment(**more)
        )
        same = (self.program.read_text(), (self.data / "3.npy").read_bytes(), kind, tuple(more.items()))
        if same not in self.bare:
            self.bare[same] = self.ran(command, COMPUTED="/dev/null", **more).stdout
        log, record = self.folder / f"log{self.runs}", self.folder / f"record{self.runs}"
        observed = [UNIDLE, "run", "-o", str(record), "--apply", f"cache.features={value}", "--", *command]
        done = self.ran(observed, COMPUTED=str(log), UNIDLE_CACHE=str(self.folder / "cache"), **more)
        self.assertEqual((done.returncode, done.stdout), (0, self.bare[same]), done.stderr)
        notes = Record(record)
        self.assertEqual([note for note in notes.notes("shim") if note["status"] == "off"], [])
        said = notes.notes("apply")
        self.settings = notes.settings()
        computed = log.read_text().split() if log.exists() else []
        return computed, {note["status"] for note in said}, " ".join(note["why"] or "" for note in said)

    def ran(self, command, **more):
        return subprocess.run(
            command, cwd=self.folder, env=environment(**more), capture_output=True, text=True
        )

    def test_the_second_run_computes_nothing_but_a_proof(self):
        first, status, why = self.trained(workers=2)
        self.assertEqual((set(first), status), ({f"{n}.npy" for n in range(COUNT)}, {"taken"}), why)
        second, status, why = self.trained(workers=2)
        self.assertEqual(status, {"taken"}, why)
        self.assertLessEqual(len(second), 2 * 2)  # one for each worker of each epoch

    def test_results_within_samples_that_differ_are_kept(self):
        first, status, why = self.trained("cropped")
        self.assertIn("taken", status, why)
        second, status, why = self.trained("cropped")
        self.assertIn("taken", status, why)
        self.assertLess(len(second), len(first) / 2)

    def test_a_data_set_that_is_made_anew_is_kept_on_disk_and_not_in_memory(self):
        computed, status, why = self.trained("anew", workers=2, value="memory", EPOCHS="4")
        self.assertGreaterEqual(len(computed), 4 * COUNT)
        self.assertIn("refused", status)
        self.assertIn("makes its data set anew", why)
        self.assertIn("cache.features=disk", why)
        computed, status, why = self.trained("anew", EPOCHS="4")
        self.assertEqual(status, {"taken"}, why)
        self.assertLess(len(computed), 2 * COUNT)

    def test_the_record_tells_that_a_data_set_is_made_anew(self):
        for kind in ("plain", "anew"):
            self.trained(kind)
            notes = Record(self.folder / f"record{self.runs}").notes("loader")
            self.assertEqual({note["dataset_anew"] for note in notes}, {kind == "anew"})

    def test_what_a_sample_depends_on_is_part_of_the_key(self):
        self.trained()
        self.assertLessEqual(len(self.trained()[0]), 2)  # a proof in each epoch
        self.assertEqual(self.settings["cache.features"], "disk")
        self.write(3, 100)
        self.assertGreaterEqual(len(self.trained()[0]), COUNT)
        text = self.program.read_text()
        self.program.write_text(text.replace("SCALE = 2.0", "SCALE = 3.0"))
        self.assertGreaterEqual(len(self.trained()[0]), COUNT)
        # Does not matter: the rest of the program.
        self.program.write_text(text.replace("0.01", "0.02"))
        self.assertLessEqual(len(self.trained()[0]), 2)

    def test_what_cannot_be_keyed_is_refused(self):
        computed, status, why = self.trained("lock")
        self.assertNotIn("taken", status)
        self.assertIn("lock", why)
        self.assertFalse((self.folder / "cache").exists())

    def test_an_input_that_nobody_sees_is_found_by_the_proof(self):
        self.assertEqual(self.trained("hidden", SHIFT="1")[1], {"taken"})
        _, status, why = self.trained("hidden", SHIFT="2")  # and its output is right
        self.assertIn("different when it was made again", why)
        self.assertNotIn("taken", status)
        _, status, why = self.trained("hidden", SHIFT="3")
        self.assertNotIn("taken", status)
        self.assertIn("earlier run", why)


if __name__ == "__main__":
    unittest.main()
