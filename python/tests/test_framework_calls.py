"""The arguments in the table of frameworks' calls exist in the frameworks, where these are installed."""

import contextlib
import importlib
import inspect
import os
import re
import unittest

TABLE = os.path.join(os.path.dirname(__file__), "..", "..", "src", "unidle", "knobs", "framework_calls.cpp")
WORDS = r'"((?:[^"\\]|\\.)*)"'


def rows():
    """For each row of the table: packages, functions, arguments."""
    with open(TABLE) as file:
        text = file.read()
    for row in re.split(r"\{\.source =\s", text)[1:]:
        fields = {
            name: re.search(rf"\.{name} = \{{(.*?)\}},\s*\.", row, re.S).group(1)
            for name in ("packages", "functions")
        }
        arguments = re.findall(rf"\{{{WORDS}, {WORDS}, {WORDS}", row.split(".arguments")[1])
        yield (
            re.findall(WORDS, fields["packages"]),
            re.findall(WORDS, fields["functions"]),
            {argument for _, _, argument in arguments},
        )


def installed(package):
    try:
        with open(os.devnull, "w") as nowhere, contextlib.redirect_stderr(nowhere):
            return importlib.import_module(package)
    except Exception:  # frameworks raise various exceptions if a part of them is missing
        return None


class FrameworkCallsTest(unittest.TestCase):
    def test_the_table_is_read(self):
        found = list(rows())
        self.assertEqual(
            [packages[0] for packages, _, _ in found], ["transformers", "lightning", "accelerate"]
        )
        self.assertIn("dataloader_num_workers", found[0][2])
        self.assertIn("precision", found[1][2])

    def test_each_argument_exists(self):
        for packages, functions, arguments in rows():
            for function in functions:
                with self.subTest(function):
                    owners = [getattr(installed(package), function, None) for package in packages]
                    owner = next((one for one in owners if one is not None), None)
                    if owner is None:
                        self.skipTest(f"{' and '.join(packages)} are not installed")
                    known = inspect.signature(owner).parameters
                    self.assertEqual([one for one in sorted(arguments) if one not in known], [])


if __name__ == "__main__":
    unittest.main()
