"""What `unidle run --tracker` does when a tracker is slow, missing or elsewhere. Mostly with stand-ins."""

import glob
import os
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from run_case import UNIDLE  # noqa: E402
from tracked_case import TRAINING, TrackedCase, has  # noqa: E402


class TrackerSendingTest(TrackedCase):
    def test_a_writer_elsewhere(self):
        """A bucket is not a folder of this machine."""
        self.stand_in("tensorboardX.__init__", "from .writer import SummaryWriter\n")
        writer = """
class SummaryWriter:
    def __init__(self, logdir, **more): self.logdir = logdir
    def add_scalar(self, *given): pass
    add_text = add_scalar
    def __enter__(self): return self
    def __exit__(self, *given): pass
"""
        packages = self.stand_in("tensorboardX.writer", writer)
        self.stand_in("tensorboard.__init__", "raise ImportError('only that one')\n")
        line = self.sent(
            "tensorboard",
            """
from tensorboardX import SummaryWriter
writer = SummaryWriter("s3://bucket/logs")
train(lambda loss, step: writer.add_scalar("loss", loss, step))
""",
            **packages,
        )
        self.assertEqual(line, "unidle: sent to tensorboard: s3://bucket/logs")
        self.assertEqual(glob.glob(os.path.join(self.folder, "s3*")), [])

    def slow_tracker(self, **environment):
        """A program that writes to two runs; for the second one the sender executes SLOW and sleeps."""
        packages = self.stand_in("tensorboard.__init__", "raise ImportError('only the other')\n")
        self.stand_in("tensorboardX.__init__", "from .writer import SummaryWriter\n")
        self.stand_in(
            "tensorboardX.writer",
            """
import os, time
class SummaryWriter:
    def __init__(self, logdir, **more): self.logdir = logdir
    def add_scalar(self, *given): pass
    def add_text(self, *given):
        if self.logdir.endswith("slow"):
            exec(os.environ["SLOW"])
            time.sleep(600)
    def __enter__(self): return self
    def __exit__(self, *given): pass
""",
        )
        return self.told(
            "tensorboard",
            """
from tensorboardX import SummaryWriter
writers = [SummaryWriter("quick"), SummaryWriter("slow")]
train(lambda loss, step: [writer.add_scalar("loss", loss, step) for writer in writers])
raise SystemExit(3)
""",
            3,
            **packages,
            **environment,
        )

    def test_no_answer(self):
        """What was sent before is said, and that the rest is not known."""
        sent, lost = self.slow_tracker(SLOW="", UNIDLE_TRACKER_SECONDS="5")
        self.assertEqual(sent, "unidle: sent to tensorboard: %s/quick" % self.folder)
        self.assertEqual(
            lost, "unidle: tensorboard did not answer within 5 s: it is not known what else it got"
        )

    def test_interrupted(self):
        """The result of the program stays, and nothing is left."""
        temporary = os.path.join(self.folder, "temporary")
        os.mkdir(temporary)
        interrupt = "import signal; os.kill(os.getppid(), signal.SIGINT)"
        sent, stopped = self.slow_tracker(SLOW=interrupt, TMPDIR=temporary)
        self.assertEqual(sent, "unidle: sent to tensorboard: %s/quick" % self.folder)
        self.assertEqual(stopped, "unidle: stopped: it is not known what else tensorboard got")
        self.assertEqual(glob.glob(os.path.join(temporary, "unidle*")), [])

    @has("tensorboard")
    def test_a_short_program_without_an_end(self):
        line = self.sent(
            "tensorboard",
            """
import os
from torch.utils.tensorboard import SummaryWriter
writer = SummaryWriter("logs")
train(lambda loss, step: writer.add_scalar("loss", loss, step))
os._exit(7)
""",
            7,
        )
        self.assertEqual(line, "unidle: sent to tensorboard: %s/logs" % self.folder)

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
        self.assertIn("unidle: not sent to mlflow: ImportError: no such package", done.stderr)

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
