"""`unidle run --tracker` adds the diagnosis to the run that the program writes. With the real packages."""

import glob
import importlib.util
import os
import subprocess
import sys
import unittest
import unittest.mock

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import run_case  # noqa: E402
from run_case import HAS_TORCH, UNIDLE  # noqa: E402

TRAINING = """
import time, torch
model = torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
def train(tell):
    for step in range(40):
        optimizer.zero_grad()
        loss = model(torch.ones(2, 4)).pow(2).sum()
        loss.backward()
        optimizer.step()
        time.sleep(0.01)
        tell(float(loss), step)
"""


def has(name):
    return unittest.skipUnless(importlib.util.find_spec(name), "this Python has no %s" % name)


@unittest.skipUnless(HAS_TORCH, "this Python has no torch")
@unittest.skipUnless(os.path.exists(UNIDLE), "UNIDLE_BIN is not set: there is no unidle to run")
class TrackedRunsTest(run_case.RunCase):
    fresh = True  # the interpreter that sends is the program's

    def sent(self, tracker, program, **environment):
        """Runs it observed, and returns the line that says where its diagnosis is."""
        path = os.path.join(self.folder, "train.py")
        with open(path, "w") as file:
            file.write(TRAINING + program)
        done = self.observed(sys.executable, path, options=("--tracker", tracker), **environment)
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = [line for line in done.stderr.splitlines() if " sent to " in line]
        self.assertEqual(len(lines), 1, done.stderr)
        return lines[0]

    @has("tensorboard")
    def test_tensorboard(self):
        line = self.sent(
            "tensorboard",
            """
from torch.utils.tensorboard import SummaryWriter
writer = SummaryWriter("logs/first")
train(lambda loss, step: writer.add_scalar("loss", loss, step))
writer.close()
""",
        )
        folder = os.path.join(self.folder, "logs", "first")
        self.assertIn("sent to tensorboard: " + folder, line)
        (events,) = glob.glob(os.path.join(folder, "*.unidle"))
        from tensorboard.compat.proto.event_pb2 import Event
        from tensorboard.compat.tensorflow_stub.pywrap_tensorflow import PyRecordReader_New

        values = {}
        reader = PyRecordReader_New(events)
        try:
            while True:
                reader.GetNext()
                event = Event.FromString(reader.record())
                values.update((value.tag, value) for value in event.summary.value)
        except Exception as end:  # the reader's own class, at the end of the file
            self.assertIn("OutOfRange", type(end).__name__)
        self.assertIn("unidle/samples_per_s", values)
        (text,) = values["unidle/diagnosis/text_summary"].tensor.string_val
        self.assertIn(b"report.html", text)

    @has("mlflow")
    def test_mlflow(self):
        from mlflow.tracking import MlflowClient

        runs = os.path.join(self.folder, "runs")
        allowed = {"MLFLOW_ALLOW_FILE_STORE": "true"}
        line = self.sent(
            "mlflow",
            """
import mlflow
mlflow.set_tracking_uri("file://%s")
with mlflow.start_run() as run:
    train(lambda loss, step: mlflow.log_metric("loss", loss, step))
"""
            % runs,
            **allowed,
        )
        with unittest.mock.patch.dict(os.environ, allowed):
            client = MlflowClient("file://" + runs)
            (run,) = client.search_runs(["0"])
        self.assertIn("run %s at file://" % run.info.run_id, line)
        self.assertEqual(run.info.status, "FINISHED")
        self.assertGreater(run.data.metrics["unidle/steps_per_s"], 0)
        self.assertIn("loss", run.data.metrics)
        self.assertTrue(run.data.tags["unidle.answer"])
        self.assertEqual(
            [each.path for each in client.list_artifacts(run.info.run_id, "unidle")], ["unidle/report.html"]
        )

    @has("wandb")
    def test_wandb_offline(self):
        line = self.sent(
            "wandb",
            """
import wandb
run = wandb.init(project="shapes", mode="offline")
train(lambda loss, step: run.log({"loss": loss}))
run.finish()
""",
        )
        folders = sorted(glob.glob(os.path.join(self.folder, "wandb", "offline-run-*")))
        self.assertEqual(len(folders), 2, folders)
        (first,) = glob.glob(os.path.join(folders[0], "*.wandb"))
        (second,) = glob.glob(os.path.join(folders[1], "*.wandb"))
        self.assertEqual(os.path.basename(first), os.path.basename(second))  # one run
        self.assertIn(os.path.basename(folders[1]), line)
        with open(second, "rb") as file:
            self.assertIn(b"unidle/steps_per_s", file.read())
        self.assertTrue(
            glob.glob(os.path.join(folders[1], "files", "media", "html", "unidle", "report*.html"))
        )

    @has("tensorboard")
    def test_a_program_without_a_tracker(self):
        line = self.sent("tensorboard", "train(print)\n")
        self.assertIn("sent to tensorboard: %s/record" % self.folder, line)

    def test_a_package_that_is_missing(self):
        """The result of the program stays, and one line says what is wrong."""
        path = os.path.join(self.folder, "train.py")
        with open(path, "w") as file:
            file.write(TRAINING + "train(print)\nraise SystemExit(3)\n")
        with open(os.path.join(self.folder, "mlflow.py"), "w") as file:
            file.write("raise ImportError('no such package')\n")
        done = self.observed(sys.executable, path, options=("--tracker", "mlflow"), PYTHONPATH=self.folder)
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("unidle: nothing was sent to mlflow: ImportError: no such package", done.stderr)

    def test_nothing_was_trained(self):
        """Each of the trackers is named."""
        done = self.observed("true", options=("--tracker", "mlflow", "--tracker", "wandb"))
        self.assertEqual(done.returncode, 0, done.stderr)
        for tracker in ("mlflow", "wandb"):
            self.assertIn(f"nothing was sent to {tracker}: nothing was trained", done.stderr)

    def test_an_unknown_tracker(self):
        done = subprocess.run(
            [UNIDLE, "run", "--tracker", "aim", "--", "true"], capture_output=True, text=True
        )
        self.assertEqual(done.returncode, 2)
        self.assertIn("wandb", done.stderr)


if __name__ == "__main__":
    unittest.main()
