"""A short version of table_kills.py; the long one is tools/attack.sh table."""

import os
import subprocess
import sys
import unittest
from pathlib import Path

import package

package.needs("numpy")


class TableKillsTest(unittest.TestCase):
    def test_no_kill_makes_a_wrong_table(self):
        attack = [
            sys.executable,
            "-W",
            "ignore",
            str(Path(__file__).parent / "table_kills.py"),
            "--kills",
            "60",
        ]
        environment = {**os.environ, "UNIDLE_BIN": str(package.BUILD / "bin")}
        done = subprocess.run(attack, capture_output=True, text=True, env=environment, timeout=600)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("kills", done.stdout)


if __name__ == "__main__":
    unittest.main()
