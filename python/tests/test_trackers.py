"""Time that programs spend on telling trackers counts as logging, at the program's line."""

import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import run_case  # noqa: E402
from run_case import HAS_TORCH  # noqa: E402

# Modules with the names of the packages' own.
MODULES = {
    "tensorboardX/writer.py": ("SummaryWriter", "add_histogram"),
    "wandb/sdk/wandb_run.py": ("Run", "log"),
    "mlflow/tracking/client.py": ("MlflowClient", "log_metric"),
    "visdom/__init__.py": ("Visdom", "_send"),
}
TRACKER = """
import time
class %s:
    def %s(self, *args):
        time.sleep(0.002)
"""
PROGRAM = """
import torch
from %s import %s as Tracker
model = torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
tracker = Tracker()
for step in range(30):
    optimizer.zero_grad()
    model(torch.ones(2, 4)).sum().backward()
    optimizer.step()
    tracker.%s("weights", step)
"""


class TrackersTest(run_case.RunCase):
    def module(self, path, text):
        folder, packages = os.path.join(self.folder, "packages", os.path.dirname(path)), self.folder
        os.makedirs(folder, exist_ok=True)
        for part in os.path.relpath(folder, self.folder).split(
            os.sep
        ):  # else an installed package comes first
            packages = os.path.join(packages, part)
            open(os.path.join(packages, "__init__.py"), "a").close()
        with open(os.path.join(folder, os.path.basename(path)), "w") as file:
            file.write(text)

    @unittest.skipUnless(HAS_TORCH, "this Python has no torch")
    def test_each_tracker(self):
        for path, (owner, method) in MODULES.items():
            with self.subTest(path):
                self.module(path, TRACKER % (owner, method))
                name = path.replace("/__init__", "")[:-3].replace("/", ".")
                with open(os.path.join(self.folder, "train.py"), "w") as file:
                    file.write(PROGRAM % (name, owner, method))
                packages = os.path.join(self.folder, "packages")
                done = self.observed(sys.executable, "train.py", PYTHONPATH=packages)
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                told = self.record.notes("logging")[-1]
                self.assertGreaterEqual(told["calls"], 29)
                self.assertGreater(told["seconds"], 29 * 0.002)
                self.assertTrue(told["where"].endswith("train.py:11"), told)


if __name__ == "__main__":
    unittest.main()
