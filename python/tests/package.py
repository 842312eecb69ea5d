"""Imports the package `unidle` of the build under test."""

import importlib
import os
import sys
import unittest
from pathlib import Path

BUILD = Path(os.environ.get("UNIDLE_BIN", Path(__file__).parents[2] / "build" / "bin")).parent
sys.path.insert(0, str(BUILD / "share" / "unidle" / "python"))
LIBRARY = BUILD / "lib" / "libunidle.so"


def needs(*names):
    """Returns these modules, or the only one. Skips the tests if one of them, or the package's library, is
    missing."""
    if not LIBRARY.exists():
        raise unittest.SkipTest(f"{LIBRARY} is not built")
    try:
        modules = [importlib.import_module(name) for name in names]
    except ImportError as error:
        raise unittest.SkipTest(f"needs {' and '.join(names)}: {error}") from error
    return modules[0] if len(modules) == 1 else modules
