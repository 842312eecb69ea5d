"""How many samples a batch has, if an item of the dataset may be a whole batch."""

import importlib.util
import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "shim"))

HAS_TORCH = importlib.util.find_spec("torch") is not None


@unittest.skipUnless(HAS_TORCH, "this Python has no torch")
class BatchSizesTest(unittest.TestCase):
    def setUp(self):
        import torch
        from _unidle_shim.samples import batch_sizes

        self.rows, self.samples_of, self.size_of = torch.zeros, batch_sizes.samples_of, batch_sizes.size_of

    def test_items_that_are_batches(self):
        rows = self.rows
        for batch in (
            rows(128, 40),
            (rows(128, 40), rows(128)),
            [rows(128, 13), rows(26, 128), [rows(300) for _ in range(26)], rows(128, 1)],
            {"tokens": rows(128, 64), "mask": rows(128, 64), "label": rows(128)},
        ):
            self.assertEqual(self.samples_of(batch, 1), 128)

    def test_items_that_are_samples(self):
        rows = self.rows
        for batch in (
            (rows(3, 64, 64), 7),
            (rows(3, 64, 64), rows(())),
            (rows(9, 40), rows(1)),  # a bag of instances with one label
            {"image": rows(3, 64, 64), "boxes": rows(5, 4)},
            (rows(1, 3, 64, 64), rows(1)),
        ):
            self.assertEqual(self.samples_of(batch, 1), 1)

    def test_arguments_of_a_model(self):
        rows = self.rows
        numbers = list(rows(256).long().numpy())  # of numpy's kind, as indices of nodes often are
        for arguments, samples in (
            ((numbers, rows(256, 1)), 256),
            ((numbers, [{1, 2}, {3}], 10), 256),
            (([5, 6, 7], None), 3),
            ((rows(()), rows(32, 2)), 32),  # a time, and the state then
            ((rows(()),), 1),
            ((["a text", "another"],), 2),
            (({"nodes": numbers},), 256),
            ((None, {}), 0),
        ):
            self.assertEqual(self.size_of(arguments), samples)

    def test_batches_of_several_items(self):
        rows = self.rows
        pictures, targets = (
            tuple(rows(3, 16, 16) for _ in range(8)),
            tuple({"boxes": rows(2, 4)} for _ in range(8)),
        )
        for batch, items, samples in (
            ((rows(32, 40), rows(32)), 32, 32),
            ((rows(7, 40), rows(7)), 32, 7),  # the last one of an epoch
            ((pictures, targets), 8, 8),
            ((rows(64, 40), rows(32)), 32, 32),  # two views of each sample
            ((rows(20, 32, 8), rows(32)), 32, 32),  # time first
            ((rows(48, 40), rows(48)), None, 48),  # a batch sampler of the program
        ):
            self.assertEqual(self.samples_of(batch, items), samples)


if __name__ == "__main__":
    unittest.main()
