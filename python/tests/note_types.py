"""The types of notes and their fields, from docs/probe-format.md.

A unit test compares the list in C++ with that page, too.
"""

import os
import re

_PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs", "probe-format.md")


def _listed():
    found = {}
    with open(_PAGE) as page:
        for line in page:
            row = re.fullmatch(r"\| ([a-z_]+)(?: \[([a-z_, ]+)\])? \| (.*) \|\n", line)
            if row:
                found[row[1]] = set(re.findall(r"[a-z_0-9]+", (row[2] or "") + " " + row[3]))
    return found


_LISTED = _listed()


def has(kind, field):
    return field in ("type", "t_ns") or field in _LISTED.get(kind, ())
