"""unidle.cached: a function's code is part of its key, and one name identifies one function."""

import collections
import dataclasses
import enum
import functools
import os
import shutil
import subprocess
import sys
import tempfile
import textwrap
import typing
import unittest
import warnings
from pathlib import Path

import package

import unidle

np = package.needs("numpy")


class CodeTest(unittest.TestCase):
    def setUp(self):
        self.folder = Path(tempfile.mkdtemp(prefix="unidle-cached-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.cache = unidle.Cache(self.folder / "cache")
        self.cached = unidle.cached(self.cache, 1)

    def warned(self, call):
        """(the call's result, the warnings)."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            result = call()
        return result, [str(one.message) for one in caught if "unidle.cached" in str(one.message)]

    def notebook(self, *cells):
        """The value of `out` after each cell, run one after another in one module."""
        names = {"__name__": "__main__", "unidle": unidle, "np": np, "cached": self.cached}
        names["functools"], out = functools, []
        for cell in cells:
            exec(textwrap.dedent(cell), names)
            out.append(names["out"])
        return out


class RedefinedTest(CodeTest):
    def test_a_cell_that_is_run_again_with_other_code(self):
        cell = "@cached\ndef f(x): return x * {}\nout = f(1)"
        cells = [cell.format(by) for by in (10, 77, 10)]
        found, said = self.warned(lambda: self.notebook(*cells))
        self.assertEqual(found, [10, 77, 10])
        self.assertEqual(len(said), 2)
        self.assertIn("f was cached before in this process with different code", said[0])

    def test_a_cell_that_is_run_again_as_it_was(self):
        cell = "@cached\ndef f(x): return x * 10\nout = f.key(1)"
        found, said = self.warned(lambda: self.notebook(cell, "\n\n" + cell))
        self.assertEqual((found[0], said), (found[1], []))

    def test_what_it_reads_of_its_module_counts(self):
        for before, after, body in [
            ("S = 2", "S = 3", "x * S"),
            ("def h(x): return x + 1", "def h(x): return x + 2", "h(x)"),
            ("K = 1\ndef h(x): return x + K", "K = 2", "h(x)"),
            ("def k(x): return x\ndef h(x): return k(x)", "def k(x): return -x", "h(x)"),
            ("h = lambda x: x", "h = lambda x: -x", "h(x)"),
            ("def a(k): return lambda x: x * k\nh = a(1)", "h = a(2)", "h(x)"),
            ("h = functools.partial(pow, 2)", "h = functools.partial(pow, 3)", "h(x)"),
            (
                "@functools.lru_cache(None)\ndef h(x): return x",
                "@functools.lru_cache(None)\ndef h(x): return -x",
                "h(x)",
            ),
            ("C = {'s': 1, 'file': open('/dev/null')}", "C['s'] = 2", "x * C['s']"),
            ("L = [1, 2]", "L[0] = 3", "x * L[0]"),
            ("L = [1] * 1000", "L = [2] * 1000", "x * L[0]"),
            ("M = np.ones(3)", "M[0] = 5", "x * M.sum()"),
            ("M = np.ones(10**5)", "M = np.zeros(10**5)", "x * M.sum()"),
            ("class C:\n  v = 1", "C.v = 2", "x * C.v"),
            (
                "class C:\n  def m(self): return 1",
                "class C:\n  def m(self): return 2",
                "x * C().m()",
            ),
            ("import types\nN = types.SimpleNamespace(v=1, m=open)", "N.v = 2", "x * N.v"),
            ("class M: pass\nM = M()\nM.v, M.f = 1, open", "M.v = 2", "x * M.v"),
            (
                "class M:\n  def f(self): return 1\nh = M\nM = M()",
                "h.f = lambda self: 2",
                "x * M.f()",
            ),
            (
                "class M:\n  @property\n  def v(self): return 1\nM = M()",
                "class M:\n  @property\n  def v(self): return 2\nM = M()",
                "x * M.v",
            ),
        ]:
            define = f"@cached\ndef f(x): return {body}\nout = f(7)"
            found, _ = self.warned(lambda: self.notebook(before + "\n" + define, after + "\nout = f(7)"))
            right = self.notebook(*(f"{text}\ncached=lambda f: f\n{define}" for text in (before, after)))
            self.assertEqual(found, right, (before, after))
            self.assertNotEqual(*right)

    def test_what_it_changes_itself_does_not_count(self):
        found, said = self.warned(
            lambda: self.notebook(
                """
                calls, by_name, number = [], {"n": 0}, 0
                @cached
                def f(x):
                    global number
                    number += 1
                    by_name["n"] += 1
                    by_name["all"] = by_name["n"]
                    calls.append(x)
                    return x
                f(1), f(1), f(1)
                out = number, by_name["n"], len(calls)
                """
            )
        )
        self.assertEqual((found, said), ([(1, 1, 1)], []))

    def test_what_cannot_be_keyed_in_a_module_is_what_version_stands_for(self):
        cells = (
            "class M:\n  __slots__ = ('v',)\nm = M()\nm.v = 1\n@cached\ndef f(x): return m.v\nout = f(1)",
            "m.v = 2\nout = f(1)",
        )
        self.assertEqual(self.notebook(*cells), [1, 1])

    def test_changes_of_what_the_key_is_made_of_are_told(self):
        counts, number = [], 0

        @self.cached
        def counting(x):
            nonlocal number
            number += 1
            return x

        @self.cached
        def adding(x):
            counts.append(x)
            return x

        @self.cached
        def in_place(array):
            array += 1
            return array.sum()

        for call, word in [
            (lambda: counting(1), "enclosing variable number"),
            (lambda: adding(1), "enclosing variable counts"),
            (lambda: in_place(np.ones(3)), "argument array"),
        ]:
            _, said = self.warned(call)
            self.assertEqual(len(said), 1)
            self.assertIn(f"changes {word} while it runs", said[0])


class NameTest(CodeTest):
    def test_a_lambda_needs_a_name(self):
        with self.assertRaisesRegex(unidle.UsageError, "a lambda has no name of its own.*name="):
            self.cached(lambda x: x + 1)
        named = unidle.cached(self.cache, 1, name="step")
        found, said = self.warned(lambda: [named(lambda x: x + 1)(5), named(lambda x: x * 100)(5)])
        self.assertEqual(found, [6, 500])
        self.assertIn("step was cached before", said[0])

    def test_what_is_no_function_is_refused_with_what_to_do(self):
        class Callable:
            def __call__(self, x):
                return x

            def method(self, x):
                return x

        for wrong, word in [
            (functools.partial(pow, 2), "partial"),
            (Callable(), "a function that calls it"),
            (Callable().method, "bound method"),
            (functools.lru_cache()(pow), "a function that calls it"),
            (staticmethod(pow), "found a staticmethod; put cached below it"),
        ]:
            with self.assertRaisesRegex(unidle.UsageError, word):
                self.cached(wrong)

    def test_functions_of_one_name(self):
        def made(code, by):
            if code == "times":

                @self.cached
                def f(x):
                    return x * by
            else:

                @self.cached
                def f(x):
                    return x + by

            return f

        found, said = self.warned(lambda: [made(*each)(3) for each in (("times", 2), ("times", 5))])
        self.assertEqual((found, said), ([6, 15], []))
        found, said = self.warned(lambda: [made(*each)(3) for each in (("plus", 2), ("times", 2))])
        self.assertEqual((found, len(said)), ([5, 6], 2))

    def test_decorators_of_the_program(self):
        def scaled(by):
            def decorate(function):
                @functools.wraps(function)
                def inner(*args):
                    return by * function(*args)

                return inner

            return decorate

        def plain(function):
            @functools.wraps(function)
            def inner(*args):
                return function(*args)

            return inner

        found = []
        for decorator in (scaled(2), scaled(3), plain):

            @self.cached
            @decorator
            def f(x):
                return x + 1

            found.append(self.warned(lambda: f(1))[0])
        self.assertEqual(found, [4, 6, 2])
        for more in (1, 2):
            name = {"more": more}
            exec("def g(x): return x + %d" % more, name)
            self.assertEqual(self.warned(lambda: self.cached(plain(name["g"]))(1))[0], 1 + more)

    def test_decorators_of_torch(self):
        try:
            import torch
        except ImportError:
            self.skipTest("needs torch")
        found = []
        for dtype in (torch.bfloat16, torch.float16):

            @self.cached
            @torch.autocast("cpu", dtype=dtype)
            def product(x):
                return str((x @ x).dtype)

            found.append(self.warned(lambda: product(torch.ones(2, 2)))[0])
        self.assertEqual(found, ["torch.bfloat16", "torch.float16"])
        for more in (1, 2):

            @self.cached
            @torch.no_grad()
            def embedded(x):
                return x + more

            self.assertEqual(embedded(torch.ones(1)).tolist(), [1.0 + more])

    def test_a_partial_around_it_counts_by_what_it_holds(self):
        def made(held):
            @self.cached
            def f(x):
                return held(x)

            return f

        self.assertEqual([made(functools.partial(pow, by))(2) for by in (2, 3, 2)], [4, 9, 4])
        with self.assertRaisesRegex(unidle.UsageError, r"enclosing variable held\.args\[0\]"):
            made(functools.partial(pow, object()))(2)


class ClassTest(CodeTest):
    """Instances of two classes with one name."""

    def check(self, *calls):
        for make, ask, expected in calls:
            function = unidle.cached(self.cache, 1, name=f"{expected}")(ask)
            self.assertEqual([function(one) for one in make], expected)

    def test_named_tuples(self):
        def typed(sign):
            class Pair(typing.NamedTuple):
                x: int
                y: int

                def sum(self):
                    return self.x + sign * self.y

            return Pair

        one, other = collections.namedtuple("Pair", "x y"), collections.namedtuple("Pair", "y x")
        self.check(
            ([one(1, 2), other(1, 2)], lambda pair: pair.x, [1, 2]),
            ([typed(1)(3, 4), typed(-1)(3, 4)], lambda pair: pair.sum(), [7, -1]),
        )

    def test_data_classes_and_enums(self):
        def settings(by):
            @dataclasses.dataclass
            class Settings:
                x: int = 3

                def value(self):
                    return self.x * by

            return Settings()

        self.check(
            ([settings(1), settings(2)], lambda one: one.value(), [3, 6]),
            ([enum.Enum("Kind", {"A": value}).A for value in (1, 2)], lambda one: one.value, [1, 2]),
        )


class ResultsTest(CodeTest):
    def test_texts_and_dates_of_numpy(self):
        results = [
            np.array(["a", "ü€"]),
            np.array([["a"], ["bc"]], ">U2"),
            np.array([b"x", b"yy"]),
            np.array(["2026-01-01", "NaT"], "M8[D]"),
            np.array([[1, 2]], "m8[s]"),
            np.array([], "U3"),
            np.zeros((2, 0), "S2"),
            np.array("abc"),
            np.str_("q"),
            np.bytes_(b"q"),
            np.datetime64("2026"),
        ]

        @self.cached
        def result(number):
            return {"names": [results[number]]}

        for number, right in enumerate(results):
            for _ in range(2):
                found = result(number)["names"][0]
                self.assertEqual(
                    (type(found), found.dtype, found.shape), (type(right), right.dtype, right.shape)
                )
                self.assertEqual(found.tobytes(), right.tobytes())
            if isinstance(right, np.ndarray):
                self.assertFalse(found.flags.writeable)

    def test_what_cannot_be_stored_is_named_with_its_type(self):
        @self.cached
        def f():
            return [np.array([None])]

        with self.assertRaisesRegex(unidle.UsageError, "a numpy.ndarray of object at 0, .* texts or dates"):
            f()


class ProcessesTest(CodeTest):
    def ran(self, path, **more):
        command = [sys.executable, str(path), str(self.folder / "cache")]
        done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **more})
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def write(self, path, text):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"import sys; sys.path.insert(0, {sys.path[0]!r})\n" + textwrap.dedent(text))
        return path

    def test_the_key_is_the_same_in_every_process(self):
        program = self.write(
            self.folder / "train.py",
            """
            import enum, unidle, numpy as np
            class Kind(enum.Enum):
                A = "a"
            WORDS, SET, TABLE = ["a", "b"], {"x", "y", "z", "w"}, {"p": {"q", "r", "s"}}
            class Helper:
                def run(self, x): return x if x in {"k", "l", "m", "n"} else SET
            def helper(x): return Helper().run(x), TABLE["p"], Kind.A
            @unidle.cached(sys.argv[1], 1)
            def f(x): return str(helper(x)), WORDS, np.linalg.norm
            print(f.key(1).hex())
            """,
        )
        keys = {self.ran(program, PYTHONHASHSEED=seed) for seed in ("1", "2", "3")}
        self.assertEqual(len(keys), 1)

    def test_two_modules_of_one_name(self):
        module = "import unidle\n@unidle.cached(sys.argv[1], 1)\ndef f(x): return x + {}\n"
        printed = []
        for more in (1, 2):
            folder = self.folder / str(more)
            self.write(folder / "features.py", module.format(more))
            printed.append(self.ran(self.write(folder / "main.py", "import features\nprint(features.f(1))")))
        self.assertEqual(printed, ["2\n", "3\n"])

    def test_a_helper_in_another_module_of_the_program(self):
        helper, main = self.folder / "helpers.py", self.folder / "main.py"
        for text in ("helpers.scale(x)", "scale(x)", "helpers.Scale.by * x"):
            self.write(
                main,
                f"""
                import helpers, unidle
                from helpers import scale
                @unidle.cached(sys.argv[1], 1)
                def f(x): return {text}
                print(f(1))
                """,
            )
            for by in (2, 3):
                self.write(helper, f"def scale(x): return {by} * x\nclass Scale:\n    by = {by}\n")
                self.assertEqual(self.ran(main, PYTHONDONTWRITEBYTECODE="1"), f"{by}\n", text)


if __name__ == "__main__":
    unittest.main()
