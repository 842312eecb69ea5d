"""Python loops in the model: by the bytecode of each Python here, and in real runs."""

import ast
import glob
import os
import subprocess
import sys
import textwrap
import time
import unittest

from run_case import HAS_TORCH, PYTHONS, DiagnosedCase

SHIM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "shim")
sys.path.insert(0, SHIM)

from _unidle_shim.facts import python_loops  # noqa: E402
from _unidle_shim.source import code_loops, code_parts  # noqa: E402


def function_of(text):
    """The function that the text defines; its lines count from 1."""
    found = {}
    exec(compile(textwrap.dedent(text).lstrip("\n"), "text.py", "exec"), found)
    return found["f"]


class Loops(unittest.TestCase):
    def around(self, text):
        """The first lines of the loops around the line with "# here", the innermost first."""
        lines = textwrap.dedent(text).lstrip("\n").split("\n")
        here = next(number for number, line in enumerate(lines, 1) if "# here" in line)
        loops, _ = code_loops.loops_of(function_of(text).__code__)
        return [loop.first for loop in loops if here in loop.lines]

    def test_loops_around_a_line_the_innermost_first(self):
        text = """
            def f(x, y):
                for row in range(9):
                    # single numbers
                    for i in range(
                        9
                    ):
                        y[row, i] = x[row].dot(
                            x[i])  # here
                    z = y
                return z
            """
        self.assertEqual(self.around(text), [4, 2])

    def test_all_kinds_of_loops(self):
        for text, first in (
            ("def f(x):\n    while x:\n        x = g(x)  # here\n", 2),
            ("def f(x):\n    for y in x: g(y)  # here\n", 2),
            (
                "def f(x):\n    for (\n        a,\n        b,\n    ) in zip(x, x):\n        g(a)  # here\n",
                None,
            ),
            ("def f(x):\n    for y in x:\n        if y:\n            continue\n        g(y)  # here\n", 2),
            ("def f(x):\n    for y in x:\n        g(y)  # here\n    else:\n        h(x)\n", 2),
        ):
            (found,) = self.around(text)
            self.assertIn(found, (first,) if first else range(2, 6), text)

    def test_what_stands_before_or_after_a_loop_is_not_in_it(self):
        for text in (
            "def f(x):\n    for y in x:\n        g(y)\n    return h(x)  # here\n",
            "def f(x):\n    h(x)  # here\n    for y in x:\n        g(y)\n",
            "def f(x):\n    if x:\n        for y in x:\n            g(y)\n    else:\n        h(x)  # here\n",
            "def f(x):\n    try:\n        g(x)  # here\n    finally:\n        h(x)\n",
            "def f(x):\n    with x:\n        g(x)\n    h(x)  # here\n",
            "def f(x):\n    try:\n        g(x)\n    except E:\n        x = 0\n    h(x)  # here\n",
            "def f(x):\n    for y in x:\n        with y:\n            g(y)\n    h(x)  # here\n    i(x)\n",
            "def f(x):\n    for y in x:\n        try:\n            g(y)\n        except E:\n"
            "            continue\n        i(y)\n    h(x)  # here\n    i(x)\n",
            "def f(x):\n    with x:  # here\n        while True:\n            x = g(x)\n"
            "            if x:\n                return x\n",
            "def f(x):\n    y = x.a(x)  # here\n    while True:\n        y = x.b(y)\n        if y:\n"
            "            break\n",
        ):
            self.assertEqual(self.around(text), [], text)

    def test_names_that_a_loop_reads_and_does_not_call(self):
        text = """
            def f(self, x):
                before = self.outside
                for layer in self.layers:
                    x = layer(x) + self.bias
                for t in range(9):
                    x = self.cell(x)
                return x
            """
        loops, outside = code_loops.loops_of(function_of(text).__code__)
        by_line = {loop.first: loop.names for loop in loops}
        self.assertLessEqual({"layers", "bias"}, by_line[3])
        self.assertNotIn("cell", by_line[5] - {"layers"})
        self.assertIn("outside", outside | by_line[3])

    def test_functions_of_modules_are_called_and_not_read(self):
        text = """
            import math
            import os.path as net
            def f(x, y):
                for i in range(9):
                    x = math.sin(math.pow(x, i)) + math.nothing() + math.both(*y) + math.all(**y)
                    x = math.dot(x[i], dim=1, out=y.out) + math.of(y.last, net.bias)
                    x = net.layers[i](x) + math.fma(math.exp(x), net.parts[i + 1](x), 1.0) + y.mean(dim=1)
            """
        (loop,), _ = code_loops.loops_of(function_of(text).__code__)
        self.assertEqual(loop.names, {"out", "last", "bias", "layers", "parts"})

    def test_methods_that_give_modules_are_read(self):
        text = "def f(x):\n    for y in x.children():\n        z = y.values()\n"
        (loop,), _ = code_loops.loops_of(function_of(text).__code__)
        self.assertEqual(loop.names, {"children"})

    def test_very_long_lines_cost_little(self):
        def cost_s(text, times):
            code = function_of(
                "def f(x):\n    for y in x:\n        g(%s)\n" % ", ".join([text] * times)
            ).__code__
            begin = time.process_time()
            code_loops.loops_of(code)
            return time.process_time() - begin

        for text in ("y.a[0]", "y.a"):
            few, many = cost_s(text, 300), cost_s(text, 3000)
            self.assertLess(many, 100 * max(few, 1e-4), "10 is linear, 100 quadratic")


class Sources(unittest.TestCase):
    """Loops by the bytecode, and by the source of the standard library."""

    def test_lines_in_loops(self):
        lines, wrong = 0, []
        for path in sorted(glob.glob(os.path.join(os.path.dirname(os.__file__), "*.py")))[::4]:
            with open(path, encoding="utf-8") as source:
                text = source.read()
            nodes = functions_of(ast.parse(text))
            for code in code_parts.parts_of(compile(text, path, "exec")):
                node = nodes.get((code.co_name, code.co_firstlineno))
                if node is not None:
                    in_loops = lines_in_loops(node)
                    loops, _ = code_loops.loops_of(code)
                    self.assertLessEqual({loop.first for loop in loops}, in_loops, (path, code.co_name))
                    found = set().union(*(loop.lines for loop in loops))
                    wrong += [(path, line) for line in sorted(found - in_loops)]
                    lines += len({line for _, _, line in code_loops._lines(code)})
        self.assertGreater(lines, 5000)
        self.assertLess(len(wrong), 0.003 * lines, wrong)


def functions_of(tree):
    """(name, first line) -> node."""
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            found[node.name, min(one.lineno for one in [node, *node.decorator_list])] = node
    return found


def lines_in_loops(function):
    """Without those after `else`."""
    lines, ahead = set(), list(ast.iter_child_nodes(function))
    while ahead:
        node = ahead.pop()
        if isinstance(node, (ast.For, ast.While, ast.AsyncFor)):
            lines.update(range(node.lineno, max(one.end_lineno for one in node.body) + 1))
        elif isinstance(node, (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
            lines.update(range(node.lineno, node.end_lineno + 1))
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            ahead.extend(ast.iter_child_nodes(node))
    return lines


class OtherPythons(unittest.TestCase):
    def test_their_bytecode(self):
        for python in PYTHONS[1:]:
            with self.subTest(python):
                command = [python, "-W", "ignore", os.path.abspath(__file__), "Loops", "Sources"]
                result = subprocess.run(
                    command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True
                )
                self.assertEqual(result.returncode, 0, result.stdout)


@unittest.skipUnless(HAS_TORCH, "torch is not installed")
class Stacks(unittest.TestCase):
    """Which loops of a model's forward pass are named."""

    def named(self, body, kind="Module"):
        import torch
        from torch import nn

        given = {"torch": torch, "nn": nn}
        lines = "".join("\n        " + line for line in body)
        text = "class Net(nn.%s):\n    def forward(self, x, h=None):%s\n        return x\n" % (kind, lines)
        exec(compile(text, os.path.abspath("net.py"), "exec"), given)
        net = given["Net"]()
        net.layers = nn.ModuleList([nn.Linear(4, 4), nn.Linear(4, 4)])
        net.parts, net.cell, net.net = [nn.Linear(4, 4)], nn.Linear(4, 4), nn.Sequential(nn.Linear(4, 4))
        code = given["Net"].forward.__code__
        loops = python_loops.PythonLoops()
        loops.stacks = python_loops.stacks_of(net)
        # The innermost line of a loop's body.
        return loops._key_of([(code, 2 + len(body))])[0][0]

    def test_stacks_of_layers_are_not(self):
        for body in (
            ["for layer in self.layers:", "    x = layer(x)"],
            ["for layer in self.layers:", "    h = layer(x)", "    x = x + h"],
            ["for i, layer in enumerate(self.layers):", "    x = layer(", "        x,", "    )"],
            ["for i in range(2):", "    x = self.layers[i](x)"],
            ["i = 0", "while i < len(self.layers):", "    x, i = self.layers[i](x), i + 1"],
            ["layers = self.layers", "for layer in layers:", "    x = layer(x)"],
            ["for part in self.parts:", "    x = part(x)"],
            ["for layer in reversed(self.net):", "    x = layer(x)"],
            ["for layer in self.children():", "    x = layer(x)"],
            ["for name, layer in self.named_children():", "    x = layer(x)"],
        ):
            self.assertIsNone(self.named(body), body)

    def test_containers_that_call_what_they_hold_are_not(self):
        for kind in ("Sequential", "ModuleList", "ModuleDict"):
            self.assertIsNone(self.named(["for layer in self:", "    x = layer(x)"], kind), kind)
        self.assertIsNone(self.named(["for layer in self.values():", "    x = layer(x)"], "ModuleDict"))

    def test_loops_that_call_the_same_modules_in_each_iteration(self):
        import torch

        call = compile(
            "def _call_impl(self): pass", os.path.join("torch", "nn", "modules", "module.py"), "exec"
        )
        given = {"torch": torch}
        exec(call, given)
        for body, called in (
            ("for t in x: h = self.cell(t, h)", "repeated"),
            ("for t in x: h = torch.tanh(self.net(x[t]) + h)", "repeated"),
            ("for name in x: h = getattr(self, name)(h)", None),
            ("for layer in (self.cell, self.net): h = layer(h)", None),
            ("for t in x: h = self.step(t, h)", None),
        ):
            text = "class Net(torch.nn.Module):\n    def forward(self, x, h=None):\n        %s\n" % body
            exec(compile(text, os.path.abspath("net.py"), "exec"), given)
            net = given["Net"]()
            net.cell, net.net = torch.nn.Linear(4, 4), torch.nn.Sequential(torch.nn.Linear(4, 4))
            loops = python_loops.PythonLoops()
            loops.stacks = python_loops.stacks_of(net)
            stack = [(given["_call_impl"].__code__, 1), (given["Net"].forward.__code__, 3)]
            self.assertEqual(loops._key_of(stack)[1], called, body)

    def test_loops_over_steps_and_numbers_are(self):
        for body in (
            ["for t in range(9):", "    h = torch.tanh(self.cell(x[:, t]) + h)"],
            ["for t in range(9):", "    h = self.net(x[:, t])"],
            ["for layer in self.layers:", "    x = layer(x)", "for t in range(9):", "    h = x[t].dot(x[t])"],
        ):
            self.assertTrue(self.named(body), body)

    def looked(self, text, *stacks):
        """The notes of samples of a function of another model; each is a line in f() and whether that calls
        a module."""
        call = compile(
            "def _call_impl(self): pass", os.path.join("torch", "nn", "modules", "module.py"), "exec"
        )
        given = {}
        exec(call, given)
        module = given["_call_impl"].__code__
        exec(compile(textwrap.dedent(text).lstrip("\n"), os.path.abspath("net.py"), "exec"), given)
        loops = python_loops.PythonLoops()
        loops.stacks_of = id(self)
        for number, (line, calls_module) in enumerate(stacks):
            loops.count([(module, 1)] * calls_module + [(given["f"].__code__, line)], True, number, self, 9)
        loops.count([], None, len(stacks), self)
        return {note["place"]: note for _, note in loops.notes()}

    def test_a_loop_elsewhere_that_reads_attributes_is_a_stack_if_it_calls_modules(self):
        text = """
            def f(x, net):
                for layer in net.layers:
                    x = x + x.scale
                    x = layer(x)
                return x
            """
        notes = self.looked(text, (3, False), (4, False), (3, False))
        self.assertEqual([(place, note["in_loop"]) for place, note in notes.items()], [("net.py:2", True)])
        self.assertEqual((notes["net.py:2"]["hits"], notes["net.py:2"]["direct"]), (3, 3))
        notes = self.looked(text, (3, False), (4, True), (3, False))
        self.assertEqual(sum(note["hits"] for note in notes.values()), 3)
        self.assertEqual({note["in_loop"] for note in notes.values()}, {False})

    def test_a_loop_elsewhere_that_reads_nothing_may_call_modules(self):
        notes = self.looked(
            "def f(x, layer):\n    for t in x:\n        x = layer(t)\n", (3, True), (3, False)
        )
        self.assertEqual((notes["net.py:2"]["hits"], notes["net.py:2"]["direct"]), (2, 1))

    def test_samples_count_whether_or_not_the_lock_is_known(self):
        code = function_of("def f(x):\n    for y in x:\n        y = y + 1\n").__code__
        code = code.replace(co_filename=os.path.abspath("net.py"))
        loops = python_loops.PythonLoops()
        loops.stacks_of = id(self)
        for number, held in enumerate((None, True, False, None, True)):
            loops.count([(code, 3)], held, number, self, 1)
        loops.count([], None, 5, self)
        ((_, note),) = loops.notes()
        self.assertEqual([note[name] for name in ("hits", "held", "known", "total")], [5, 2, 3, 5])

    def test_a_helper_is_in_the_loop_of_the_line_that_calls_it(self):
        text = "def scale(x): return x\ndef f(x):\n    x = scale(x)\n    for t in x:\n        x = scale(x)\n"
        given = {}
        exec(compile(text, os.path.abspath("net.py"), "exec"), given)
        scale, f = given["scale"].__code__, given["f"].__code__
        loops = python_loops.PythonLoops()
        found = [loops._key_of([(scale, 1), (f, line)]) for line in (3, 5, 3)]
        self.assertEqual([key[0] for key, _ in found], [None, "net.py:4", None])
        self.assertEqual([called for _, called in found], [None, "direct", None])

    def test_a_loop_that_calls_a_module_is_not_direct(self):
        text = "def forward(x): return x\ndef f(x):\n    for t in x:\n        x = self.layer(x)\n"
        given = {}
        exec(compile(text, os.path.abspath("net.py"), "exec"), given)
        call = compile(
            "def _call_impl(self): pass", os.path.join("torch", "nn", "modules", "module.py"), "exec"
        )
        exec(call, given)
        stack = [(given[name].__code__, line) for name, line in (("forward", 1), ("_call_impl", 1), ("f", 4))]
        self.assertEqual(
            python_loops.PythonLoops()._key_of(stack), (("net.py:3", "net.py:1", "forward"), None)
        )


@unittest.skipUnless(HAS_TORCH, "torch is not installed")
class Runs(DiagnosedCase):
    def test_a_loop_over_single_numbers_is_named(self):
        found = self.diagnosed("python_loop.py")
        self.assertIn("python-in-model", found)
        self.assertIn(found["python-in-model"]["severity"], ("warning", "critical"))
        self.assertRegex(found["python-in-model"]["where"], r"python_loop\.py:(2[7-9]|30)$")

    def test_a_loop_in_a_loss_that_is_no_module_is_named(self):
        found = self.diagnosed("python_loop.py", "loss")
        self.assertIn("python-in-model", found)
        self.assertRegex(found["python-in-model"]["where"], r"python_loop\.py:3[6-9]$")
        note = self.record.notes("operations")[-1]
        self.assertGreater(note["count"], 400 * note["passes"], "those of the loss, about 640, count")
        self.assertLess(note["seconds"], 2e-4 * note["count"])

    def test_operations_on_whole_tensors_are_not(self):
        found = self.diagnosed("python_loop.py", "whole")
        self.assertNotIn("python-in-model", found)
        self.assertNotIn("python-in-model", [rule["id"] for rule in self.said["abstained"]])


if __name__ == "__main__":
    unittest.main()
