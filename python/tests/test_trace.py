"""`unidle run --trace`: the window is recorded, and the program does not notice."""

import importlib.metadata
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

from run_case import HAS_TORCH, HERE, TRAIN, UNIDLE, Record, environment, started, without_ours

# Its profiler always writes on stderr.
TALKS = HAS_TORCH and importlib.metadata.version("torch").startswith(("0.", "1."))
PROFILED = os.path.join(HERE, "programs", "profiled.py")


@unittest.skipUnless(os.path.exists(UNIDLE), "UNIDLE_BIN is not set: there is no unidle to run")
@unittest.skipUnless(HAS_TORCH, "there is no torch")
class TraceTest(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        self.path = os.path.join(self.folder, "record")

    def same_as_bare(self, *command, options=("--trace", "5"), **more):
        """Runs it without us and with a window; output and exit code must be the same."""
        command = started((sys.executable,) + command, environment(**more))
        bare = subprocess.run(
            command, cwd=self.folder, env=environment(**more), capture_output=True, text=True
        )
        done = subprocess.run(
            [UNIDLE, "run", "-o", self.path, *options, "--", *command],
            cwd=self.folder,
            env=environment(**more),
            capture_output=True,
            text=True,
        )
        # The profiler itself warns once per process, with the time, if there is no device.
        lines = [line for line in done.stderr.splitlines(True) if "DeviceProperties.cpp" not in line]
        self.last_line = "".join(line for line in lines if line.startswith("unidle: recorded"))
        theirs = without_ours("".join(lines))
        expected = "".join(
            line for line in bare.stderr.splitlines(True) if "DeviceProperties.cpp" not in line
        )
        self.assertEqual((done.returncode, done.stdout, theirs), (bare.returncode, bare.stdout, expected))
        self.record = Record(self.path)
        self.assertEqual(
            [note["status"] for note in self.record.notes("shim") if note["status"] == "off"], []
        )
        return done

    def test_the_operations_of_a_step_are_those_that_torch_counts(self):
        done = self.same_as_bare(os.path.join(HERE, "programs", "flops.py"))
        asked = subprocess.run(
            [UNIDLE, "diagnose", self.path, "--format", "json"],
            env=environment(),
            capture_output=True,
            text=True,
        )
        arithmetic = json.loads(asked.stdout)["arithmetic"]
        counted, again = map(int, done.stdout.split())
        self.assertGreater(again, 0)
        self.assertAlmostEqual(arithmetic["flops_per_step"] / (counted - again), 1, places=4)
        self.assertIsNone(arithmetic["mfu"])  # no data sheet of these CPUs

    def no_window(self, reason):
        notes = self.record.notes("trace")
        self.assertEqual([note["status"] for note in notes], ["off"])
        self.assertIn(reason, notes[0]["reason"])
        self.assertIn(reason, self.last_line)
        self.assertEqual([name for name in os.listdir(self.path) if name.startswith("trace")], [])
        shown = subprocess.run([UNIDLE, "trace", self.path], capture_output=True, text=True)
        self.assertEqual((shown.returncode, shown.stderr.count("\n")), (2, 1))
        self.assertIn(reason, shown.stderr)

    @unittest.skipUnless(TALKS, "this torch profiles in silence")
    def test_a_profiler_that_talks_is_left_alone(self):
        self.same_as_bare(TRAIN, "plain")
        self.no_window("before 2.0")

    @unittest.skipIf(TALKS, "there is no window with this torch")
    def test_a_window(self):
        self.same_as_bare(TRAIN, "plain")
        (note,) = self.record.notes("trace")
        self.assertEqual((note["status"], note["steps"]), ("recorded", 5))
        self.assertIn("unidle trace", self.last_line)
        shown = subprocess.run(
            [UNIDLE, "trace", self.path, "--format", "json"], capture_output=True, text=True
        )
        (trace,) = json.loads(shown.stdout)["traces"]
        self.assertEqual(trace["steps"]["count"], 5)
        self.assertTrue(any(operator["name"] == "aten::addmm" for operator in trace["operators"]))
        self.assertEqual((trace["devices"], trace["busy"]), ([], None))
        # The window is where the record's steps are, on one clock.
        begin = trace["clock_zero_ns"] + trace["window_begin_us"] * 1000
        step_begin = self.record.one("select t_ns from steps where idx = %d" % note["first_step"])
        self.assertLess(abs(begin - step_begin), 5e6)

        # No step is lost or reported twice, and our own time is in none of them.
        self.assertEqual(
            self.record.rows("select count(*), count(distinct idx), sum(samples) from steps"),
            [(32, 32, 1024)],
        )
        self.assertEqual(
            self.record.rows(
                "select count(*) from steps "
                "where duration_ns < input_ns + forward_ns + backward_ns + optimizer_ns"
            ),
            [(0,)],
        )

    @unittest.skipIf(TALKS, "there is no window with this torch")
    def test_forked_workers(self):
        self.same_as_bare(TRAIN, "workers", "fork", options=("--trace", "3"))
        self.assertEqual([note["status"] for note in self.record.notes("trace")], ["recorded"])

    @unittest.skipIf(TALKS, "there is no window with this torch")
    def test_a_run_that_is_stopped_after_few_steps(self):
        done = subprocess.run(
            [
                UNIDLE,
                "run",
                "-o",
                self.path,
                "--steps",
                "8",
                "--trace",
                "3",
                "--",
                sys.executable,
                TRAIN,
                "plain",
            ],
            cwd=self.folder,
            env=environment(),
            capture_output=True,
            text=True,
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(
            [(note["status"], note["steps"]) for note in Record(self.path).notes("trace")], [("recorded", 3)]
        )

    def test_a_run_that_is_too_short(self):
        self.same_as_bare(PROFILED, "never", "5")
        self.no_window("the run ended before the window was over")

    @unittest.skipIf(TALKS, "there is no window with this torch")
    def test_the_programs_own_profiler_goes_first(self):
        self.same_as_bare(PROFILED, "before", "30")
        self.no_window("the program profiles itself")

    @unittest.skipIf(TALKS, "there is no window with this torch")
    def test_the_programs_own_profiler_ends_our_window(self):
        self.same_as_bare(PROFILED, "during", "15", options=("--trace", "100"))
        self.no_window("the program profiles itself")

    @unittest.skipIf(TALKS, "there is no window with this torch")
    def test_a_profiler_that_is_off_is_none(self):
        self.same_as_bare(PROFILED, "disabled", "30")
        self.assertEqual([note["status"] for note in self.record.notes("trace")], ["recorded"])

    def test_another_tool_goes_first(self):
        self.same_as_bare(PROFILED, "never", "30", CUDA_INJECTION64_PATH="/no/such/library.so")
        self.no_window("CUDA_INJECTION64_PATH")

    def test_without_torch(self):
        self.same_as_bare("-c", "print(1)")
        self.assertIn("no profiler window was recorded", self.last_line)


if __name__ == "__main__":
    unittest.main()
