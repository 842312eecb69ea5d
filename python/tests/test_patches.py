"""Queries of a patched function give the same as bare: for all of them, from the shim's own list."""

import json
import os
import subprocess
import sys
import tempfile
import unittest

from guarding import LIBRARY, SHIM
from run_case import HAS_TORCH, HERE, environment

PROGRAM = os.path.join(HERE, "programs", "patched.py")
WARNINGS = os.path.join(HERE, "programs", "warnings_in_c.py")

# A C method's stand-in belongs to Tensor, not to its base; texts of errors are not compared.
OTHERWISE = {"__qualname__", "signature"}


@unittest.skipUnless(HAS_TORCH and os.path.exists(LIBRARY), "there is no torch, or no library of the shim")
class PatchesTest(unittest.TestCase):
    def both(self, program, *words):
        with tempfile.TemporaryDirectory() as folder:
            ours = {"UNIDLE_PROBE_DIR": folder, "PYTHONPATH": SHIM, "UNIDLE_LIGHT_LIBRARY": LIBRARY}
            words = [os.path.join(folder, "names"), *words]
            return [
                subprocess.run(
                    [sys.executable, program, *words],
                    env=environment(OMP_NUM_THREADS="1", **more),
                    capture_output=True,
                    text=True,
                )
                for more in (ours, {})
            ]

    def test_everything_that_is_asked_of_them(self):
        observed, bare = (json.loads(done.stderr.splitlines()[-1]) for done in self.both(PROGRAM))
        self.assertEqual(set(observed), set(bare))
        for name, answers in bare.items():
            with self.subTest(name):
                if isinstance(answers, dict):
                    of_c = answers["type"] in ("method_descriptor", "builtin_function_or_method")
                    differs = {
                        key: (answer, observed[name][key])
                        for key, answer in answers.items()
                        if answer != observed[name][key] and not (of_c and key in OTHERWISE)
                    }
                    self.assertEqual(differs, {})
                elif name != "saves: script":  # fails in either case, for another reason each
                    self.assertEqual(observed[name], answers)
        self.assertIn("torch.Tensor.item", bare)

    def test_warnings_that_are_raised_in_c(self):
        observed, bare = self.both(WARNINGS)
        self.assertEqual(
            (observed.returncode, observed.stdout, observed.stderr),
            (bare.returncode, bare.stdout, bare.stderr),
        )
        self.assertIn("not writable", bare.stderr)


if __name__ == "__main__":
    unittest.main()
