"""The options of a program, from its argument parser; the program does not notice."""

import os
import sys
import unittest

import run_case

HEAD = """
import argparse, sys
parser = argparse.ArgumentParser()
parser.add_argument("-b", "--batch-size", type=int, default=4)
parser.add_argument("--lr", type=float, default=1e-5)
parser.add_argument("--name", default="x")
parser.add_argument("--flag", action="store_true")
parser.add_argument("--sizes", type=int, nargs="+", default=[1])
"""


class OptionsTest(run_case.RunCase):
    def options(self, rest, *words):
        with open(os.path.join(self.folder, "train.py"), "w") as out:
            out.write(HEAD + rest)
        self.same_as_bare(sys.executable, "train.py", *words)
        return self.record.notes("options")

    def test_numbers_are_told_with_their_values(self):
        (note,) = self.options("print(parser.parse_args())", "-b", "8", "--flag")
        self.assertEqual(
            (note["program"], note["words"], note["options"]),
            ("train.py", ["-b", "8", "--flag"], [["--batch-size", "8"], ["--lr", "1e-05"]]),
        )

    def test_switches_that_are_off_are_told(self):
        more = (
            "parser.add_argument('--bf16', type=bool, nargs='?', const=True, default=False)\n"
            "parser.add_argument('--no-pin', dest='pin', action='store_false')\n"
            "parser.add_argument('--on', action='store_true', default=True)\n"
            "parser.add_argument('-s', action='store_true')\n"
        )
        (note,) = self.options(more + "print(parser.parse_args())")
        self.assertEqual(note["switches"], ["--flag", "--bf16"])
        (note,) = self.options(more + "print(parser.parse_args())", "--flag")
        self.assertEqual(note["switches"], ["--bf16"])

    def test_only_once(self):
        self.assertEqual(len(self.options("parser.parse_args(); parser.parse_known_args(sys.argv[1:])")), 1)

    def test_not_where_words_behind_the_last_one_mean_something_else(self):
        for rest in (
            "parser.add_argument('rest', nargs='*'); print(parser.parse_args())",
            "parser.add_subparsers().add_parser('fit'); print(parser.parse_args())",
            "print(parser.parse_args(['--lr', '1']))",
        ):
            with self.subTest(rest):
                self.assertEqual(self.options(rest, *(["fit"] if "fit" in rest else [])), [])

    def arguments(self, rest, *words):
        if not run_case.HAS_TORCH:
            self.skipTest("there is no torch")
        train = (
            "\nimport torch\nm = torch.nn.Linear(1, 1)\n"
            "for _ in range(8): m(torch.ones(1, 1)).sum().backward()\n"
        )
        self.options(rest + train, *words)
        notes = self.record.notes("arguments")
        return (
            {
                name: (each["option"], each["value"], each["changed"])
                for each in notes[-1]["arguments"]
                for name in each["names"]
            }
            if notes
            else {}
        )

    def test_what_was_parsed_is_told_whatever_said_it(self):
        for words in (
            ("-b", "16"),
            ("-b16",),
            ("--batch", "16"),
            ("--batch-size=16",),
            ("-b", "4", "--batch-size", "16"),
        ):
            with self.subTest(words):
                told = self.arguments("args = parser.parse_args()", *words)
                self.assertEqual(told["batch_size"], ("--batch-size", "16", False))
                self.assertEqual(told["b"], told["batch_size"])
                self.assertEqual(told["flag"][1], "false")

    def test_texts_are_told_only_where_they_are_words_for_settings(self):
        told = self.arguments(
            "parser.add_argument('--amp', choices=['a1', 'b2'])\nargs = parser.parse_args()",
            "--name",
            "secret",
            "--amp",
            "b2",
        )
        self.assertEqual((told["name"][1], told["amp"][1], told["sizes"][1]), (None, "b2", None))

    def test_what_the_program_changes_afterwards(self):
        told = self.arguments("args = parser.parse_args(); args.batch_size //= 2", "-b", "16")
        self.assertEqual((told["batch_size"], told["lr"][2]), (("--batch-size", "16", True), False))

    def test_defaults_from_elsewhere_and_parsers_in_steps(self):
        told = self.arguments(
            "first = argparse.ArgumentParser(add_help=False); first.add_argument('--config')\n"
            "_, rest = first.parse_known_args(); parser.set_defaults(batch_size=32)\n"
            "args = parser.parse_args(rest)",
            "--config",
            "x.yaml",
        )
        self.assertEqual(told["batch_size"], ("--batch-size", "32", False))

    def test_words_of_another_command_are_none(self):
        self.assertEqual(self.arguments("args = parser.parse_args(['--lr', '1'])", "--x"), {})
        self.assertEqual(self.arguments("args = parser.parse_args([])", "--x"), {})

    def test_wrong_words_end_it_as_ever(self):
        self.options("parser.parse_args()", "--unknown")
        self.options("parser.parse_args()", "--help")


if __name__ == "__main__":
    unittest.main()
