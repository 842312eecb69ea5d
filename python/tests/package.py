"""The package `unidle` of the build under test, for tests of it."""

import os
import sys
from pathlib import Path

BUILD = Path(os.environ.get("UNIDLE_BIN", Path(__file__).parents[2] / "build" / "bin")).parent
sys.path.insert(0, str(BUILD / "share" / "unidle" / "python"))
LIBRARY = BUILD / "lib" / "libunidle.so"
