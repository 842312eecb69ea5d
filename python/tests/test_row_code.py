"""Which forms of __getitem__ give for many indices at once what they give for each, by their code alone."""

import importlib.util
import linecache
import os
import sys
import textwrap
import unittest
from unittest import mock

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "shim"))

from _unidle_shim.samples import row_access, whole_batches  # noqa: E402
from run_case import HAS_TORCH  # noqa: E402

if HAS_TORCH and importlib.util.find_spec("numpy"):
    import numpy
    import torch
    from torch.utils.data import Dataset, default_collate

    whole_batches.remember()

    class Table(Dataset):
        kind = "train"

        def __init__(self):
            self.x, self.y = numpy.random.rand(64, 5).astype(numpy.float32), numpy.arange(64)
            self.t, self.f = torch.rand(64, 3), numpy.random.rand(64)
            self.both, self.named, self.keys = (self.x, self.t), {"a": self.x, "b": self.t}, ["a", "b"]
            self.none, self.train, self.transform = None, True, None


GIVEN = [
    "return self.x[i], self.y[i]",
    '"""Text."""\na, b = self.x[i], self.t[i]\nreturn [a, [b]]',
    "return {'a': self.x[i], 'b': torch.tensor(self.y[i], dtype=torch.long)}",
    "item = {k: v[i] for k, v in self.named.items()}\nitem['y'] = torch.tensor(self.y[i])\nreturn item",
    "return tuple(t[i] for t in self.both)",
    "return {k: self.named[k][i] for k in self.keys}",
    "if torch.is_tensor(i):\n    i = i.tolist()\nreturn self.x[i]",
    "x = self.x[i]\nif self.transform is not None:\n    x = self.transform(x)\nreturn x",
    "if self.transform:\n    self.n = 3\nreturn self.t[i]",
    "if self.none is None:\n    return self.x[i]\nreturn self.x[i], self.none[i]",
    "return self.none[i] if self.none is not None else self.y[i]",
    "return torch.from_numpy(self.x[i].astype(numpy.float32)), torch.FloatTensor(self.x[i])",
    "return self.x[i, :], self.x[i, 0], self.t[i, 1:3], self.t[i, -1], self.x[i, :-1]",
    "return self.t[i].float(), self.t[i].long(), self.t[i].clone(), self.x[i].copy()",
    "return torch.as_tensor(self.f[i], dtype=torch.float32), torch.tensor(self.y[i], dtype=torch.float)",
    "x = self.x[i]\nreturn x, x, self.both[0][i]",
]
REFUSED = [
    ("return self.x[i] * 2", "self.x[i] * 2"),
    ("if self.y[i] > 3:\n    return self.x[i]\nreturn self.t[i]", "self.y[i] > 3"),
    ("if self.kind == 'train':\n    return self.x[i]\nreturn self.t[i]", "self.kind == 'train'"),
    ("self.n = i\nreturn self.x[i]", "sets self.n"),
    ("x = self.x[i]\nx += 1\nreturn x", "sets x"),
    ("self.x[i] = 3\nreturn self.x[i]", "sets self.x[i]"),
    ("self.named['a'] = self.x[i]\nreturn self.x[i]", "sets self.named['a']"),
    ("return self.x[i], i", "something else than rows"),
    ("return self.x[i], 1", "something else than rows"),
    ("return ()", "something else than rows"),
    ("pass", "pass"),
    ("return self.x[i + 1]", "i + 1"),
    ("return self.x[i : i + 3]", "i:i + 3"),
    ("return self.x[:, i]", "has :"),
    ("return self.x[i, None]", "self.x[i, None]"),
    ("return self.x[i, True]", "self.x[i, True]"),
    ("return self.y[i, 0]", "self.y[i, 0]"),
    ("return self.x[i][0]", "self.x[i]"),
    ("return self.x[()]", "self.x[()]"),
    ("return self.both[i]", "has self.both[i]"),
    ("return self.x[i].sum()", "calls self.x[i].sum"),
    ("return int(self.y[i])", "calls int"),
    ("return torch.tensor(self.t[i])", "calls torch.tensor"),
    ("return torch.tensor(self.f[i], dtype=torch.long)", "calls torch.tensor"),
    ("return torch.FloatTensor(self.y[i])", "calls torch.FloatTensor"),
    ("return self.t[i].unsqueeze(0)", "calls self.t[i].unsqueeze"),
    ("return tuple(self.x[i])", "calls tuple"),
    ("return self.x[i].T", "self.x[i]"),
    ("return self.property[i]", "self.property"),
    ("return self.other[i]", "self.other"),
    ("return super().__getitem__(i)", "calls super"),
    ("return (t[i] for t in self.both)", "(t[i] for t in self.both)"),
    ("return [self.x[i] for k in self.keys if k]", "[self.x[i] for k in self.keys if k]"),
    ("return {**self.named}", "**"),
    ("yield self.x[i]", "yield self.x[i]"),
    ("return self.x[i]\nyield", "yield"),
    ("if self.none:\n    global found\nfound = self.x[i]\nreturn found", "global found"),
    ("assert self.train\nreturn self.x[i]", "assert self.train"),
    ("with torch.no_grad():\n    return self.x[i]", "with torch.no_grad():"),
    ("return self.__class__.kind", "self.__class__"),
]


@unittest.skipUnless(HAS_TORCH and importlib.util.find_spec("numpy"), "there is no torch, or no numpy")
class RowCodeTest(unittest.TestCase):
    number = 0

    def setUp(self):
        self.asked = []

    def _made(self, body, before="", given="i", **more):
        """A table with that __getitem__, whose text can be read."""
        RowCodeTest.number += 1
        name = os.path.join(os.sep, "nowhere", "row_code_%d.py" % self.number)
        text = "import torch, numpy\nclass Made(Table):\n%s\n    def __getitem__(self, %s):\n%s\n" % (
            textwrap.indent(before, "    "),
            given,
            textwrap.indent(body, "        "),
        )
        linecache.cache[name] = len(text), None, text.splitlines(True), name
        names = {"Table": Table, "asked": self.asked}
        exec(compile(text, name, "exec"), names)
        made = names["Made"]()
        if more:
            vars(made).update(more)
        self.asked.clear()
        return made

    def _why_not(self, dataset):
        return row_access.look(dataset)[1]

    def test_forms_that_give_the_same(self):
        for body in GIVEN:
            with self.subTest(body):
                made = self._made(body)
                self.assertIsNone(self._why_not(made))
                indices = [3, 5, 5, -1, 0]
                batch, why = whole_batches.gather(made, indices)
                self.assertIsNone(why)
                self.assertTrue(whole_batches.same(batch, default_collate([made[i] for i in indices])))

    def test_forms_that_may_not(self):
        for body, part in REFUSED:
            with self.subTest(body):
                why = self._why_not(self._made(body, "property = property(lambda self: self.x)"))
                self.assertIn(part, why or "it was accepted")

    def test_what_is_read_may_run_no_code_of_the_program(self):
        for before in (
            "def __getattribute__(self, name): asked.append(name)",
            "def __getattr__(self, name): asked.append(name)",
            "z = property(lambda self: asked.append(name))",
        ):
            made = self._made("return self.z[i]", before)
            with self.subTest(before):
                self.assertIn("self.z", self._why_not(made))
                self.assertEqual(self.asked, [])

    def test_arrays_that_are_not_rows_of_numbers_in_memory(self):
        for array in (
            torch.rand(4, 3, requires_grad=True),
            torch.eye(4).to_sparse(),
            torch.rand(4, 3, dtype=torch.complex64),
            torch.nn.Parameter(torch.rand(4)),
            numpy.array(["a", "b"]),
            numpy.array([1, 2], dtype=object),
            numpy.ma.masked_array([1, 2]),
            numpy.float32(3),
            [1, 2],
        ):
            with self.subTest(type(array)):
                self.assertIn("has", self._why_not(self._made("return self.x[i]", x=array)))

    def test_functions_that_the_program_exchanges(self):
        made = self._made("return torch.as_tensor(self.x[i]), self.t[i].float()")
        self.assertIsNone(self._why_not(made))
        for owner, name in ((torch, "as_tensor"), (torch.Tensor, "float")):
            with mock.patch.object(owner, name, lambda *given: None):
                self.assertIn("calls", self._why_not(made))

    def test_code_without_its_text_or_with_another(self):
        made = self._made("return self.x[i], self.x[i], self.y[i]")
        del linecache.cache[type(made).__getitem__.__code__.co_filename]
        self.assertIn("text", self._why_not(made))
        made = self._made("return self.x[i], self.y[i], self.x[i]")
        lines = linecache.cache[type(made).__getitem__.__code__.co_filename][2]
        lines[4] = "        return self.y[i], self.x[i], self.x[i]\n"
        self.assertIn("text", self._why_not(made))

    def test_other_functions(self):
        self.assertIn("no function", self._why_not([1, 2]))
        self.assertIn("takes more", self._why_not(self._made("return self.x[i]", given="*i")))

    def test_arrays_themselves(self):
        self.assertIsNone(self._why_not(torch.rand(4, 3)))
        self.assertIsNone(self._why_not(numpy.zeros((4, 3))))

    def test_the_same_arrays_in_the_same_layout(self):
        made = self._made("return self.x[i], self.t[i]")
        before = row_access.look(made)[0]
        self.assertEqual(before, row_access.look(made)[0])
        made.t = made.t.clone()
        self.assertNotEqual(before, row_access.look(made)[0])


if __name__ == "__main__":
    unittest.main()
