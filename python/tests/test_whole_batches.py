"""Whether the rows of a batch can be fetched together is found out without changing a run that is only
observed."""

import importlib.util
import os
import sys
import unittest
import warnings
from unittest import mock

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "shim"))

import run_case  # noqa: E402
from _unidle_shim.samples import whole_batches  # noqa: E402
from run_case import HAS_TORCH, HERE, UNIDLE  # noqa: E402

if HAS_TORCH and importlib.util.find_spec("numpy"):
    import numpy
    import torch
    from torch.utils.data import DataLoader, Dataset, TensorDataset

    whole_batches.remember()

    class Table(Dataset):
        def __init__(self, x):
            self.x = x

        def __len__(self):
            return len(self.x)

        def __getitem__(self, index):
            return self.x[index]

    class Doubled(Table):
        def __getitem__(self, index):
            return self.x[index] * (2 if self.x[index].sum() > 0 else 1)


TRIAL = {"UNIDLE_MUTED": "1"}


@unittest.skipUnless(HAS_TORCH and importlib.util.find_spec("numpy"), "there is no torch, or no numpy")
class KnownTest(unittest.TestCase):
    def known(self, dataset, **more):
        return whole_batches.known(DataLoader(dataset, 4, **more), len(dataset))

    def test_an_observed_run_calls_no_dataset(self):
        with mock.patch.dict(os.environ):
            os.environ.pop("UNIDLE_MUTED", None)
            self.assertIsNone(self.known(Table(numpy.zeros((64, 3))))[0])
            tensors = TensorDataset(torch.zeros(64, 3), torch.zeros(64))
            with mock.patch.object(whole_batches, "_tried", side_effect=AssertionError("it was asked")):
                self.assertEqual(self.known(tensors), (True, None))

    def test_tensors_whose_rows_are_not_what_collating_gives_are_not_known(self):
        with mock.patch.dict(os.environ):
            os.environ.pop("UNIDLE_MUTED", None)
            for tensors in (torch.zeros(8, 3, requires_grad=True), torch.eye(8).to_sparse()):
                self.assertIsNone(self.known(TensorDataset(tensors))[0])

            class Other(TensorDataset):
                pass

            self.assertIsNone(self.known(Other(torch.zeros(8, 3)))[0])

    @mock.patch.dict(os.environ, TRIAL)
    def test_a_trial_compares_rows(self):
        rows = numpy.random.default_rng(0).normal(size=(64, 3)).astype(numpy.float32)
        self.assertEqual(self.known(Table(rows)), (True, None))
        self.assertIsNone(self.known(Doubled(rows))[0])
        with mock.patch.object(whole_batches, "access_why_not", return_value=None):
            self.assertEqual(self.known(Doubled(rows))[0], False)

    @mock.patch.dict(os.environ, TRIAL)
    def test_large_rows_are_left_alone(self):
        rows = torch.zeros(1, 4_000_000).expand(60, 4_000_000)
        with mock.patch.object(torch, "stack", side_effect=AssertionError("rows were put together")):
            self.assertEqual(self.known(Table(rows)), (None, "its rows are too large for that"))

    @mock.patch.dict(os.environ, TRIAL)
    def test_a_trial_leaves_random_numbers_and_warnings_alone(self):
        rows = numpy.zeros((64, 3), numpy.float32)

        class Scaled(Table):
            def __getitem__(self, index):
                row = self.x[index]
                return row / row.sum()

        torch.manual_seed(3)
        before = torch.get_rng_state()
        with warnings.catch_warnings(record=True) as shown:
            warnings.simplefilter("always")
            self.known(Scaled(rows))
        self.assertEqual(shown, [])
        self.assertTrue(torch.equal(before, torch.get_rng_state()))

    @mock.patch.dict(os.environ, TRIAL)
    def test_a_program_that_collates_in_its_own_way(self):
        from torch.utils.data._utils.collate import default_collate_fn_map

        mine = mock.Mock(side_effect=AssertionError("it was asked"))
        for datasets in (TensorDataset(torch.zeros(64, 3)), Table(torch.zeros(64, 3))):
            with mock.patch.dict(default_collate_fn_map, {torch.Tensor: mine}):
                self.assertEqual(self.known(datasets)[0], False)
            self.assertEqual(self.known(datasets), (True, None))


@unittest.skipUnless(HAS_TORCH, "this Python has no torch")
@unittest.skipUnless(os.path.exists(UNIDLE), "UNIDLE_BIN is not set: there is no unidle to run")
class AskedRowsTest(run_case.RunCase):
    def test_nobody_else_asks(self):
        for kind in ("zeros", "collate"):
            with self.subTest(kind):
                done = self.same_as_bare(
                    sys.executable, os.path.join(HERE, "programs", "asked_rows.py"), kind
                )
                self.assertEqual((done.returncode, done.stderr), (0, ""))


if __name__ == "__main__":
    unittest.main()
