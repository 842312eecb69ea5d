"""Shared by the tests of unidle.Cache."""

import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import package

import unidle

UNIDLE = package.BUILD / "bin" / "unidle"


def python(program, *arguments, options=()):
    """Starts a Python that has the package; its output is text."""
    text = f"import sys; sys.path.insert(0, {sys.path[0]!r}); import unidle, numpy as np\n" + program
    command = [sys.executable, *options, "-c", text, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def blob_of(folder, name):
    """The file of an entry, according to the program."""
    command = [UNIDLE, "cache", "path", folder, "--name", name]
    return Path(subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip())


class CacheTest(unittest.TestCase):
    def setUp(self):
        self.folder = Path(tempfile.mkdtemp(prefix="unidle-cache-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.cache = unidle.Cache(self.folder)

    def said(self, process):
        out, err = process.communicate()
        self.assertEqual(process.returncode, 0, err)
        return out
