"""Where programs and libraries of this installation may be."""

from __future__ import annotations

import os
from pathlib import Path


def places(relative: str) -> list[Path]:
    """In a wheel; installed as PREFIX/share/unidle/python/unidle; in a checkout."""
    here = Path(__file__).parent
    # As text: the folder may be a link, and less deep than a prefix would be.
    prefix = Path(os.path.normpath(here / "../../../.."))
    build = Path(os.path.normpath(here / "../../build"))
    return [root / relative for root in (here / "_installed", prefix, build)]
