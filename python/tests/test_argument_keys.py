"""The bytes by which unidle.cached distinguishes the arguments of calls."""

import dataclasses
import datetime
import decimal
import enum
import sys
import unittest
from collections import OrderedDict, defaultdict, namedtuple
from pathlib import Path

import package
from unidle._keys.arguments import encoded

import unidle

np = package.needs("numpy")


class Kind(enum.Enum):
    A = 1
    B = 2


@dataclasses.dataclass
class Settings:
    cutoff: float = 8.0
    names: tuple = ()


Point = namedtuple("Point", "x y")


class Options(enum.Flag):
    FAST = 1
    EXACT = 2


class Bits(enum.IntFlag):
    LOW = 1


class Words(list):
    unit = ""


class Name(str):
    pass


class Seed(int):
    pass


class Celsius(float):
    pass


class Table(dict):
    pass


class Pair(tuple):
    pass


class KeyTest(unittest.TestCase):
    def test_values_that_differ_have_different_bytes(self):
        values = [
            None,
            True,
            False,
            0,
            1,
            -1,
            10**5000,
            0.0,
            -0.0,
            1.0,
            float("inf"),
            float("nan"),
            1j,
            "",
            "1",
            b"",
            b"1",
            bytearray(b"1"),
            (),
            [],
            {},
            set(),
            frozenset(),
            (1,),
            [1],
            (1, 2),
            (2, 1),
            ((1,), 2),
            (1, (2,)),
            {1: 2},
            {2: 1},
            {1},
            {1, 2},
            Kind.A,
            Kind.B,
            Path("a"),
            Settings(),
            Settings(7.0),
            Settings(names=("a",)),
            Point(1, 2),
            OrderedDict({1: 2}),
            OrderedDict({1: 2, 3: 4}),
            OrderedDict({3: 4, 1: 2}),
            defaultdict(list, {1: 2}),
            defaultdict(int, {1: 2}),
            Options(0),
            Options.FAST,
            Options.EXACT,
            Options.FAST | Options.EXACT,
            Bits(0),
            Bits(4),
            Bits.LOW | 4,
            ...,
            datetime.date(2026, 1, 1),
            datetime.datetime(2026, 1, 1),
            datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc),
            decimal.Decimal("1.0"),
            decimal.Decimal("1.00"),
            range(3),
            slice(3),
            np.dtype("f4"),
            np.dtype("f8"),
            np.zeros(3),
            np.zeros((3, 1)),
            np.zeros((1, 3)),
            np.zeros(3, "f4"),
            np.zeros(6, "f4"),
            np.zeros(0),
            np.float32(0),
            np.int64(0),
            np.arange(3.0),
            np.zeros(2, [("a", "f4")]),
            np.zeros(2, [("b", "f4")]),
            "\udcff",
            "a\0b",
        ]
        seen = {}
        for number, value in enumerate(values):
            key = encoded("value", value)
            self.assertNotIn(key, seen, f"number {number} of the list")
            seen[key] = value

    def test_the_same_values_have_the_same_bytes(self):
        array = np.arange(12.0).reshape(3, 4)
        for one, other in [
            ({1: 2, "a": 3}, {"a": 3, 1: 2}),
            ({"b", "a", "c"}, {"c", "b", "a"}),
            (float("nan"), np.frombuffer(b"\1\0\0\0\0\0\xf8\xff")[0].item()),
            (array, np.asfortranarray(array)),
            (array, array.astype(">f8")),
            (array, np.lib.stride_tricks.as_strided(array, array.shape, array.strides)),
            (array[::2], array[::2].copy()),
        ]:
            self.assertEqual(encoded("value", one), encoded("value", other), f"{one!r} and {other!r}")

    def test_what_cannot_be_keyed_is_named(self):
        loop = []
        loop.append(loop)
        for value, word in [
            (object(), "object"),
            (lambda: 0, "function"),
            ([1, {"a": object()}], "object"),
            (np.array([object()]), "array of objects"),
            (np.ma.zeros(3), "MaskedArray"),
            (iter([]), "list_iterator"),
            (slice(object()), "object"),
            (open, "builtin"),
            (sys, "module"),
            (loop, "holds itself"),
            (Words(), "Words"),
            (Name("a"), "Name"),
            (Seed(1), "Seed"),
            (Celsius(1), "Celsius"),
            ({"a": [1, Settings(names=(2, Seed(1)))]}, "['a'][1].names[1]: a value of type"),
            (Table(), "Table"),
            (Pair(), "Pair"),
        ]:
            with self.assertRaises(unidle.UsageError) as caught:
                encoded("f: argument model", value)
            self.assertIn("f: argument model", str(caught.exception))
            self.assertIn(word, str(caught.exception))
            self.assertNotIn("\n", str(caught.exception))

    def test_classes_made_within_a_function_are_refused(self):
        def made(value):
            class Local:
                weight = value

            return Local

        def using(kind):
            return lambda: kind.weight

        for value in (using(made(1)), made(2)):
            with self.assertRaisesRegex(unidle.UsageError, "Local, made within a function, cannot be keyed"):
                encoded("f", value, code=True)
        self.assertTrue(encoded("f", using(Settings), code=True))

    def test_tensors(self):
        try:
            import torch
        except ImportError:
            self.skipTest("needs torch")
        tensor = torch.arange(12.0).reshape(3, 4)
        same = [
            tensor,
            tensor.clone().requires_grad_(),
            tensor.t().contiguous().t(),
            torch.nn.Parameter(tensor),
        ]
        self.assertEqual(len({encoded("", value) for value in same}), 1)
        others = [
            tensor,
            tensor.double(),
            tensor.bfloat16(),
            tensor.half(),
            tensor.t(),
            tensor + 1,
            tensor.numpy(),
        ]
        others += [torch.float32, torch.float64, torch.device("cpu"), "cpu"]
        eighth = tensor.to(torch.float8_e4m3fn)
        others += [
            eighth,
            (tensor + 1).to(eighth.dtype),
            eighth.reshape(4, 3),
            torch.zeros(()).to(torch.float8_e5m2),
        ]
        others += [torch.ones(2, dtype=torch.complex32), torch.ones(3, dtype=torch.complex32)]
        turning = torch.tensor([1 + 2j, 3 - 1j])
        others += [turning, turning.conj()]
        self.assertEqual(len({encoded("", value) for value in others}), len(others))
        self.assertEqual(encoded("", turning.conj()), encoded("", turning.conj().resolve_conj()))
        self.assertEqual(encoded("", eighth), encoded("", eighth.clone()))
        for value in [torch.nn.Linear(2, 2), tensor.to_sparse(), torch.Generator(), tensor.to("meta")]:
            with self.assertRaises(unidle.UsageError):
                encoded("", value)


if __name__ == "__main__":
    unittest.main()
