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

# Programs of programs/entries.py, by what the shim is asked for. Together they come to every entry.
ALL = ("training", "failures", "short_steps", "slow_samples", "workers", "streamed", "in_a_thread", "options", "imports", "arrays", "children",
       "by_hand", "scaled_steps", "two_optimizers", "compiled", "ends_by_an_exception")
FAMILIES = (
    (ALL, {}),
    (("short_steps",), {"UNIDLE_LIGHT_LIBRARY": ""}),
    (("moves",), {"UNIDLE_ASSUME_DEVICE": "1"}),
    (("moves",), {"UNIDLE_ASSUME_DEVICE": "1", "UNIDLE_APPLY": '{"transfer.non_blocking": true}'}),
    (("training",), {"UNIDLE_LONGEST": "1"}),
    (("profiled",), {"UNIDLE_TRACE_STEPS": "2"}),
    (("cached",), {"UNIDLE_APPLY": '{"cache.features": "memory", "loader.gather": true}'}),
    (("half",), {"UNIDLE_APPLY": '{"precision.amp": "fp16"}'}),
)
# Seen by tests of their own: what runs only on a device, and at the very start and end.
ELSEWHERE = {"reads_later.py"}


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
        reached, known, different, faults = set(), set(), [], 0
        for programs, more in FAMILIES:
            bare, told = gives(programs)["programs"], self.observed(programs, **more)
            for program in programs:
                self.assertEqual(told["programs"][program], bare[program], "%s, without any fault" % program)
            for entry, place, program, status, output in told["faults"]:
                if [status, output] != bare[program]:
                    different.append((place, program, status, output[-600:]))
            reached.update(fault[0] for fault in told["faults"])
            known.update(told["entries"])
            faults += len(told["faults"])
        self.assertEqual(different, [])
        self.assertEqual(sorted(one for one in known - reached if one.split(":")[0] not in ELSEWHERE), [])
        print("%d faults in %d entries" % (faults, len(reached)), file=sys.stderr)

    def test_what_the_programs_objects_and_handlers_raise(self):
        programs = ("stubborn", "alarms", "held_back")
        bare, told = gives(programs)["programs"], self.observed(programs, UNIDLE_FAULTS="0")["programs"]
        self.assertEqual(told, bare)
        self.assertEqual(os.WTERMSIG(bare["held_back"][0]), 15)


if __name__ == "__main__":
    unittest.main()
