"""`unidle run --tracker` adds the diagnosis to the run that the program writes. With the real packages."""

import glob
import os
import struct
import subprocess
import sys
import unittest
import unittest.mock

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import run_case  # noqa: E402
from run_case import UNIDLE  # noqa: E402
from tracked_case import TrackedCase, has  # noqa: E402

TRACKERS = os.path.join(os.path.dirname(run_case.HERE), "trackers")
FILE_STORE = {"MLFLOW_ALLOW_FILE_STORE": "true"}


def wandb_entries(folder):
    """The runs in an offline folder, each with how it ended. Its file is a log in LevelDB's format."""
    from wandb.proto.wandb_internal_pb2 import Record

    (path,) = glob.glob(os.path.join(folder, "*.wandb"))
    with open(path, "rb") as file:
        data = file.read()
    runs, ends, body, at = [], [], b"", 7
    while at + 7 <= len(data):
        if 32768 - at % 32768 < 7:  # the end of a block has no room for a header
            at += 32768 - at % 32768
            continue
        _, size, part = struct.unpack_from("<IHB", data, at)
        body += data[at + 7 : at + 7 + size]
        at += 7 + size
        if part in (1, 4):  # a whole record, or its last part
            record, body = Record.FromString(body), b""
            runs += [record.run] if record.HasField("run") else []
            ends += [record.exit] if record.HasField("exit") else []
    return list(zip(runs, ends))


class TrackedRunsTest(TrackedCase):
    def mlflow_runs(self, runs):
        """Those in a local store, by name."""
        from mlflow.tracking import MlflowClient

        with unittest.mock.patch.dict(os.environ, FILE_STORE):
            return {run.info.run_name: run for run in MlflowClient("file://" + runs).search_runs(["0"])}

    def wandb_folders(self):
        return sorted(glob.glob(os.path.join(self.folder, "wandb", "*run-*")), key=os.path.getmtime)

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
        line = self.sent(
            "mlflow",
            """
import mlflow
mlflow.set_tracking_uri("file://%s")
with mlflow.start_run() as run:
    train(lambda loss, step: mlflow.log_metric("loss", loss, step))
"""
            % runs,
            **FILE_STORE,
        )
        with unittest.mock.patch.dict(os.environ, FILE_STORE):
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

    @has("mlflow")
    def test_mlflow_of_a_failed_program(self):
        """Its own run stays failed, and a new run is failed."""
        runs = os.path.join(self.folder, "runs")
        uri = "file://" + runs
        own = """
import mlflow
mlflow.set_tracking_uri("%s")
with mlflow.start_run(run_name="own"):
    train(lambda loss, step: mlflow.log_metric("loss", loss, step))
    raise SystemExit(3)
"""
        self.sent("mlflow", own % uri, 3, **FILE_STORE)
        failed = "train(print)\nraise SystemExit(3)\n"
        self.sent("mlflow", failed, 3, MLFLOW_TRACKING_URI=uri, **FILE_STORE)
        found = self.mlflow_runs(runs)
        self.assertIn("unidle/steps_per_s", found["own"].data.metrics)
        self.assertEqual([run.info.status for run in found.values()], ["FAILED", "FAILED"], found)
        sys.path.insert(0, TRACKERS)
        self.addCleanup(sys.path.remove, TRACKERS)
        import mlflow_run

        self.assertEqual(
            [mlflow_run._status(code) for code in (None, 0, 3, 143)],
            ["FINISHED", "FINISHED", "FAILED", "KILLED"],
        )

    @has("mlflow")
    def test_mlflow_with_two_runs(self):
        """One that cannot be written does not hide the other; a folder of the program's is found."""
        runs = os.path.join(self.folder, "runs")
        lines = self.told(
            "mlflow",
            """
import mlflow, os
os.mkdir("within")
os.chdir("within")
mlflow.set_tracking_uri("../runs")
for name in "first", "second":
    with mlflow.start_run(run_name=name) as run:
        train(lambda loss, step: mlflow.log_metric("loss", loss, step))
    if name == "first":
        mlflow.delete_run(run.info.run_id)
""",
            **FILE_STORE,
        )
        self.assertEqual(len(lines), 2, lines)
        self.assertTrue(lines[0].startswith("unidle: not sent to mlflow: "), lines)
        found = self.mlflow_runs(runs)
        self.assertIn("unidle: sent to mlflow: run %s at " % found["second"].info.run_id, lines[1])
        self.assertIn("unidle/steps_per_s", found["second"].data.metrics)

    @has("mlflow")
    def test_a_password_of_mlflow(self):
        """It is neither recorded nor printed, and the server that has it is the one of the environment."""
        program = """
import mlflow
run = mlflow.MlflowClient()
def tell(loss, step):
    if step == 0:
        try: run.log_metric("0" * 32, "loss", loss)
        except Exception as failure: pass
train(tell)
"""
        uri = "http://me:pass-word@127.0.0.1:9"
        quiet = {"MLFLOW_HTTP_REQUEST_MAX_RETRIES": "0"}
        (line,) = self.told("mlflow", program, MLFLOW_TRACKING_URI=uri, **quiet)
        self.assertTrue(line.startswith("unidle: not sent to mlflow: MlflowException: "), line)
        self.assertIn("127.0.0.1", line)
        self.assertNotIn("pass-word", self.printed)
        (note,) = self.record.notes("tracker")
        self.assertEqual(note["server"], "http://127.0.0.1:9")
        with open(os.path.join(self.record.folder, "record.db"), "rb") as file:
            self.assertNotIn(b"pass-word", file.read())

    @has("mlflow")
    def test_a_report_that_is_sent_later(self):
        runs = os.path.join(self.folder, "runs")
        self.told(
            None,
            """
import mlflow
mlflow.set_tracking_uri("file:runs")
with mlflow.start_run(run_name="own"):
    train(lambda loss, step: mlflow.log_metric("loss", loss, step))
""",
            **FILE_STORE,
        )
        self.assertNotIn("unidle/steps_per_s", self.mlflow_runs(runs)["own"].data.metrics)
        done = subprocess.run(
            [UNIDLE, "report", self.record.folder, "--tracker", "mlflow"],
            cwd="/",
            env=run_case.environment(**FILE_STORE),
            capture_output=True,
            text=True,
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("unidle: sent to mlflow: run ", done.stderr)
        self.assertIn("unidle/steps_per_s", self.mlflow_runs(runs)["own"].data.metrics)

    @has("wandb")
    def test_wandb_offline(self):
        """A companion of its own: `wandb sync` of a second folder with the same id would replace the run."""
        line = self.sent(
            "wandb",
            """
import wandb
run = wandb.init(project="shapes", name="small", mode="offline")
train(lambda loss, step: run.log({"loss": loss}))
run.finish()
raise SystemExit(3)
""",
            3,
            WANDB_RUN_ID="own",
        )
        first, second = self.wandb_folders()
        self.assertIn(os.path.basename(second), line)
        ((run, _),), ((companion, ended),) = (wandb_entries(each) for each in (first, second))
        self.assertEqual((run.run_id, run.project), ("own", "shapes"))
        self.assertNotEqual(companion.run_id, "own")
        self.assertEqual(
            (companion.project, companion.display_name, companion.job_type), ("shapes", "small", "unidle")
        )
        self.assertIn("own", companion.notes)
        self.assertEqual(ended.exit_code, 3)
        with open(glob.glob(os.path.join(second, "*.wandb"))[0], "rb") as file:
            self.assertIn(b"unidle/steps_per_s", file.read())
        self.assertTrue(glob.glob(os.path.join(second, "files", "media", "html", "unidle", "report*.html")))

    @has("wandb")
    def test_wandb_is_disabled(self):
        by_code = """
import wandb
run = wandb.init(project="shapes", mode="disabled")
train(lambda loss, step: run.log({"loss": loss}))
"""
        own = by_code.replace('mode="disabled"', "")
        for program, environment, words in (
            (by_code, {}, "W&B is disabled in the program"),
            (own, {"WANDB_MODE": "disabled"}, "W&B is disabled in the program"),
            ("train(print)\n", {"WANDB_MODE": "disabled"}, "W&B is disabled"),
        ):
            with self.subTest(program, environment=environment):
                lines = self.told("wandb", program, **environment)
                self.assertEqual(lines, ["unidle: not sent to wandb: " + words])
                self.assertEqual(self.wandb_folders(), [])

    @has("wandb")
    def test_wandb_is_disabled_in_one_of_two(self):
        """As all but the first process of a job often do."""
        self.sent(
            "wandb",
            """
import wandb
wandb.init(mode="disabled").finish()
with wandb.init(project="shapes", mode="dryrun") as run:
    train(lambda loss, step: run.log({"loss": loss}))
""",
        )
        self.assertEqual(len(self.wandb_folders()), 2)

    @has("tensorboard")
    def test_the_writer_within_add_hparams(self):
        self.sent(
            "tensorboard",
            """
from torch.utils.tensorboard import SummaryWriter
with SummaryWriter("logs") as writer:
    train(lambda loss, step: writer.add_scalar("loss", loss, step))
    writer.add_hparams({"rate": 0.1}, {"last": 1.0}, run_name="inner")
""",
        )
        self.assertEqual(glob.glob(os.path.join(self.folder, "logs", "inner", "*.unidle")), [])


if __name__ == "__main__":
    unittest.main()
