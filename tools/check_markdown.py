"""Names the lines of prose in Markdown files that are longer than 110 columns. `check_markdown.py FILE ...`

Tables, code blocks, the addresses of links and generated files may be as wide as they are.
"""

import re
import sys

WIDTH = 110
GENERATED = "docs/rules.md", "docs/knobs.md"  # by ./dev format


def long_lines(text):
    """(number, columns) of each line of prose that is too long."""
    fenced = False
    for number, line in enumerate(text.split("\n"), 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif not fenced and not line.lstrip().startswith("|") and not line.startswith("    "):
            columns = len(re.sub(r"\]\([^)]*\)", "]", line))
            if columns > WIDTH:
                yield number, columns


if len(sys.argv) < 2:
    sys.exit("usage: check_markdown.py FILE ...")
found = False
for name in sys.argv[1:]:
    if name not in GENERATED:
        with open(name, encoding="utf-8") as file:
            for number, columns in long_lines(file.read()):
                print("%s:%d: %d columns, at most %d" % (name, number, columns, WIDTH), file=sys.stderr)
                found = True
sys.exit(found)
