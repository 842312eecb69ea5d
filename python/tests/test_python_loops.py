"""Python loops in the forward pass: by the source, and in real runs."""

import os
import sys
import tempfile
import textwrap
import unittest

from run_case import HAS_TORCH, DiagnosedCase

SHIM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "shim")
sys.path.insert(0, SHIM)

from _unidle_shim.facts import python_loops  # noqa: E402


class Loops(unittest.TestCase):
    def loops(self, text):
        """Those around the line with "# here" in a function that begins at the first line."""
        text = textwrap.dedent(text).lstrip("\n")
        with tempfile.NamedTemporaryFile("w", suffix=".py") as source:
            source.write(text)
            source.flush()
            lines = text.split("\n")
            here = next(number for number, line in enumerate(lines, 1) if "# here" in line)
            return list(python_loops.Source(source.name).loops(here, 1))

    def test_loops_around_a_line_the_innermost_first(self):
        found = self.loops(
            """
            def forward(self, x):
                for row in range(9):

                    # single numbers
                    for i in range(9):
                        y[row, i] = x[row].dot(
                            x[i])  # here
                    z = y
                return z
            """
        )
        self.assertEqual(found, [(5, 7), (2, 8)])

    def test_a_header_and_a_comprehension_are_loops(self):
        self.assertEqual(self.loops("def f(x):\n    while x:  # here\n        x = g(x)\n"), [(2, 3)])
        self.assertEqual(self.loops("def f(x):\n    return [g(y) for y in x]  # here\n"), [(2, 2)])

    def test_what_stands_before_or_after_a_loop_is_not_in_it(self):
        for text in (
            "def f(x):\n    for y in x:\n        g(y)\n    return h(x)  # here\n",
            "def f(x):\n    h(x)  # here\n    for y in x:\n        g(y)\n",
            "def f(x):\n    if x:\n        for y in x:\n            g(y)\n    else:\n        h(x)  # here\n",
        ):
            self.assertEqual(self.loops(text), [], text)

    def test_a_loop_around_the_function_is_another_functions(self):
        text = "for y in range(9):\n    def f():\n        return y  # here\n"
        with tempfile.NamedTemporaryFile("w", suffix=".py") as source:
            source.write(text)
            source.flush()
            self.assertEqual(list(python_loops.Source(source.name).loops(3, 2)), [])

    def test_a_stack_of_layers_is_no_loop_over_numbers(self):
        for body in (
            "for layer in self.layers:\n        x = layer(x)  # here\n",
            "for i, (norm, layer) in enumerate(pairs):\n        x = x + layer(norm(x))  # here\n",
            "for i in range(3):\n        x = self.layers[i](x, mask)  # here\n",
            "for i in range(3):\n        x, state = self.layers[i](x, state)  # here\n",
        ):
            self.assertEqual(self.loops("def f(x):\n    " + body), [], body)
        for body in (
            "for i in range(3):\n        h = self.cell(x[:, i], h)  # here\n",
            "for table in tables:\n        found.append(table(x))  # here\n",
        ):
            self.assertEqual(len(self.loops("def f(x):\n    " + body)), 1, body)

    def test_a_file_that_is_gone(self):
        self.assertEqual(list(python_loops.Source("/nowhere.py").loops(3, 1)), [])


@unittest.skipUnless(HAS_TORCH, "torch is not installed")
class Runs(DiagnosedCase):
    def test_a_loop_over_single_numbers_is_named(self):
        found = self.diagnosed("python_loop.py")
        self.assertIn("python-in-model", found)
        self.assertEqual(found["python-in-model"]["severity"], "critical")
        self.assertRegex(found["python-in-model"]["where"], r"python_loop\.py:2[6-9]$")

    def test_operations_on_whole_tensors_are_not(self):
        found = self.diagnosed("python_loop.py", "whole")
        self.assertNotIn("python-in-model", found)
        self.assertNotIn("python-in-model", [rule["id"] for rule in self.said["abstained"]])


if __name__ == "__main__":
    unittest.main()
