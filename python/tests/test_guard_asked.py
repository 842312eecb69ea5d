"""The same as test_guard.py for requests to the shim, by `unidle run --apply`, `--trace` and optimize: after
a fault the program runs as bare."""

import json
import unittest

from guarding import ASKED_FOR, Guarded
from run_case import HAS_TORCH

OF_TRIALS = "trial/muted_trackers.py"
ALIKE = {  # these change no result, and run together: importing torch takes longer than the programs
    "cache.features": "memory",
    "loader.gather": True,
    "cpu.threads": 1,
    "optimizer.fused": True,
    "layout.channels_last": True,
    "validation.every": 2,
}
RUNS = [
    ({"UNIDLE_TRACE_STEPS": "2"}, "profiled"),
    ({"UNIDLE_APPLY": json.dumps(ALIKE)}, "pictures pictures_of_workers crops table fused judged"),
    ({"UNIDLE_APPLY": '{"batch.trim_padding": true}'}, "padded"),
    ({"UNIDLE_APPLY": '{"loader.workers": 1, "loader.pin_memory": true}'}, "packaged"),
    ({"UNIDLE_ASSUME_DEVICE": "1"}, "on_a_device"),
    # It changes results: the program prints properties that hold in any precision.
    ({"UNIDLE_APPLY": '{"precision.amp": "fp16"}'}, "half half_in_a_child"),
    # Without a fault this does what was requested; the fault disables it.
    ({"UNIDLE_LONGEST": "1"}, "longest"),
]


@unittest.skipUnless(HAS_TORCH, "there is no torch")
class AskedTest(Guarded, unittest.TestCase):
    def test_a_fault_in_each_entry_of_what_is_asked_for(self):
        left = self.faults(RUNS, changed={"longest"}, UNIDLE_FAULTS_IN=" ".join(ASKED_FOR))
        left = [entry for entry in left if not entry.startswith(OF_TRIALS)]
        self.assertEqual([entry for entry in left if entry.startswith(ASKED_FOR)], [])

    def test_a_fault_in_what_keeps_trials_from_dashboards(self):
        """It still keeps them out."""
        told = self.observed(["of_a_trial"], UNIDLE_FAULTS_IN=OF_TRIALS, UNIDLE_MUTED="1")
        whole = told["programs"]["of_a_trial"]
        self.assertEqual((whole[0], whole[1].split()), (0, ["offline", "offline", "disabled"]), whole)
        entries = {entry for entry in told["entries"] if entry.startswith(OF_TRIALS)}
        self.assertEqual({entry for entry, *_ in told["faults"]}, entries)
        for _, place, _, status, output in told["faults"]:
            self.assertEqual(status, 0, (place, output))
            self.assertNotIn("online", output, place)


if __name__ == "__main__":
    unittest.main()
