"""No fault of ours reaches the program: one is put into each entry of the shim in turn, and the program gives what it gives bare."""

import json
import os
import subprocess
import sys
import tempfile
import unittest

from test_run import HAS_TORCH, HERE, UNIDLE, environment

INJECTION = os.path.join(HERE, "injection.py")
SHIM = os.path.join(HERE, "..", "shim")
LIBRARY = os.path.join(os.path.dirname(UNIDLE), "..", "lib", "_unidle_light.abi3.so")

# Programs of programs/entries.py.
ALL = ("training", "failures", "short_steps", "slow_samples", "workers", "streamed", "in_a_thread", "options", "imports", "arrays", "children",
       "by_hand", "scaled_steps", "two_optimizers")
# Entries of what is asked for (--apply, --trace) and of what only a device has are not reached by these programs, and so many others.
ASKED_FOR = {"facts/profiler_window.py", "knobs/actuators.py", "knobs/fetching.py", "knobs/fp16.py", "knobs/kept_calls.py", "knobs/kept_samples.py",
             "knobs/metrics_interval.py", "patches/waits.py", "trial/longest_batch.py"}
NOT_REACHED = 6


def gives(programs, **more):
    told = subprocess.run([sys.executable, INJECTION, *programs], env=environment(OMP_NUM_THREADS="1", **more), capture_output=True, text=True)
    if told.returncode != 0:
        raise AssertionError(told.stderr[-4000:])
    return json.loads(told.stdout.splitlines()[0])


@unittest.skipUnless(HAS_TORCH, "there is no torch")
class GuardTest(unittest.TestCase):
    def observed(self, programs, **more):
        folder = tempfile.mkdtemp()
        self.addCleanup(__import__("shutil").rmtree, folder, ignore_errors=True)
        return gives(programs, **dict({"UNIDLE_PROBE_DIR": folder, "PYTHONPATH": SHIM, "UNIDLE_LIGHT_LIBRARY": LIBRARY}, **more))

    def test_a_fault_in_each_entry(self):
        bare, told = gives(ALL)["programs"], self.observed(ALL)
        self.assertEqual(told["programs"], bare)
        different = [(place, program, status, output[-600:]) for _, place, program, status, output in told["faults"] if [status, output] != bare[program]]
        self.assertEqual(different, [])
        left = set(told["entries"]) - {fault[0] for fault in told["faults"]}
        left = sorted(one for one in left if one.split(":")[0] not in ASKED_FOR)
        self.assertLessEqual(len(left), NOT_REACHED, left)

    def test_what_the_programs_objects_and_handlers_raise(self):
        programs = ("stubborn", "alarms", "held_back")
        bare, told = gives(programs)["programs"], self.observed(programs, UNIDLE_FAULTS="0")["programs"]
        self.assertEqual(told, bare)
        self.assertEqual(os.WTERMSIG(bare["held_back"][0]), 15)


if __name__ == "__main__":
    unittest.main()
