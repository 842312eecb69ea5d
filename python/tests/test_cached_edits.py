"""unidle.cached: what a function reads of classes, objects and imports is a part of its key."""

import argparse
import dataclasses
import datetime
import decimal
import pathlib
import re
import sys
import textwrap
import types
import typing
import unittest
import zoneinfo
from unittest import mock

import test_cached_code

import unidle

HOLDER = "class M:\n  def __init__(self): self.k = 1"
# The program, what is edited in it, and the body of the cached function of x.
EDITS = [
    ("class M:\n  K = 1\n  def go(self): return self.K", "K = 1", "K = 2", "M().go()"),
    ("class M:\n  def go(self, k=1): return k", "k=1", "k=2", "M().go()"),
    ("class M:\n  def go(self, *, k=1): return k", "k=1", "k=2", "M().go()"),
    ("class M:\n  T = {'a': 1}\n  def go(self): return self.T['a']", "1", "2", "M().go()"),
    ("class M:\n  class N:\n    def go(self): return 1", "1", "2", "M.N().go()"),
    (
        "class M:\n  @staticmethod\n  def a(): return 1\n  @classmethod\n  def b(cls): return cls.a()",
        "1",
        "2",
        "M.b()",
    ),
    ("class M:\n  @functools.cached_property\n  def k(self): return 1", "1", "2", "M().k"),
    (
        "class M:\n  def a(self, k): return k\n  k = functools.partialmethod(a, 1)",
        "1",
        "2",
        "M().k()",
    ),
    (
        "import contextlib\nclass M:\n  @contextlib.contextmanager\n  def go(self): yield 1",
        "1",
        "2",
        "M().go().__enter__()",
    ),
    (
        "class M:\n  def __init__(self): self.k = 1\n  def go(self): return self.k\nm = M()",
        "1",
        "2",
        "m.go()",
    ),
    (
        "class M:\n  def __init__(self): self.k = 1\n  def __call__(self): return self.k\nm = M()",
        "1",
        "2",
        "m()",
    ),
    ("class M:\n  def __call__(self): return 1\nm = M()", "1", "2", "m()"),
    ("class M:\n  k = 1\ndef h(c): return c.k", "1", "2", "h(M)"),
    ("class M:\n  k = 1", "1", "2", "getattr(M, 'k')"),
    ("class M:\n  def __init__(self): self.k = 1\nm = M()\ndef h(c): return c.k", "1", "2", "h(m)"),
    ("class A:\n  k = 1\nclass B:\n  k = 2\nclass M(A): pass", "M(A)", "M(B)", "M().k"),
    ("import dataclasses\n@dataclasses.dataclass\nclass M:\n  k: int = 1", "1", "2", "M().k"),
    (
        "import dataclasses\n@dataclasses.dataclass\n"
        "class M:\n  k: list = dataclasses.field(default_factory=lambda: [1])",
        "1",
        "2",
        "M().k[0]",
    ),
    ("import typing\nclass M(typing.NamedTuple):\n  k: int = 1", "1", "2", "M().k"),
    ("import types\nn = types.SimpleNamespace(k=1)\ndef h(c): return c.k", "1", "2", "h(n)"),
    ("import argparse\nn = argparse.Namespace(k=1)\ndef h(c): return c.k", "1", "2", "h(n)"),
    ("import re\np = re.compile('1')", "'1'", "'7'", "bool(p.match('7'))"),
    (
        "@functools.singledispatch\ndef h(x): return 0\n@h.register\ndef _(x: int): return 1",
        "return 1",
        "return 2",
        "h(x)",
    ),
    ("class T(type):\n  K = 1\nclass M(metaclass=T): pass", "1", "2", "M.K"),
    ("class M:\n  def __init__(self, f): self.f = f\n@M\ndef h(): return 1", "1", "2", "h.f()"),
    (
        "class M:\n  def __init__(self, f): self.f = f\n  def __call__(self): return self.f()\n"
        "@M\ndef h(): return 1",
        "1",
        "2",
        "h()",
    ),
    (f"{HOLDER}\n  def go(self): return self.k\nms = [M()]", "1", "2", "[m.go() for m in ms]"),
    (f"{HOLDER}\n  def go(self): return self.k\nms = {{'a': M()}}", "1", "2", "[ms[k].go() for k in ms]"),
    (f"{HOLDER}\n  def go(self): return self.k\ng = M().go", "1", "2", "g()"),
    ("import operator\ng = operator.itemgetter(0)", "0", "1", "g([5, 6])"),
    ("def h(x): return 1\ng = np.vectorize(h)", "1", "2", "int(g(x))"),
    ("import collections\nd = collections.deque([1])", "1", "2", "d[0]"),
    ("def given(M):\n  return M\nclass M:\n  def go(self): return 1", "1", "2", "M().go()"),
]


class EditTest(test_cached_code.CodeTest):
    def test_an_edit_is_seen_wherever_the_function_uses_it(self):
        for program, old, new, body in EDITS:
            define = f"@cached\ndef f(x): return {body}\nout = f(7)"
            cells = [f"{text}\n{define}" for text in (program, program.replace(old, new), program)]
            right = self.notebook(*("cached = lambda f: f\n" + cell for cell in cells))
            found, _ = self.warned(lambda: self.notebook(*cells))
            self.assertEqual(found, right, program)
            self.assertNotEqual(right[0], right[1], program)

    def test_a_class_of_the_function_around_it_counts_by_what_it_does(self):
        program = (
            "class M:\n  def go(self): return {}\ndef make(M):\n  @cached\n  def f(x): return M().go()\n"
        )
        cells = [program.format(value) + "  return f\nout = make(M)(7)" for value in (1, 2, 1)]
        found, _ = self.warned(lambda: self.notebook(*cells))
        self.assertEqual(found, [1, 2, 1])

    def test_an_import_within_the_function(self):
        for body in (
            "from helpers_edited import h\n  return h(x)",
            "import helpers_edited\n  return helpers_edited.h(x)",
            "import helpers_edited as other\n  return other.h(x)",
            "from helpers_edited import C as D\n  return D().h(x)",
        ):
            found = []
            for value in (1, 2, 1):
                for name, text in (
                    ("deeper_edited", f"K = {value}"),
                    (
                        "helpers_edited",
                        "import deeper_edited\ndef h(x): return x + deeper_edited.K\n"
                        "class C:\n  def h(self, x): return h(x)",
                    ),
                ):
                    (self.folder / f"{name}.py").write_text(text)
                places = mock.patch.object(sys, "path", [str(self.folder), *sys.path])
                with places, mock.patch.dict(sys.modules), mock.patch("sys.dont_write_bytecode", True):
                    cell = f"@cached\ndef f(x):\n  {body}\nout = f.key(7), f(7), f.key(7)"
                    (first, result, again), _ = self.warned(lambda: self.notebook(cell)[0])
                self.assertEqual(first, again)  # whether or not the module is loaded
                found.append(result)
            self.assertEqual(found, [8, 9, 8], body)

    def test_an_import_that_fails_is_the_functions_matter(self):
        cell = """
            @cached
            def f(x):
                try:
                    from missing_edited import h
                except ImportError:
                    h = abs
                import json.decoder as j
                return h(x), j.JSONDecodeError.__name__
            out = f(-7)
        """
        self.assertEqual(self.notebook(cell), [(7, "JSONDecodeError")])

    def test_a_long_chain_of_objects(self):
        program = """
            class M:
                def __init__(self, behind): self.behind = behind
            m = None
            for _ in range(3000): m = M(m)
            def h(one): return one.behind is not None
            @cached
            def f(x): return h(m)
            out = f(7)
        """
        self.assertEqual(self.notebook(program), [True])

    def test_what_methods_change_does_not_count(self):
        program = """
            class M:
                calls, seen, table = 0, [], None
                def __init__(self):
                    self.n, self.k, self.held = 0, 2, []
                    self.held.append(self.held)  # without end
                def go(self, x):
                    M.calls += 1
                    self.n += 1
                    self.seen.append(x)
                    self.load()
                    return x * self.k
                @classmethod
                def load(cls): cls.table = {1: 2}
            m = M()
            @cached
            def f(x): return m.go(x) + M().go(x)
            out = f(3), f(3), M.calls
        """
        found, said = self.warned(lambda: self.notebook(program))
        self.assertEqual((found, said), ([(12, 12, 2)], []))


@dataclasses.dataclass
class Plain:
    x: int


class Extended(Plain):
    def __init__(self, x, y):
        super().__init__(x)
        self.y = y


class Pair(typing.NamedTuple("Pair", [("x", int)])):
    pass


class Marked(datetime.date):
    pass


class Exact(decimal.Decimal):
    __slots__ = ("mark",)


class Place(type(pathlib.Path())):
    __slots__ = ("mark",)


class Split:
    def __init__(self, part):
        self.part = part

    def __fspath__(self):
        return "/data"


def marked(value, mark):
    value.mark = mark
    return value


class ArgumentTest(test_cached_code.CodeTest):
    def test_attributes_besides_the_fields_count(self):
        f = self.cached(lambda_of_x)
        moment, names = datetime.datetime(2026, 1, 1), {"Europe/Paris", "Africa/Algiers"}
        known = names & zoneinfo.available_timezones()  # none without a data base of them
        zones = [moment.replace(tzinfo=zoneinfo.ZoneInfo(name)) for name in known]
        for one, other in (
            (Extended(1, 2), Extended(1, 3)),
            (Plain(1), marked(Plain(1), 2)),
            (marked(Marked(2026, 1, 1), 1), marked(Marked(2026, 1, 1), 2)),
            (marked(Exact(1), 1), marked(Exact(1), 2)),
            (marked(Place("/data"), 1), marked(Place("/data"), 2)),
            (Split("train"), Split("test")),
            (types.SimpleNamespace(x=1), types.SimpleNamespace(x=2)),
            (argparse.Namespace(x=1), argparse.Namespace(x=2)),
            (re.compile("a"), re.compile("a", re.IGNORECASE)),
            zones if len(zones) == 2 else (1, 2),
        ):
            self.assertNotEqual(f.key(one), f.key(other), one)
            self.assertEqual(f.key(one), f.key(one))
        with self.assertRaisesRegex(unidle.UsageError, "a value of type .*Pair cannot be keyed"):
            f.key(marked(Pair(1), 2))

    def test_a_value_counts_by_its_class_as_it_is_now(self):
        cells = (
            """
            import dataclasses
            def h(k): return k + 1
            @dataclasses.dataclass
            class P:
                k: int
                W = 1
                def go(self): return h(self.k) * self.W
                @cached
                def f(self): return self.go()
            out = P(3).f()
            """,
            "P.W = 2\nout = P(3).f()",
            "def h(k): return k\nout = P(3).f()",
        )
        self.assertEqual(self.warned(lambda: self.notebook(*map(textwrap.dedent, cells)))[0], [4, 8, 6])

    def test_a_value_so_deep_that_it_cannot_be_keyed(self):
        deep = []
        for _ in range(5000):
            deep = [deep]
        with self.assertRaisesRegex(unidle.UsageError, "argument x: a value so deep cannot be keyed"):
            self.cached(lambda_of_x).key(deep)


def lambda_of_x(x):
    return 0


if __name__ == "__main__":
    unittest.main()
