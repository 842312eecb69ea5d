"""The comparable form of tensors: whether a call has changed them."""

import os
import sys
import unittest

import run_case

sys.path.insert(0, os.path.join(run_case.HERE, "..", "shim"))

from _unidle_shim.source import fingerprint  # noqa: E402

if run_case.HAS_TORCH:
    import torch


@unittest.skipUnless(run_case.HAS_TORCH, "there is no torch")
class FingerprintOfTensorsTest(unittest.TestCase):
    def assert_seen(self, value, change):
        before = fingerprint.of(value)
        change(value)
        self.assertNotEqual(before, fingerprint.of(value), value)

    def test_changes_of_tensors_are_seen(self):
        for kind in (torch.float32, torch.bfloat16, torch.bool, torch.complex64):
            self.assert_seen(torch.zeros(3, dtype=kind), lambda value: value.fill_(1))
            self.assert_seen(torch.zeros(3, dtype=kind), lambda value: value.data.fill_(1))
        self.assert_seen(torch.zeros(3), lambda value: value.numpy().fill(1))
        self.assert_seen(torch.nn.Parameter(torch.zeros(())), lambda value: value.data.fill_(1))
        self.assert_seen(torch.zeros(3, 4).t(), lambda value: value.data.fill_(1))
        self.assert_seen(torch.zeros(100_000), lambda value: value.fill_(1))
        with torch.inference_mode():
            self.assert_seen(torch.zeros(3), lambda value: value.fill_(1))

    def test_any_tensor_has_a_form(self):
        def look(value):
            self.assertEqual(fingerprint.of(value), fingerprint.of(value))
            return value

        look(torch.full((2,), float("nan")))
        look(torch.zeros(2, 2).to_sparse())
        look(torch.zeros(2, device="meta"))
        look(torch.zeros(2, dtype=torch.complex64).conj())
        if hasattr(torch, "vmap"):
            torch.vmap(look)(torch.zeros(2, 3))


if __name__ == "__main__":
    unittest.main()
