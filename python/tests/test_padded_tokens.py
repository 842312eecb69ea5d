"""Padding that only the tokens show."""

import importlib.util
import os
import sys
import unittest

SHIM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "shim")
sys.path.insert(0, SHIM)

HAS_TORCH = importlib.util.find_spec("torch") is not None

if HAS_TORCH:
    import torch
    from _unidle_shim.facts.padding import Padding
    from torch import nn


def model(padding_idx=None, layer="GRU"):
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.words = nn.Embedding(30, 4, padding_idx=padding_idx)
            self.layer = getattr(nn, layer)(4, 4)

        def forward(self, tokens, labels=None):
            return self.layer(self.words(tokens))

    return Model()


@unittest.skipUnless(HAS_TORCH, "torch is not installed")
class PaddedTokens(unittest.TestCase):
    def counted(self, model, *args):
        """(real, all, up to the longest sequence), or None."""
        padding = Padding()
        padding.call_seen(torch, model, args, {})
        notes = list(padding.notes())
        if not notes:
            return None
        ((_, note),) = notes
        self.assertFalse(note["cuts"])
        self.assertIn("test_padded_tokens.py:", note["where"])
        return note["real"], note["padded"], note["longest"]

    def test_by_the_index_of_the_embedding(self):
        tokens = torch.tensor([[5, 0, 7, 1, 1, 1], [3, 4, 5, 6, 1, 1]])
        self.assertEqual(self.counted(model(1), tokens), (7, 12, 8))
        self.assertEqual(self.counted(model(1), tokens.to(torch.int32)), (7, 12, 8))
        self.assertEqual(self.counted(model(1), tokens.flip(1)), (7, 12, 8), "padding at the left")
        self.assertEqual(self.counted(nn.Sequential(model(1)), tokens), (7, 12, 8))
        self.assertIsNone(self.counted(model(2), tokens), "another one is padding")
        self.assertIsNone(self.counted(model(1), tokens[:, :3]), "no padding")
        self.assertIsNone(self.counted(model(1), tokens.float()), "no tokens")

    def test_samples_along_the_second_axis(self):
        tokens = torch.tensor([[5, 6, 7, 0, 0, 0], [3, 4, 0, 0, 0, 0], [3, 4, 5, 6, 8, 0]])
        self.assertEqual(self.counted(model(0), tokens.t().contiguous()), (10, 18, 15))

    def test_by_zeros_at_the_end(self):
        tokens = torch.tensor([[5, 6, 7, 0, 0, 0], [3, 4, 0, 0, 0, 0], [3, 4, 5, 6, 8, 9]])
        self.assertEqual(self.counted(model(), tokens), (11, 18, 18))
        for other in (
            [[5, 0, 7, 0, 0, 0], [3, 4, 0, 0, 0, 0]],  # within
            [[5, 6, 7, 1, 0, 0], [3, 4, 1, 2, 3, 4], [3, 4, 1, 2, 3, 4]],  # in one row
            [[5, 6, 7, 1, 1, 1], [3, 4, 1, 1, 1, 1]],  # another number
            [[0, 0, 0, 0, 0, 0], [3, 4, 0, 0, 0, 0]],  # nothing is real
        ):
            self.assertIsNone(self.counted(model(), torch.tensor(other)), other)

    def test_models_whose_cost_hardly_depends_on_the_length(self):
        tokens = torch.tensor([[5, 6, 1, 1], [3, 1, 1, 1]])
        self.assertIsNone(self.counted(model(1, "Linear"), tokens))
        self.assertIsNone(self.counted(nn.GRU(4, 4), tokens), "no embedding")

    def test_masks_come_first(self):
        padding, tokens = Padding(), torch.tensor([[5, 6, 7, 1], [3, 4, 1, 1]])
        padding.batch_seen(torch, {"attention_mask": (tokens != 1).long(), "input_ids": tokens})
        padding.call_seen(torch, model(1), (torch.tensor([[5, 1, 1, 1], [3, 1, 1, 1]]),), {})
        ((_, note),) = padding.notes()
        self.assertEqual((note["real"], note["padded"]), (5, 8))


if __name__ == "__main__":
    unittest.main()
