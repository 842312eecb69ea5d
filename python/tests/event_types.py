"""The types of events and their fields, from docs/probe-format.md.

A unit test compares the list in C++ with that page, too.
"""

import collections
import os
import re
import struct

_PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs", "probe-format.md")
_PLACES = ("a", "b", "value", "reserved")


def _listed():
    kinds, used = {}, {}
    with open(_PAGE) as page:
        for line in page:
            cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
            if len(cells) == 7 and cells[0].isdigit() and re.fullmatch("[A-Z_]+", cells[1]):
                kinds[cells[1]] = int(cells[0])
                used[int(cells[0])] = {place for place, cell in zip(_PLACES, cells[3:]) if cell}
    return kinds, used


KINDS, _USED = _listed()


def check(kind, a=0, b=0, value=0.0, reserved=0):
    """Fails if an event has a value that its kind has no field for."""
    for place, said in zip(_PLACES, (a, b, value, reserved)):
        assert said == 0 or place in _USED[kind], "docs/probe-format.md lists no %s of events of kind %d" % (
            place,
            kind,
        )


def _step_layout():
    """(offset, type, field, bit) of each field of a step."""
    with open(_PAGE) as page:
        table = page.read().split("A step is one event:")[1].split("\n\n")[1]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[2:]]
    return [(int(offset), kind, field, int(bit or 0)) for offset, kind, field, bit, _ in rows]


_LAYOUT = _step_layout()
_STEP = struct.Struct("<" + "".join({"u64": "Q", "u32": "I", "f64": "d"}[row[1]] for row in _LAYOUT))
Step = collections.namedtuple("Step", [row[2] for row in _LAYOUT])


def is_step(slot):
    return slot[48] == KINDS["STEP"]


def step_of(slot):
    """The step in these 128 bytes; fields that were not seen are None."""
    step = Step(*_STEP.unpack_from(slot))
    return step._replace(**{field: None for _, _, field, bit in _LAYOUT if bit and not step.seen & bit})
