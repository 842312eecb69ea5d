"""tests/gpu: what the suite for a GPU measures, with answers of a script in place of programs and devices."""

import os
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "tests", "gpu"))

import gpu_suite  # noqa: E402
import measures  # noqa: E402


class Scripted:
    """A suite whose programs answer as `answer(command)` says: (exit code, stdout, stderr)."""

    unidle, python, out, environment = "unidle", "python", "out", None

    def __init__(self, answer):
        self.answer, self.results, self.commands = answer, [], []

    def run(self, *command, patience=None):
        self.commands.append(command)
        return (*self.answer(command), 0.0)

    def add(self, name, status, **facts):
        self.results.append(dict(facts, name=name, status=status))


class OverheadTest(unittest.TestCase):
    def measured(self, observed_s):
        turns = iter(observed_s)

        def answer(command):
            return 0, "seconds %s\n" % (next(turns) if command[0] == "unidle" else 2.0), ""

        suite = Scripted(answer)
        measures.overhead(suite)
        return suite

    def test_pairs_alternate_and_one_good_pair_suffices(self):
        suite = self.measured([2.5, 2.6, 2.02, 2.4, 2.3])
        self.assertEqual(suite.results[0]["status"], "holds")
        self.assertEqual(max(suite.results[0]["ratios"]), 1.3)
        first = [command[0] for command in suite.commands[::2]]
        self.assertEqual(first, ["python", "unidle", "python", "unidle", "python"])

    def test_every_pair_slow_fails(self):
        self.assertEqual(self.measured([2.2] * 5).results[0]["status"], "fails")

    def test_a_program_that_fails_is_told(self):
        suite = Scripted(lambda command: (1, "", "no device"))
        measures.overhead(suite)
        self.assertEqual(suite.results[0]["status"], "fails")
        self.assertIn("no device", suite.results[0]["why"])


class SuperresTest(unittest.TestCase):
    def measured(self, **rates):
        def answer(command):
            if "--prepare" in command:
                return rates.get("prepare", 0), "", "unidle: scikit-image was not found"
            side = "python" if command[0] == "python" else "ours"
            mode = "naive" if "naive" in " ".join(command) else "tuned"
            rate = rates.get(side + "_" + mode, 100.0)
            return 0, '{"samples_per_s": %s, "metric": {"psnr": 26.0}}\n' % rate, ""

        suite = Scripted(answer)
        measures.superres(suite, "root")
        return suite.results[0]

    def test_four_runs_are_told(self):
        told = self.measured(ours_tuned=400.0)
        self.assertEqual(told["status"], "holds")
        self.assertEqual(told["samples_per_s"]["tuned"], 400.0)
        self.assertEqual(set(told["samples_per_s"]), {"naive", "tuned", "Python naive", "Python tuned"})

    def test_a_tuned_run_that_is_slower_fails(self):
        self.assertEqual(self.measured(ours_tuned=50.0)["status"], "fails")

    def test_what_is_missing_skips_by_name(self):
        told = self.measured(prepare=3)
        self.assertEqual((told["status"], "scikit-image" in told["why"]), ("skipped", True))


class MonitorTest(unittest.TestCase):
    OURS = {"utilisation": {"mean": 0.5}, "memory_bytes": {"mean": 1e9}, "power_w": None}

    def compared(self, theirs):
        suite = Scripted(None)
        measures.compare(suite, self.OURS, theirs)
        return suite.results[0]

    def test_close_holds_and_what_one_does_not_tell_is_said(self):
        told = self.compared({"utilisation": 0.6, "memory_bytes": 1.01e9, "power_w": 300.0})
        self.assertEqual(told["status"], "holds")
        self.assertIn("power_w: not told by us", told["said"])

    def test_far_fails_and_names_it(self):
        told = self.compared({"utilisation": 0.9, "memory_bytes": 2e9, "power_w": None})
        self.assertEqual(
            (told["status"], told["why"]), ("fails", "far from nvidia-smi: utilisation, memory_bytes")
        )

    def test_without_nvidia_smi_it_is_skipped(self):
        suite = Scripted(lambda command: ("no such file", "", ""))
        measures.monitor_beside_smi(suite)
        self.assertEqual(suite.results[0]["status"], "skipped")

    def test_numbers_that_are_not_told(self):
        self.assertEqual([measures.number(text) for text in (" 5", "[N/A]", "")], [5.0, None, None])


class SuiteTest(unittest.TestCase):
    def test_every_measure_is_one_of_the_suite(self):
        for name in gpu_suite.MEASURES:
            self.assertNotIn(name, gpu_suite.TABLE)


if __name__ == "__main__":
    unittest.main()
