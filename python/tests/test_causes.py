"""`unidle diagnose` on real programs that are easily misjudged: what it says has to be so, and what it proposes has to work."""

import importlib.util
import json
import os
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import test_run  # noqa: E402
from test_run import HAS_TORCH, HERE, UNIDLE, environment  # noqa: E402


@unittest.skipUnless(HAS_TORCH, "this Python has no torch")
@unittest.skipUnless(os.path.exists(UNIDLE), "UNIDLE_BIN is not set: there is no unidle to run")
class CausesTest(unittest.TestCase):
    setUp, observed = test_run.RunTest.setUp, test_run.RunTest.observed

    def diagnosed(self, program, *words, code=0):
        """Runs the program; what is said of it."""
        done = self.observed(sys.executable, os.path.join(HERE, "programs", program), *words)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([note for note in self.record.notes("shim") if note["status"] == "off"], [])
        path = max((os.path.join(self.folder, name) for name in os.listdir(self.folder) if name.startswith("record")), key=os.path.getmtime)
        asked = subprocess.run([UNIDLE, "diagnose", path, "--format", "json"], env=environment(), capture_output=True, text=True)
        self.assertEqual(asked.returncode, code, asked.stdout + asked.stderr)
        self.said = json.loads(asked.stdout)
        return {finding["id"]: finding for finding in self.said["findings"]}

    # -- several errors --------------------------------------------------------------------------------------------

    def test_nothing_is_trained_after_the_last_of_several_errors(self):
        failed = self.diagnosed("errors.py", "last", code=1)["run-failed"]
        self.assertEqual((self.said["outcome"], failed["severity"]), ("failed", "critical"))
        self.assertIn("it said: ValueError: no score for 59", failed["evidence"])
        self.assertTrue(failed["where"].endswith("errors.py:24"), failed["where"])

    def test_training_goes_on_after_all_errors(self):
        for mode in ("middle", "summary"):
            with self.subTest(mode):
                failed = self.diagnosed("errors.py", mode)["run-failed"]
                self.assertEqual((self.said["outcome"], failed["severity"]), ("completed", "info"))


if __name__ == "__main__":
    unittest.main()
