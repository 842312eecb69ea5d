"""Trackers of experiments in trials, with stand-in modules."""

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
set_registry_uri = set_tracking_uri
def init_run(mode="async"): return mode
def start(online=True): return online
"""
CLIENT = """
class MlflowClient:
    def __init__(self, tracking_uri=None, registry_uri=None): self.uris = tracking_uri, registry_uri
"""
PROGRAM = """
import wandb, mlflow, neptune, comet_ml
from swanlab import init
print(wandb.init(project="p", mode="online"), wandb.init(), wandb.init(mode="disabled"), wandb.login(key="x"))
print(mlflow.set_tracking_uri("http://server"), neptune.init_run(mode="sync"), comet_ml.start(),
      init(mode="cloud"))
print(wandb.init("p", "online"), wandb.init("p", "disabled"))
from mlflow.tracking.client import MlflowClient
print(MlflowClient("http://server", registry_uri="http://server").uris, mlflow.set_registry_uri("http://server"))
"""


class Muted(unittest.TestCase):
    def run_program(self, **environment):
        with tempfile.TemporaryDirectory() as folder:
            os.makedirs(os.path.join(folder, "mlflow", "tracking"))
            files = dict.fromkeys(
                ("wandb.py", "mlflow/__init__.py", "neptune.py", "comet_ml.py", "swanlab.py"), TRACKER
            )
            for name, text in dict(files, **{"mlflow/tracking/client.py": CLIENT}).items():
                with open(os.path.join(folder, name), "w") as out:
                    out.write(text)
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
            done.stdout,
            "offline offline disabled True\nNone offline False offline\n"
            "offline disabled\n(None, None) None\n",
            done.stderr,
        )

    def test_without_trials_nothing_is_changed(self):
        done = self.run_program()
        self.assertIn("asked the server", done.stderr)


if __name__ == "__main__":
    unittest.main()
