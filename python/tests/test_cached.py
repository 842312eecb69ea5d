"""unidle.cached: a function's arguments identify its result."""

import dataclasses
import shutil
import subprocess
import sys
import tempfile
import textwrap
import time
import unittest
from pathlib import Path

import package

import unidle
import unidle.data

np = package.needs("numpy")


@dataclasses.dataclass
class Settings:
    cutoff: float = 8.0
    names: tuple = ()


notes, answers = [], []  # global: variables of an enclosing function count as arguments


def answer():
    """Returns the first of `answers`, or raises it."""
    value = answers.pop(0)
    if isinstance(value, Exception):
        raise value
    return value


class CachedTest(unittest.TestCase):
    def setUp(self):
        self.folder = Path(tempfile.mkdtemp(prefix="unidle-cached-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.cache = unidle.Cache(self.folder / "cache")
        notes.clear(), answers.clear()


class CallTest(CachedTest):
    def distances(self, version=1, **options):
        """A function that logs each call."""

        def distances(sequence, cutoff=8.0, *, scale=1, device="cpu"):
            notes.append(sequence)
            return np.full(3, len(sequence) * cutoff * scale)

        return unidle.cached(self.cache, version, ignore=("device",), **options)(distances)

    def test_arguments_count_by_their_values_however_they_are_given(self):
        distances = self.distances()
        results = [
            distances("ACD"),
            distances("ACD", 8.0),
            distances(cutoff=8.0, sequence="ACD"),
            distances("ACD", scale=1, device="cuda"),
        ]
        self.assertEqual([result.tolist() for result in results], [[24.0] * 3] * 4)
        self.assertEqual(notes, ["ACD"])
        distances("ACD", 8), distances("ACD", 9.0), distances("ACE"), distances("ACD", scale=2)
        self.assertEqual(len(notes), 5)
        with self.assertRaises(TypeError):
            distances()
        with self.assertRaises(unidle.UsageError) as caught:
            distances("ACD", scale=object())
        self.assertIn("argument scale", str(caught.exception))

    def test_version_and_name_are_part_of_the_key(self):
        for version, name in [(1, None), (2, None), ("2", None), (1, "other")]:
            notes.clear()
            self.distances(version, name=name)("ACD")
            self.assertEqual(notes, [] if version == "2" else ["ACD"], (version, name))
        one, other = self.distances(1), self.distances("1")
        self.assertEqual(one.key("ACD"), other.key("ACD"))
        self.assertNotEqual(one.key("ACD"), one.key("ACE"))

    def test_values_of_the_function_around_it_count(self):
        def times(factor):
            @unidle.cached(self.cache, 1)
            def product(value):
                return value * factor

            return product

        self.assertEqual([times(2)(3), times(5)(3), times(2)(3)], [6, 15, 6])
        with self.assertRaises(unidle.UsageError):
            times(object())(3)

    def holding(self, held):
        @unidle.cached(self.cache, 1)
        def feature(value):
            return held(value)

        return feature

    def test_functions_of_the_function_around_it_count_by_what_they_do(self):
        def scaled(by, **more):
            def norm(value, *, offset=more.get("offset", 0)):
                return value * by + offset

            return norm

        def twice(function):
            return lambda value: function(function(value))

        def default(by):
            return lambda value, by=by: value * by

        for held, expected in [
            (scaled(1), 3),
            (scaled(100), 300),
            (scaled(1, offset=5), 8),
            (lambda value: value + 1, 4),
            (lambda value: value + 2, 5),
            (lambda value: (lambda: value + 3)(), 6),
            (lambda value: (lambda: value + 4)(), 7),
            (lambda value: value.bit_length(), 2),
            (lambda value: value.conjugate(), 3),
            (twice(scaled(2)), 12),
            (twice(scaled(3)), 27),
            (default(2), 6),
            (default(3), 9),
            (float, 3.0),
            (abs, 3),
        ]:
            self.assertEqual(self.holding(held)(3), expected)
        for key in (lambda: scaled(1), lambda: twice(scaled(2)), lambda: default(2)):
            self.assertEqual(self.holding(key()).key(3), self.holding(key()).key(3))

    def test_functions_that_hold_each_other(self):
        def build(most):
            def even(n):
                return n == 0 or odd(n - 1)

            def odd(n):
                return n > most or (n != 0 and even(n - 1))

            names = {"even": even, "all": lambda: names}
            return lambda n: names["even"](n)

        self.assertEqual([self.holding(build(most))(7) for most in (100, 5)], [False, True])
        self.assertEqual(self.holding(build(5)).key(7), self.holding(build(5)).key(7))

    def test_functions_bound_to_a_value_are_refused(self):
        for held in ({"a": 1}.get, [1].count, Settings().__eq__, self.setUp):
            with self.assertRaises(unidle.UsageError) as caught:
                self.holding(held)("a")
            self.assertIn("enclosing variable held", str(caught.exception))

    def test_cached_functions_may_hold_others(self):
        def build(factor, version):
            @unidle.cached(self.cache, version)
            def inner(value):
                return value * factor

            return self.holding(inner)

        self.assertEqual([build(2, 1)(3), build(5, 1)(3)], [6, 15])
        self.assertEqual(build(2, 1).key(3), build(2, 1).key(3))
        self.assertNotEqual(build(2, 1).key(3), build(2, 2).key(3))

    def test_the_first_result_is_as_the_others(self):
        distances = self.distances()
        first, second = distances("ACD"), distances("ACD")
        for result in (first, second):
            self.assertFalse(result.flags.writeable)
            self.assertFalse(result.flags.owndata)

    def test_tensors_of_odd_kinds_are_stored_or_refused(self):
        try:
            import torch
        except ImportError:
            self.skipTest("needs torch")
        turned = torch.tensor([1 + 2j, 3 - 1j]).conj()
        for result in (turned, turned.imag, torch.ones(3)._neg_view()):
            answers[:] = [result]
            function = unidle.cached(self.cache, 1, name=f"{result.tolist()}")(answer)
            for _ in range(2):
                self.assertTrue(torch.equal(function(), result))
        for result in (
            torch.ones(2).to(torch.float8_e4m3fn),
            torch.ones(2, dtype=torch.complex32),
            torch.ones(2, device="meta"),
            torch.ones(2).to_sparse(),
        ):
            answers[:] = [[result]]
            function = unidle.cached(self.cache, 1, name=f"{result}")(answer)
            with self.assertRaisesRegex(unidle.UsageError, "Tensor at 0, which cannot be stored"):
                function()
            with self.assertRaisesRegex(unidle.UsageError, f"array a: .* found {result.dtype} of layout"):
                self.cache["x"] = {"a": result}

    def test_results_keep_their_types(self):
        results = [
            None,
            True,
            3,
            -(10**30),
            2.5,
            float("inf"),
            -0.0,
            "text\udcff",
            b"\0bytes",
            b"",
            [1, (2, [3.5])],
            (),
            [],
            {},
            {"a": 1, "b": {"c": None}},
            np.float32(1.5),
            np.int64(7),
        ]
        for result in results:
            answers[:] = [result]
            function = unidle.cached(self.cache, 1, name=repr(result))(answer)
            for _ in range(2):
                found = function()
                self.assertEqual((type(found), repr(found)), (type(result), repr(result)))

    def test_arrays_in_results_have_names(self):
        @unidle.cached(self.cache, 1)
        def features(sequence):
            return {"pair": {"d": np.eye(2), "c": [np.zeros(1), np.ones(1, bool)]}, "pair.d": np.arange(2)}

        for _ in range(2):
            found = features("ACD")
            self.assertEqual(found["pair"]["d"].tolist(), [[1, 0], [0, 1]])
            self.assertEqual(
                (found["pair"]["c"][1].dtype, found["pair.d"].tolist()), (np.dtype(bool), [0, 1])
            )

    def test_names_of_arrays_that_are_taken(self):
        def one(value):
            return np.full(1, value)

        answers[:] = [
            {"array 2": one(1), "a.b": one(2), "a": {"b": one(3)}},
            {"array 3": one(1), "array 2": one(2), "a.b": one(3), "a": {"b": one(4)}},
        ]
        for number, values in enumerate(([1, 2, 3], [1, 2, 3, 4])):
            function = unidle.cached(self.cache, 1, name=f"taken {number}")(answer)
            for found in (function(), function()):
                inner = found.pop("a")["b"].item()
                self.assertEqual([each.item() for each in found.values()] + [inner], values)

    def test_what_cannot_be_stored_is_named(self):
        for result, word in [
            (object(), "object"),
            ({"a": [1, {2}]}, "set at a.1"),
            ({1: 2}, "dict"),
            (np.array([None]), "ndarray"),
            (Settings(), "Settings"),
        ]:
            answers[:] = [result]
            with self.assertRaises(unidle.UsageError) as caught:
                unidle.cached(self.cache, 1, name=word)(answer)()
            self.assertIn(word, str(caught.exception))

    def test_what_it_raises_is_not_kept(self):
        answers[:] = [ValueError("once"), 5]
        function = unidle.cached(self.cache, 1)(answer)
        with self.assertRaisesRegex(ValueError, "once"):
            function()
        self.assertEqual([function(), function()], [5, 5])

    def test_functions_that_cannot_be_cached_are_refused(self):
        async def later():
            return 1

        def bit_by_bit():
            yield 1

        for wrong in (later, bit_by_bit, len, 3):
            with self.assertRaises(unidle.UsageError):
                unidle.cached(self.cache, 1)(wrong)
        with self.assertRaises(unidle.UsageError):
            unidle.cached(self.cache, 1, ignore=("nothing",))(lambda value: value)
        for version in (None, ""):
            with self.assertRaises(unidle.UsageError):
                unidle.cached(self.cache, version)

    def test_a_function_may_call_itself(self):
        @unidle.cached(self.cache, 1)
        def factorial(n):
            return n * factorial(n - 1) if n else 1

        self.assertEqual((factorial(20), factorial(20)), (2432902008176640000,) * 2)
        self.assertEqual(self.cache.statistics()["entries"], 21)

    def test_tensors_are_copies_of_the_caller(self):
        try:
            import torch
        except ImportError:
            self.skipTest("needs torch")

        @unidle.cached(self.cache, 1)
        def noise(size):
            return torch.arange(size, dtype=torch.bfloat16), torch.eye(size).t()

        first, second = noise(4), noise(4)
        second[1].add_(1)  # must be writable
        self.assertTrue(torch.equal(noise(4)[1], first[1]))
        self.assertEqual((first[0].dtype, second[0].tolist()), (torch.bfloat16, [0, 1, 2, 3]))

    def test_where_nothing_can_be_stored_the_result_is_the_same(self):
        shutil.rmtree(self.folder / "cache" / "v1" / "tmp")
        (self.folder / "cache" / "v1" / "tmp").write_text("no folder")
        program = """
            import sys, numpy as np, unidle
            @unidle.cached(sys.argv[1], 1)
            def f(n):
                return {"a": np.arange(n), "b": (n, "x")}
            for _ in range(2):
                print(f(2), f(2)["a"].flags.writeable)
        """
        lines = output(start(script(self.folder, program), self.folder / "cache")).splitlines()
        self.assertEqual(lines, ["{'a': array([0, 1]), 'b': (2, 'x')} False"] * 2)


class LookAheadTest(CachedTest):
    def test_features_of_the_next_batches_are_computed_while_the_program_trains(self):
        @unidle.cached(self.cache, 1)
        def feature(item):
            notes.append(item)
            return np.full(3, item)

        class Features:
            def __len__(self):
                return 64

            def __getitem__(self, item):
                return feature(item)

        loader = unidle.data.Loader(unidle.data.wrap(Features()), 4, shuffle=False, workers=2)
        batches = iter(loader)
        next(batches)
        deadline = time.monotonic() + 60  # the program trains, without a request
        while not set(notes) >= set(range(8)) and time.monotonic() < deadline:
            time.sleep(0.001)
        self.assertGreaterEqual(set(notes), set(range(8)))
        self.assertLess(len(notes), 64)  # limited by the loader's look-ahead
        self.assertEqual(len(list(batches)), 15)
        self.assertEqual(sorted(notes), list(range(64)))


PROGRAM = """
    import sys, unidle
    @unidle.cached(sys.argv[1], 1)
    def f(n):
        with open(sys.argv[2], "a") as log:
            log.write(f"{n}\\n")
        return n * n
    print(sum(f(n) for n in range(50)))
"""


def script(folder, program):
    """A file with that program, with the package on its path."""
    path = Path(tempfile.mkstemp(suffix=".py", dir=folder)[1])
    path.write_text(f"import sys; sys.path.insert(0, {sys.path[0]!r})\n" + textwrap.dedent(program))
    return path


def start(*words):
    command = [sys.executable, *map(str, words)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def output(process):
    out, err = process.communicate()
    if process.returncode != 0:
        raise AssertionError(err)
    return out


class ProcessesTest(CachedTest):
    def test_each_key_is_computed_once_by_all_processes_and_runs(self):
        log, train = self.folder / "log", script(self.folder, PROGRAM)
        for _ in range(2):
            processes = [start(train, self.folder / "cache", log) for _ in range(4)]
            self.assertEqual({output(process) for process in processes}, {"40425\n"})
        self.assertEqual(sorted(log.read_text().split(), key=int), [str(n) for n in range(50)])

    def test_scripts_with_functions_of_the_same_name_do_not_meet(self):
        program = "import unidle\n@unidle.cached(sys.argv[1], 1)\ndef f(n):\n    return n + {}\nprint(f(1))\n"
        scripts = [script(self.folder, program.format(more)) for more in (1, 2)]
        printed = [output(start(each, self.folder / "cache")) for each in scripts]
        self.assertEqual(printed, ["2\n", "3\n"])

    def test_a_spawned_process_shares_what_the_main_program_defines(self):
        spawning = script(
            self.folder,
            """
            import dataclasses, multiprocessing, unidle

            @dataclasses.dataclass
            class Settings:
                cutoff: float = 8.0

            @unidle.cached(sys.argv[1], 1)
            def f(n, settings):
                return n + 1

            def key(_):
                return __name__, f.key(1, Settings())

            if __name__ == "__main__":
                with multiprocessing.get_context("spawn").Pool(1) as pool:
                    (name, there), = pool.map(key, [0])
                print(name, there == f.key(1, Settings()))
            """,
        )
        self.assertEqual(output(start(spawning, self.folder / "cache")), "__mp_main__ True\n")


if __name__ == "__main__":
    unittest.main()
