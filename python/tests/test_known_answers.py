"""The programs of the suite for a GPU as handwritten records of their behaviour on one (tests/gpu/records):
each is diagnosed with the suite's expectations for the program itself, with the hardware's counters (GPM) and
without."""

import json
import os
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

HERE = os.path.dirname(os.path.abspath(__file__))
SUITE = os.path.join(HERE, "..", "..", "tests", "gpu")
sys.path.insert(0, SUITE)

import known  # noqa: E402

BUILD = os.path.join(os.environ.get("UNIDLE_BIN", os.path.join(HERE, "..", "..", "build", "bin")), "..")
TIMELINE = os.path.join(BUILD, "tests", "unidle_timeline")
# Only their output and exit code matter.
WITHOUT_A_CAUSE = {"fork", "capture", "scripted", "second_device"}


@unittest.skipUnless(os.path.exists(TIMELINE), "unidle_timeline was not built")
class KnownAnswersTest(unittest.TestCase):
    def wrong(self, name, *values):
        """The failed expectations about this program's record, in words."""
        with tempfile.TemporaryDirectory() as folder:
            record = os.path.join(folder, "record")
            subprocess.run(
                [TIMELINE, os.path.join(SUITE, "records", name + ".timeline"), record, *values], check=True
            )
            done = subprocess.run(
                [os.path.join(BUILD, "bin", "unidle"), "diagnose", record, "--format", "json"],
                capture_output=True,
                text=True,
            )
            self.assertEqual(done.returncode, 0, done.stderr)
            diagnosis = json.loads(done.stdout)
            expected = known.TABLE[name]
            found = known.judge(expected, diagnosis) + known.judge_record(expected, record)
            return ["%s: %s" % (known.in_a_line(diagnosis), one) for one in found]

    def test_each_is_diagnosed_as_the_suite_asks(self):
        with unittest.mock.patch.dict(os.environ, UNIDLE_PROGRAM_LENGTH=str(known.LENGTH)):
            for name in sorted(set(known.TABLE) - WITHOUT_A_CAUSE):
                for values in ((), ("gpm=-",)):
                    with self.subTest(name=name, values=values):
                        self.assertEqual(self.wrong(name, *values), [])

    def test_each_that_has_a_cause_has_a_record(self):
        names = {os.path.splitext(name)[0] for name in os.listdir(os.path.join(SUITE, "records"))}
        self.assertEqual(names, set(known.TABLE) - WITHOUT_A_CAUSE)


if __name__ == "__main__":
    unittest.main()
