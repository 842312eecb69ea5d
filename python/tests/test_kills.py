"""A short selection of kills.py: tools/attack.sh has a thousand."""

import os
import unittest

import kills
from run_case import HAS_TORCH, UNIDLE


@unittest.skipUnless(os.path.exists(UNIDLE), "UNIDLE_BIN is not set: there is no unidle to run")
class KillsTest(unittest.TestCase):
    def test_the_ring_and_the_stretch(self):
        counts, wrong = kills.run(21, "shim", 3)
        self.assertEqual(wrong, [])
        self.assertGreater(sum(count["steps"] for count in counts.values()), 0)

    @unittest.skipUnless(HAS_TORCH, "there is no torch")
    def test_a_real_training(self):
        counts, wrong = kills.run(6, "torch", 2)
        self.assertEqual(wrong, [])


if __name__ == "__main__":
    unittest.main()
