"""What options a program takes, as it parses them; it cannot tell the difference."""

import os
import sys
import unittest

import test_run

HEAD = """
import argparse, sys
parser = argparse.ArgumentParser()
parser.add_argument("-b", "--batch-size", type=int, default=4)
parser.add_argument("--lr", type=float, default=1e-5)
parser.add_argument("--name", default="x")
parser.add_argument("--flag", action="store_true")
parser.add_argument("--sizes", type=int, nargs="+", default=[1])
"""


class OptionsTest(unittest.TestCase):
    setUp, bare, observed, same_as_bare = (test_run.RunTest.setUp, test_run.RunTest.bare, test_run.RunTest.observed,
                                           test_run.RunTest.same_as_bare)

    def options(self, rest, *words):
        with open(os.path.join(self.folder, "train.py"), "w") as out:
            out.write(HEAD + rest)
        self.same_as_bare(sys.executable, "train.py", *words)
        return self.record.notes("options")

    def test_numbers_are_told_with_their_values(self):
        note, = self.options("print(parser.parse_args())", "-b", "8", "--flag")
        self.assertEqual((note["program"], note["words"], note["options"]),
                         ("train.py", ["-b", "8", "--flag"], [["--batch-size", "8"], ["--lr", "1e-05"]]))

    def test_only_once(self):
        self.assertEqual(len(self.options("parser.parse_args(); parser.parse_known_args(sys.argv[1:])")), 1)

    def test_not_where_words_behind_the_last_one_mean_something_else(self):
        for rest in ("parser.add_argument('rest', nargs='*'); print(parser.parse_args())",
                     "parser.add_subparsers().add_parser('fit'); print(parser.parse_args())",
                     "print(parser.parse_args(['--lr', '1']))"):
            with self.subTest(rest):
                self.assertEqual(self.options(rest, *(["fit"] if "fit" in rest else [])), [])

    def test_wrong_words_end_it_as_ever(self):
        self.options("parser.parse_args()", "--unknown")
        self.options("parser.parse_args()", "--help")


if __name__ == "__main__":
    unittest.main()
