"""`unidle diagnose` on real programs that are easily misjudged: the shares and causes that it states
must be true. On a busy machine they are others."""

import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import run_case  # noqa: E402
from run_case import HAS_TORCH, UNIDLE  # noqa: E402


@unittest.skipUnless(HAS_TORCH, "this Python has no torch")
@unittest.skipUnless(os.path.exists(UNIDLE), "UNIDLE_BIN is not set: there is no unidle to run")
class CausesTest(run_case.DiagnosedCase):
    # -- what a program does besides training

    def test_metrics_after_the_optimiser_are_no_input(self):
        found = self.diagnosed("between.py", "metrics")
        self.assertEqual(self.said["step"]["input"], 0, self.said["step"])
        finding = found["python-between-steps"]
        self.assertTrue(any(" spread (" in line for line in finding["evidence"]), finding["evidence"])
        self.assertIn("between.py", finding["where"])

    def test_what_a_closure_does_is_not_the_work_of_the_optimiser(self):
        finding = self.diagnosed("between.py", "closure")["python-between-steps"]
        self.assertTrue(any(" spread (" in line for line in finding["evidence"]), finding["evidence"])
        self.assertLess(self.said["step"]["optimizer"], 0.2)
        self.assertGreater(self.said["step"]["other"], 0.5)
        (read,) = [note for note in self.record.notes("sync") if note["call"] == "item"][-1:]
        self.assertGreater(read["count"], 100)

    def test_an_average_of_the_weights_is_code_between_steps(self):
        found = self.diagnosed("between.py", "average")
        self.assertEqual(next(iter(found)), "python-between-steps")
        self.assertRegex(found["python-between-steps"]["where"], r"between\.py:6[89]$")

    def test_lines_of_log_are_logging(self):
        found = self.diagnosed("between.py", "logs")
        self.assertEqual(next(iter(found)), "logging-dominates")
        self.assertNotIn("python-between-steps", found)
        logging_s = found["logging-dominates"]["share"] * sum(self.said["time"].values())
        self.assertGreater(logging_s, 0.5 * self.said["step"]["other"] * self.said["time"]["train"])

    def test_files_saved_one_after_the_other_are_one_checkpoint(self):
        found = self.diagnosed("saves.py", "0.1")
        self.assertEqual(next(iter(found)), "checkpoint-dominates")
        self.assertNotIn("python-between-steps", found)
        self.assertIn("12 checkpoints", found["checkpoint-dominates"]["evidence"][0])
        self.assertGreaterEqual(self.said["time"]["checkpoint"], 1.8)  # with the waits between two files

    def test_batches_that_a_resumed_program_skips_are_start_up(self):
        self.diagnosed("between.py", "resume")
        (skipped,) = self.record.notes("skipped")[-1:]
        self.assertEqual(skipped["batches"], 300)
        self.assertGreater(self.said["time"]["startup"], skipped["seconds"])
        first = self.record.one("select input_ns from steps where idx = 0") * 1e-9
        self.assertLess(first, 0.5 * skipped["seconds"])

    def test_steps_that_become_slower(self):
        finding = self.diagnosed("between.py", "slower")["steps-slow-down"]
        self.assertTrue(any("first fifth" in line for line in finding["evidence"]), finding["evidence"])

    # -- CPUs

    @unittest.skipUnless(len(os.sched_getaffinity(0)) > 1, "there is one CPU")
    def test_a_program_that_narrows_itself(self):
        restricted = self.diagnosed("narrowed.py", "self").get("cpu-restricted")
        self.assertIsNotNone(restricted, self.said)
        self.assertEqual(self.said["verdict"], "compute-bound")
        self.assertIn("keeps the run to 1 of", " ".join(restricted["evidence"]))
        self.assertEqual(
            [(fix["knob"], fix["to"]) for fix in restricted["fixes"]],
            [("cpu.threads", None), ("cpu.threads", 1)],
        )

    @unittest.skipUnless(len(os.sched_getaffinity(0)) > 1, "there is one CPU")
    def test_what_keeps_a_program_to_one_thread(self):
        with self.subTest("call"):
            found = self.diagnosed("one_thread.py", "call")["cpu-restricted"]
            self.assertTrue(found["where"].endswith("one_thread.py:15"), found["where"])
            self.assertIn("a call of torch.set_num_threads sets 1", found["evidence"])
        with self.subTest("variable"):
            found = self.diagnosed("one_thread.py", "variable")["cpu-restricted"]
            self.assertIn("the variable OMP_NUM_THREADS is 1", found["evidence"])
        with self.subTest("mask"):
            found = self.diagnosed("one_thread.py", "mask")["cpu-restricted"]
            self.assertIn("keeps the run to 1 of", found["evidence"][0])
        with self.subTest("mask of the launch command"):
            one = {min(os.sched_getaffinity(0))}
            found = self.diagnosed("one_thread.py", "plain", begin=lambda: os.sched_setaffinity(0, one))
            self.assertIn("the launch command or the program set it", found["cpu-restricted"]["evidence"][0])
            self.assertEqual(self.record.meta("host")["cpus_before_mask"], len(os.sched_getaffinity(0)))
        with self.subTest("small"):
            self.assertNotIn("cpu-restricted", self.diagnosed("one_thread.py", "small"))

    @unittest.skipUnless(len(os.sched_getaffinity(0)) > 1, "there is one CPU")
    def test_workers_that_are_narrowed(self):
        self.diagnosed("narrowed.py", "workers")
        self.assertEqual(
            {note["cpus"] for note in self.record.notes("affinity") if note["role"] == "worker"},
            {str(min(os.sched_getaffinity(0)))},
        )
        self.assertIn("cpu-restricted", {finding["id"] for finding in self.said["findings"]})

    @unittest.skipUnless(len(os.sched_getaffinity(0)) > 1, "there is one CPU")
    def test_threads_that_were_there_before_keep_their_cpus(self):
        self.assertNotIn("cpu-restricted", self.diagnosed("narrowed.py", "pool"))


if __name__ == "__main__":
    unittest.main()
