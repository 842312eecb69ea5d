"""Trackers of experiments in trials, with modules that stand in for them."""

import os
import subprocess
import sys
import tempfile
import unittest

SHIM = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "shim")
TRACKER = """
def init(project=None, mode="online"): return mode
def login(key=None): raise RuntimeError("asked the server")
def set_tracking_uri(uri): raise RuntimeError("asked " + uri)
def init_run(mode="async"): return mode
def start(online=True): return online
"""
PROGRAM = """
import wandb, mlflow, neptune, comet_ml
from swanlab import init
print(wandb.init(project="p", mode="online"), wandb.init(), wandb.init(mode="disabled"), wandb.login(key="x"))
print(mlflow.set_tracking_uri("http://server"), neptune.init_run(mode="sync"), comet_ml.start(),
      init(mode="cloud"))
"""


class Muted(unittest.TestCase):
    def run_program(self, **environment):
        with tempfile.TemporaryDirectory() as folder:
            for name in ("wandb", "mlflow", "neptune", "comet_ml", "swanlab"):
                with open(os.path.join(folder, name + ".py"), "w") as out:
                    out.write(TRACKER)
            paths = os.pathsep.join((SHIM, folder))
            return subprocess.run(
                [sys.executable, "-c", PROGRAM],
                env=dict(os.environ, PYTHONPATH=paths, UNIDLE_PROBE_DIR=folder, **environment),
                capture_output=True,
                text=True,
            )

    def test_code_does_not_win_over_the_environment(self):
        done = self.run_program(UNIDLE_MUTED="1")
        self.assertEqual(
            done.stdout, "offline offline disabled True\nNone offline False offline\n", done.stderr
        )

    def test_without_trials_nothing_is_changed(self):
        done = self.run_program()
        self.assertIn("asked the server", done.stderr)


if __name__ == "__main__":
    unittest.main()
