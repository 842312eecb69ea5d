"""A Python that shows every warning, or turns each into an error, shows nothing of ours and does not stop us.
Nor do graphs that are being recorded, and objects that reject queries."""

import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import run_case  # noqa: E402
from run_case import HAS_TORCH, HERE, TRAIN, UNIDLE  # noqa: E402

MODES = (("plain",), ("error",), ("warning",), ("closed",), ("workers", "fork"), ("workers", "spawn"))


@unittest.skipUnless(HAS_TORCH, "this Python has no torch")
@unittest.skipUnless(os.path.exists(UNIDLE), "UNIDLE_BIN is not set: there is no unidle to run")
class StrictPythonTest(run_case.RunCase):
    def test_every_warning_is_shown(self):
        for mode in MODES:
            with self.subTest(mode):
                self.same_as_bare(sys.executable, "-X", "dev", "-W", "always", TRAIN, *mode)
                self.assertEqual({note["status"] for note in self.record.notes("shim")}, {"on"})

    def test_every_warning_of_what_is_deprecated_is_an_error(self):
        for mode in (("plain",), ("workers", "fork")):
            with self.subTest(mode):
                done = self.same_as_bare(sys.executable, "-W", "error", TRAIN, *mode)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual({note["status"] for note in self.record.notes("shim")}, {"on"})

    def same_steps(self, program):
        done = self.same_as_bare(sys.executable, os.path.join(HERE, "programs", program))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual({note["status"] for note in self.record.notes("shim")}, {"on"})
        self.assertEqual("steps %d" % self.record.one("select count(*) from steps"), _last_line(done.stdout))

    def test_a_graph_that_is_recorded_is_as_without_us_and_no_step(self):
        self.same_steps("graphs.py")

    def test_what_refuses_a_question_is_followed_all_the_same(self):
        self.same_steps("refuses.py")
        self.assertEqual(
            self.record.rows("select samples, count(*) from steps group by 1 order by 1"), [(2, 12), (4, 24)]
        )


def _last_line(text):
    return text.splitlines()[-1]


if __name__ == "__main__":
    unittest.main()
