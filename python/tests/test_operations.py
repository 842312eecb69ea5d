"""Counting operations and calls of models; without torch."""

import os
import sys
import types
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "shim"))

from _unidle_shim.facts import operations  # noqa: E402


class Operations(unittest.TestCase):
    def setUp(self):
        self.nodes = 0
        autograd = types.SimpleNamespace(_get_sequence_nr=lambda: self.nodes)
        self.operations = operations.Operations(types.SimpleNamespace(autograd=autograd))
        self.loop = types.SimpleNamespace(backwards=2, previews=0, preview_samples=0)

    def call(self, module, nodes=10, ns=1_000_000):
        self.operations.begin(module)
        self.nodes += nodes
        self.operations.end(ns)

    def test_the_model_that_is_called_most_counts(self):
        loss, cell = object(), object()
        for _ in range(operations._FIRST):
            self.call(loss)
        for _ in range(40):
            self.call(cell)
        self.call(loss, ns=5_000_000)
        note = self.operations.note(self.loop)
        self.assertEqual((note["passes"], note["count"], note["backwards"]), (41, 410, 2))
        self.assertEqual((note["most_called"], round(note["most_called_seconds"], 6)), (40, 0.04))
        self.assertEqual(round(note["seconds"], 6), 0.045)

    def test_a_loss_counts_with_the_forward_pass_before_it(self):
        for _ in range(operations._FIRST):
            self.call(self)
            self.nodes += 500
            self.operations.loss_ends(3_000_000)
        for _ in range(2):
            self.call(self)
            self.nodes += 500
            self.operations.loss_ends(3_000_000)
            self.nodes += 50  # a metric
            self.operations.loss_ends(3_000_000)  # another backward pass
        self.operations.end(1_000_000)  # within the closure of an optimiser
        self.operations.loss_ends(3_000_000)
        note = self.operations.note(self.loop)
        self.assertEqual((note["passes"], note["count"], round(note["seconds"], 6)), (2, 1020, 0.008))

    def test_passes_that_were_not_begun_do_not_count(self):
        self.operations.end(1_000_000)  # within the closure of an optimiser
        self.assertIsNone(self.operations.note(self.loop))

    def test_a_torch_that_numbers_no_nodes(self):
        old = operations.Operations(types.SimpleNamespace(autograd=types.SimpleNamespace()))
        for _ in range(9):
            old.begin(self)
            old.end(5)
        self.assertIsNone(old.note(self.loop))


if __name__ == "__main__":
    unittest.main()
