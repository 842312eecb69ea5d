"""Results of a model whose format or layout is converted keep their classes and their sharing."""

import collections
import dataclasses
import importlib.util
import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "shim"))

from _unidle_shim.knobs import results  # noqa: E402


class Named(collections.namedtuple("Named", "score label")):
    pass


class OwnNew(tuple):
    def __new__(cls, score, label):
        made = super().__new__(cls, (score, label))
        made.kept = label
        return made


class Scores(list):
    name = "none"


class ByName(dict):
    __getattr__ = dict.__getitem__


@dataclasses.dataclass(frozen=True)
class Frozen:
    score: object
    label: str


@unittest.skipUnless(importlib.util.find_spec("torch"), "there is no torch")
class ResultsTest(unittest.TestCase):
    def setUp(self):
        import torch

        self.torch = torch
        self.last = torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last)

    def converted(self, value):
        return results.to_contiguous(self.torch, value)

    def check(self, tensor):
        self.assertTrue(tensor.is_contiguous())
        self.assertTrue(tensor.equal(self.last))

    def test_tensors_in_all_kinds_of_results(self):
        scores = Scores([self.last])
        scores.name = "kept"
        for made, get in (
            (self.last, lambda out: out),
            ([self.last, 1], lambda out: out[0]),
            ((1, (self.last,)), lambda out: out[1][0]),
            ({"a": [self.last]}, lambda out: out["a"][0]),
            (Named(self.last, "a"), lambda out: out.score),
            (OwnNew(self.last, "a"), lambda out: out[0] if out.kept == "a" else None),
            (scores, lambda out: out[0] if out.name == "kept" else None),
            (ByName(a=self.last), lambda out: out.a),
            (Frozen(self.last, "a"), lambda out: out.score),
        ):
            out = self.converted(made)
            self.assertIs(type(out), type(made))
            self.check(get(out))

    def test_a_tensor_that_is_there_twice_stays_one(self):
        first, (second, third) = self.converted((self.last, [self.last, {"a": self.last}]))
        self.assertIs(first, second)
        self.assertIs(first, third["a"])
        self.check(first)

    def test_what_the_model_keeps_is_not_changed(self):
        kept = {"a": [self.last]}
        self.check(self.converted(kept)["a"][0])
        self.assertIs(kept["a"][0], self.last)

    def test_results_without_such_tensors_are_the_same_objects(self):
        usual = self.torch.zeros(2, 3, 4, 5)
        for value in (usual, [usual], (usual, None), {"a": usual}, Named(usual, 1), "text", None):
            self.assertIs(self.converted(value), value)

    def test_views_of_channels_last_tensors(self):
        for view in (lambda x: x.chunk(3, 1)[1], lambda x: x[:, 1:], lambda x: x.flatten(2)):
            out = self.converted(view(self.last))
            self.assertTrue(out.is_contiguous())
            self.assertTrue(out.equal(view(self.last)))

    def test_a_tensor_whose_layout_cannot_be_read_stays(self):
        nested = self.torch.nested.nested_tensor([self.torch.zeros(3, 4, 4), self.torch.zeros(3, 5, 4)])
        sparse = self.torch.zeros(2, 2, 2, 2).to_sparse()
        for value in (nested, sparse):
            self.assertIs(self.converted(value), value)
        mapped = self.torch.func.vmap(lambda one: self.converted(one.unsqueeze(0)))(self.last)
        self.assertTrue(mapped.equal(self.last.unsqueeze(1)))

    def test_results_of_operations_that_are_named_tuples_of_c(self):
        out = results.to_float(self.torch, {"best": self.last.bfloat16().max(3)})["best"]
        self.assertIs(type(out), self.torch.return_types.max)
        self.assertEqual((out.values.dtype, out.indices.dtype), (self.torch.float32, self.torch.int64))

    def test_half_precision_becomes_float(self):
        out = results.to_float(
            self.torch, OwnNew(self.last.bfloat16(), self.torch.zeros(2, dtype=self.torch.long))
        )
        self.assertEqual([one.dtype for one in out], [self.torch.float32, self.torch.int64])


if __name__ == "__main__":
    unittest.main()
