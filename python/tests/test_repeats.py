"""Samples that one call of the dataset makes, as a Subset's, are compared from epoch to epoch as well."""

import importlib.util
import os
import random
import sys
import time
import types
import unittest
import unittest.mock

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "shim"))

from _unidle_shim.samples import repeats, sample_cost  # noqa: E402


class Rows:
    def __init__(self, draws):
        self.draws = draws

    def __getitems__(self, indices):
        time.sleep(2e-9 * repeats.COSTLY_NS * len(indices))
        return [[index, random.random() if self.draws else 0.5] for index in indices]


@unittest.skipUnless(importlib.util.find_spec("torch"), "samples are serialised with torch and numpy")
class BatchesTest(unittest.TestCase):
    def compared(self, draws):
        """How often the samples were equal to their first one, and how often they differed."""
        import torch  # noqa: F401

        fetcher = types.SimpleNamespace(dataset=Rows(draws), collate_fn=tuple, auto_collation=True)
        samples, state = sample_cost.Samples(0), types.SimpleNamespace(ring=unittest.mock.MagicMock())

        def original(fetcher, indices):
            return fetcher.collate_fn(fetcher.dataset.__getitems__(indices))

        for _ in range(3):
            for begin in (0, 4):
                batch = sample_cost.fetch(original, fetcher, list(range(begin, begin + 4)), samples, state)
                self.assertEqual([row[0] for row in batch], list(range(begin, begin + 4)))
        told = samples.again.note()
        self.assertEqual(len(told), 8)
        return {(equal, differed) for _, equal, differed in told.values()}

    def test_samples_of_a_batch(self):
        self.assertEqual(self.compared(draws=False), {(2, 0)})
        self.assertEqual(self.compared(draws=True), {(0, 2)})


if __name__ == "__main__":
    unittest.main()
