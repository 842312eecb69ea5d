"""No fault of ours reaches the program: one is put into each entry of the shim in turn, and the program gives
what it gives bare."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

from test_run import HAS_TORCH, HERE, UNIDLE, environment

INJECTION = os.path.join(HERE, "injection.py")
SHIM = os.path.join(HERE, "..", "shim")
LIBRARY = os.path.join(os.path.dirname(UNIDLE), "..", "lib", "_unidle_light.abi3.so")

# What is asked of the shim, as `unidle run --apply`, `--trace` and optimize do, and programs that come to it.
RUNS = [
    (
        {},
        "training failures short_steps slow_samples workers streamed in_a_thread options imports arrays "
        "children by_hand scaled_steps two_optimizers latecomers uncaught compiled",
    ),
    ({"UNIDLE_TRACE_STEPS": "2"}, "profiled"),
    (
        {"UNIDLE_APPLY": json.dumps({"cache.features": "memory", "loader.gather": True, "cpu.threads": 1})},
        "pictures pictures_of_workers crops table",
    ),
    ({"UNIDLE_APPLY": '{"metrics.interval": 50}', "UNIDLE_ASSUME_DEVICE": "1"}, "on_a_device logged"),
    # It changes results: the program prints what holds in any precision.
    ({"UNIDLE_APPLY": '{"precision.amp": "fp16"}'}, "half"),
    ({"UNIDLE_LONGEST": "1"}, "longest"),
]
# Without a fault these give what was asked for instead; the fault, which comes first, leaves that undone.
CHANGED = {"longest"}
# Entry -> why no program can come to it here.
NOT_REACHED = {}


def gives(programs, **more):
    env = environment(OMP_NUM_THREADS="1", KINETO_LOG_LEVEL="99", **more)  # kineto writes the time on stderr
    told = subprocess.run([sys.executable, INJECTION, *programs], env=env, capture_output=True, text=True)
    if told.returncode != 0:
        raise AssertionError(told.stderr[-4000:])
    return json.loads(told.stdout.splitlines()[0])


@unittest.skipUnless(HAS_TORCH, "there is no torch")
class GuardTest(unittest.TestCase):
    def observed(self, programs, **more):
        folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        probes = os.path.join(folder, "probe")  # a trace is written beside it
        os.mkdir(probes)
        ours = {"UNIDLE_PROBE_DIR": probes, "PYTHONPATH": SHIM, "UNIDLE_LIGHT_LIBRARY": LIBRARY}
        return gives(programs, **dict(ours, **more))

    def test_a_fault_in_each_entry(self):
        bare = gives([program for _, programs in RUNS for program in programs.split()])["programs"]
        done, reached, different = [], set(), []
        for asked, programs in RUNS:
            told = self.observed(programs.split(), UNIDLE_FAULTS_DONE=" ".join(done), **asked)
            for program, given in told["programs"].items():
                same = given == bare[program]
                self.assertEqual(same, program not in CHANGED, (program, given, bare[program]))
            for entry, place, program, status, output in told["faults"]:
                done.append(place)
                reached.add(entry)
                if [status, output] != bare[program]:
                    different.append((place, told["entries"][entry], program, status, output[-600:]))
        self.assertEqual(different, [])
        left = {
            "%s %s" % (entry.split(":")[0], function)
            for entry, function in told["entries"].items()
            if entry not in reached
        }
        self.assertEqual(left, set(NOT_REACHED))

    def test_what_the_programs_objects_and_handlers_raise(self):
        programs = ("stubborn", "alarms", "held_back")
        bare, told = gives(programs)["programs"], self.observed(programs, UNIDLE_FAULTS="0")["programs"]
        self.assertEqual(told, bare)
        self.assertEqual(os.WTERMSIG(bare["held_back"][0]), 15)


if __name__ == "__main__":
    unittest.main()
