"""Real programs of unusual form that are easily misjudged: what is a step, a validation, input, a failure.
Their answers hold on a busy machine too."""

import os
import sys
import unittest
from pathlib import Path

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import run_case  # noqa: E402
from run_case import HAS_TORCH, UNIDLE  # noqa: E402


@unittest.skipUnless(HAS_TORCH, "this Python has no torch")
@unittest.skipUnless(os.path.exists(UNIDLE), "UNIDLE_BIN is not set: there is no unidle to run")
class FormsTest(run_case.DiagnosedCase):
    # -- several errors

    def test_nothing_is_trained_after_the_last_of_several_errors(self):
        failed = self.diagnosed("errors.py", "last", code=1)["run-failed"]
        self.assertEqual((self.said["outcome"], failed["severity"]), ("failed", "critical"))
        self.assertIn("it said: ValueError: no score for 59", failed["evidence"])
        self.assertTrue(failed["where"].endswith("errors.py:24"), failed["where"])

    def test_training_goes_on_after_all_errors(self):
        for mode in ("middle", "summary"):
            with self.subTest(mode):
                failed = self.diagnosed("errors.py", mode)["run-failed"]
                self.assertEqual((self.said["outcome"], failed["severity"]), ("completed", "info"))

    # -- memory that runs out

    def test_a_program_that_looks_for_a_batch_that_fits(self):
        for where in ("between", "forward", "words"):
            with self.subTest(where):
                found = self.diagnosed("finder.py", where)
                self.assertNotIn("setting-ignored", found)
                self.assertIn(
                    "batches of 256 samples did not fit into memory; training went on with 32",
                    found["out-of-memory"]["evidence"],
                )
                trained = self.record.rows("select count(*), sum(samples) from steps")[0]
                self.assertEqual("%d %d" % trained, self.printed.splitlines()[-1])

    # -- batches of another thread

    def test_a_thread_that_hands_on_the_batches_of_a_loader(self):
        evidence = self.diagnosed("background.py")["loader-no-workers"]["evidence"]
        self.assertTrue(any("passes them on" in line for line in evidence), evidence)
        self.assertEqual(self.record.rows("select count(*), sum(samples) from steps")[0], (90, 720))

    # -- an iterator that cannot be made at first

    def test_training_after_an_iterator_that_could_not_be_made_is_seen(self):
        self.observed(sys.executable, os.path.join(run_case.HERE, "programs", "late_mount.py"))
        self.assertEqual(
            self.record.rows("select count(*), sum(samples), count(input_ns) from steps")[0], (24, 192, 24)
        )

    # -- workers that are started for each epoch

    def test_the_wait_for_workers_that_start_is_input_of_the_steps_that_wait(self):
        found = self.diagnosed("respawn.py")["loader-respawn"]
        self.assertIn("2 workers were started 10 times", found["evidence"])
        waited_s = self.record.notes("loader_start")[-1]["in_training"]
        self.assertGreater(waited_s, 10 * 0.4)
        steps = self.record.rows("select samples, input_ns from steps order by idx")
        self.assertEqual(len(steps), 80)
        firsts_s = sum(input_ns for _, input_ns in steps[::8]) * 1e-9  # in each epoch
        self.assertGreater(firsts_s, 0.8 * waited_s)

    # -- what a program does besides training

    def test_a_method_of_the_model_that_evaluates_is_validation(self):
        found = self.diagnosed("between.py", "predict")
        self.assertGreater(self.said["time"]["validate"], 1.5)
        self.assertIn("validation-dominates", found)

    def test_a_method_of_the_model_is_no_code_between_steps(self):
        finding = self.diagnosed("between.py", "pairs")["python-between-steps"]
        self.assertTrue(any(" draw (" in line for line in finding["evidence"]), finding["evidence"])

    def test_a_direct_call_of_forward_is_where_the_model_is_called(self):
        self.diagnosed("between.py", "direct")
        file, line = self.record.notes("model")[-1]["training_where"].rsplit(":", 1)
        self.assertEqual(Path(file).name, "between.py")
        source = (Path(__file__).parent / "programs" / "between.py").read_text().splitlines()
        self.assertIn("model.forward(", source[int(line) - 1])

    def test_text_that_is_generated_when_training_is_done_is_no_step(self):
        found = self.diagnosed("between.py", "generate")
        finding = found["after-training"]
        self.assertGreater(finding["share"] * sum(self.said["time"].values()), 2.5)
        self.assertTrue(any("generate (" in line for line in finding["evidence"]), finding["evidence"])
        self.assertNotIn("python-between-steps", found)

    def test_an_environment_that_is_played_is_no_validation(self):
        found = self.diagnosed("between.py", "rollout")
        self.assertEqual((self.said["time"]["validate"], found.keys() & {"validation-dominates"}), (0, set()))
        self.assertIn("between.py", found["python-between-steps"]["where"])
        self.assertEqual(self.record.rows("select count(*), sum(samples) from steps")[0], (960, 61440))

    def test_no_fused_form_is_proposed_that_does_not_exist(self):
        self.assertNotIn("optimizer-not-fused", self.diagnosed("between.py", "sparse"))
        self.assertEqual(self.record.notes("optimizer")[-1]["fusable"], False)

    # -- results that are inspected

    def test_results_that_are_drawn_are_no_validation(self):
        found = self.diagnosed("previews.py", "drawn")
        self.assertEqual((found.keys() & {"validation-dominates"}, self.said["time"]["validate"]), (set(), 0))
        self.assertIn("logging-dominates", found)
        self.assertTrue(
            found["logging-dominates"]["where"].endswith("previews.py:28"),
            found["logging-dominates"]["where"],
        )
        self.assertEqual(self.record.one("select count(*) from steps"), 80)

    def test_what_the_model_computes_for_a_picture_belongs_to_it(self):
        found = self.diagnosed("previews.py", "pictures")["logging-dominates"]
        self.assertTrue(found["where"].endswith("previews.py:59"), found["where"])  # look()
        told = self.record.notes("logging")[-1]
        self.assertEqual(told["where_calls"], 4)
        self.assertGreater(told["seconds"], 0.1 * self.said["time"]["train"])
        self.assertEqual(found["fixes"][0]["to"], None)

    def test_results_that_are_logged_in_each_step_are_no_validation(self):
        self.assertNotIn("validation-dominates", self.diagnosed("previews.py", "logged"))
        self.assertLessEqual(self.record.one("select count(*) from spans where kind = 'validate'"), 1)
        self.assertGreater(self.record.notes("logging")[-1]["calls"], 40)

    def test_passes_without_gradients_in_each_step_are_no_validation(self):
        self.assertNotIn("validation-dominates", self.diagnosed("replay.py"))
        self.assertLessEqual(self.record.one("select count(*) from spans where kind = 'validate'"), 1)
        self.assertEqual(self.record.one("select count(*) from steps"), 300)

    def test_validation_without_eval_is_validation(self):
        self.diagnosed("previews.py", "validates")
        self.assertEqual(self.record.one("select count(*) from spans where kind = 'validate'"), 4)


if __name__ == "__main__":
    unittest.main()
