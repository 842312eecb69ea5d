"""bench/peers on a GPU, as far as it can be tested without one: the device's input."""

import argparse
import os
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "bench", "peers"))

try:
    import device
    import torch
except ImportError:
    torch = None


@unittest.skipIf(torch is None, "no torch")
class FeedingTest(unittest.TestCase):
    def batches(self, count, where="cuda", mode="tuned"):
        args = argparse.Namespace(mode=mode, device=where, workers=0, batch=5, seed=1)
        found = []
        for batch in device.shuffled(torch.arange(3), args):
            found.append(batch.tolist())
            if len(found) == count:
                break
        return found

    def test_a_batch_may_be_larger_than_an_epoch(self):
        found = self.batches(6)
        self.assertEqual([len(batch) for batch in found], [5] * 6)
        flat = sum(found, [])
        for epoch in range(10):
            self.assertEqual(sorted(flat[3 * epoch : 3 * epoch + 3]), [0, 1, 2])

    def test_elsewhere_an_epoch_ends_with_its_batches(self):
        self.assertEqual(self.batches(6, where="cpu"), [])
        self.assertEqual(self.batches(6, mode="naive"), [])

    def test_processes_and_pinned_memory_are_for_a_tuned_program_on_a_gpu(self):
        def loading(mode, where):
            return device.loading(argparse.Namespace(mode=mode, device=where, workers=-1))

        self.assertTrue(loading("tuned", "cuda")["pin_memory"])
        self.assertGreater(loading("tuned", "cuda")["num_workers"], 0)
        for mode, where in (("naive", "cuda"), ("tuned", "cpu")):
            self.assertEqual(loading(mode, where)["num_workers"], 0)
            self.assertFalse(loading(mode, where)["pin_memory"])


if __name__ == "__main__":
    unittest.main()
