"""The same as test_guard.py for what is asked of the shim, as `unidle run --apply`, `--trace` and optimize
do: a fault leaves the program as it is bare."""

import json
import unittest

from guarding import ASKED_FOR, Guarded
from test_run import HAS_TORCH

KEPT = json.dumps({"cache.features": "memory", "loader.gather": True, "cpu.threads": 1})
RUNS = [
    ({"UNIDLE_TRACE_STEPS": "2"}, "profiled"),
    ({"UNIDLE_APPLY": KEPT}, "pictures pictures_of_workers crops table"),
    ({"UNIDLE_APPLY": '{"metrics.interval": 50}', "UNIDLE_ASSUME_DEVICE": "1"}, "on_a_device logged"),
    # It changes results: the program prints what holds in any precision.
    ({"UNIDLE_APPLY": '{"precision.amp": "fp16"}'}, "half half_in_a_child"),
    # Without a fault this gives what was asked for; the fault leaves that undone.
    ({"UNIDLE_LONGEST": "1"}, "longest"),
]


@unittest.skipUnless(HAS_TORCH, "there is no torch")
class AskedTest(Guarded, unittest.TestCase):
    def test_a_fault_in_each_entry_of_what_is_asked_for(self):
        left = self.faults(RUNS, changed={"longest"}, UNIDLE_FAULTS_IN=" ".join(ASKED_FOR))
        self.assertEqual([entry for entry in left if entry.startswith(ASKED_FOR)], [])


if __name__ == "__main__":
    unittest.main()
