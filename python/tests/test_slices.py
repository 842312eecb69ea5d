"""What the backward pass fills for slices of tensors."""

import os
import sys
import unittest

from run_case import HAS_TORCH, HERE

sys.path.insert(0, os.path.join(HERE, "..", "shim"))


@unittest.skipUnless(HAS_TORCH, "this Python has no torch")
class SlicesTest(unittest.TestCase):
    def note(self, loss, passes=4):
        import torch
        from _unidle_shim.facts import slices

        looking = slices.Slices()
        for _ in range(passes):
            looking.backward_begins(torch, loss)
        return looking.note()

    def scores(self):
        import torch

        return torch.randn(16, 20, 8, 8, requires_grad=True)

    def test_each_slice_in_a_loop_counts_with_the_whole_tensor(self):
        scores = self.scores()
        note = self.note(sum(scores[:15, t].sum() for t in range(20)))
        self.assertEqual(note["slices"], 40)  # 15 samples of 16, and one time step of 20 of those
        self.assertEqual(note["shape"], "16x20x8x8")
        self.assertEqual(note["bytes"], 20 * (16 + 15) * 20 * 8 * 8 * 4)

    def test_unbind_fills_one_stack(self):
        scores = self.scores()
        self.assertIsNone(self.note(sum(one.sum() for one in scores.unbind(1))))

    def test_small_tensors_do_not_count(self):
        import torch

        small = torch.randn(16, 20, 2, requires_grad=True)
        self.assertIsNone(self.note(sum(small[:, t].sum() for t in range(20))))

    def test_packed_sequences_do_not_count(self):
        import torch

        lstm = torch.nn.LSTM(64, 64)
        packed = torch.nn.utils.rnn.pack_sequence([torch.randn(n, 64) for n in range(90, 50, -1)])
        out, _ = lstm(packed)
        self.assertIsNone(self.note(out.data.sum()))

    def test_the_mean_of_passes_counts(self):
        import torch
        from _unidle_shim.facts import slices

        looking = slices.Slices()
        scores = self.scores()
        long = sum(scores[:, t].sum() for t in range(20))
        short = sum(scores[:, t].sum() for t in range(2))
        for number in range(1, 8):
            looking.backward_begins(torch, long if number < 7 else short)
        note = looking.note()
        self.assertEqual((note["slices"], note["bytes"]), (20, 11 * scores.numel() * 4))

    def test_few_backward_passes_are_looked_at(self):
        scores = self.scores()
        loss = sum(scores[:, t].sum() for t in range(20))
        self.assertIsNone(self.note(loss, 3))
        self.assertEqual(self.note(loss)["bytes"], 20 * scores.numel() * 4)

    def test_a_loss_without_a_graph_has_none(self):
        import torch

        self.assertIsNone(self.note(torch.zeros(())))

    def test_a_graph_is_not_kept(self):
        import gc
        import weakref

        import torch
        from _unidle_shim.facts import slices

        looking, scores = slices.Slices(), self.scores()
        alive = weakref.ref(scores)
        loss = sum(scores[:, t].sum() for t in range(20))
        for _ in range(4):
            looking.backward_begins(torch, loss)
        del scores, loss
        gc.collect()
        self.assertIsNone(alive())


if __name__ == "__main__":
    unittest.main()
