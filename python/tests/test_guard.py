"""No fault of ours reaches the program: one is put into each entry of the shim in turn, and the program's
results are those of the bare run."""

import os
import unittest

from guarding import ASKED_FOR, Guarded, gives
from run_case import HAS_TORCH

PROGRAMS = (
    "training failures short_steps slow_samples workers streamed in_a_thread options imports arrays children "
    "by_hand scaled_steps two_optimizers recurrent latecomers uncaught compiled packaged"
)


@unittest.skipUnless(HAS_TORCH, "there is no torch")
class GuardTest(Guarded, unittest.TestCase):
    def test_a_fault_in_each_entry(self):
        left = self.faults([({}, PROGRAMS)])
        self.assertEqual([entry for entry in left if not entry.startswith(ASKED_FOR)], [])

    def test_what_the_programs_objects_and_handlers_raise(self):
        programs = ("stubborn", "alarms", "held_back", "freed")
        bare, told = gives(programs)["programs"], self.observed(programs, UNIDLE_FAULTS="0")["programs"]
        self.assertEqual(told, bare)
        self.assertEqual(os.WTERMSIG(bare["held_back"][0]), 15)


if __name__ == "__main__":
    unittest.main()
