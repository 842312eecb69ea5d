"""Checks that tests feed to readers of a record only what programs write.

A test with a note, span or series that no program writes hides that the reader's code is dead. Checked are
the types of notes in `src/unidle/record/note_types.h`, and the kinds of spans and the series in tests and in
the timelines of `src/unidle/diagnose/testing/timelines/`.
"""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
_NOTE = re.compile(r"""["']?type["']?\s*[:=,]\s*["']([a-z_]+)["']""")
_SHAPE = re.compile(r'NoteShape\{\s*NoteType::\w+,\s*"([a-z_]+)"')
_SPAN = re.compile(r'write_span\(process, event, "([a-z_]+)"')
_FED_SPAN = re.compile(r'(?:record::)?Span\{"([a-z_]+)"')
_FED_SERIES = re.compile(r'series\(\{(?:std::string\()?"([a-z_.]+)"')
_SPANS_OF_TIMELINES = ("startup", "validate", "checkpoint")


def is_test(path):
    return "_test." in path or "/testing/" in path or "/tests/" in path or path.endswith(".timeline")


def files():
    listed = ["git", "-C", ROOT, "ls-files", "*.py", "*.cpp", "*.h", "*.timeline"]
    for name in subprocess.run(listed, capture_output=True, text=True, check=True).stdout.split():
        if name.startswith(("src/", "python/", "engine/", "workloads/")):
            yield name, (ROOT / name).read_text(encoding="utf-8")


def written(sources):
    names = set()
    for path, text in sources:
        if not is_test(path) and not path.endswith("note_types.h"):
            names.update("note " + name for name in _NOTE.findall(text))
            names.update("span " + name for name in _SPAN.findall(text))
            names.update("series " + name for name in re.findall(r'"([a-z]+\.[a-z_.]+)"', text))
    return names


def fed(sources):
    """(file, name) of the data given to readers, or known to them."""
    for path, text in sources:
        if path.endswith("note_types.h"):
            yield from ((path, "note " + name) for name in _SHAPE.findall(text))
        if path.endswith(".timeline"):
            yield from ((path, "note " + name) for name in re.findall(r'^note.*?"type": "(\w+)"', text, re.M))
            yield from ((path, "series " + name) for name in re.findall(r"^series ([a-z_.]+)", text, re.M))
            words = re.findall(r"^\s*([a-z_]+)", text, re.M)
            yield from ((path, "span " + name) for name in _SPANS_OF_TIMELINES if name in words)
        elif is_test(path) and path.startswith("src/unidle/diagnose/"):
            yield from ((path, "span " + name) for name in _FED_SPAN.findall(text))
            yield from ((path, "series " + name) for name in _FED_SERIES.findall(text))


def problems(sources):
    known = written(sources)
    for path, name in sorted(set(fed(sources))):
        if name not in known:
            yield f"{path}: {name}: no program writes it"


def self_test():
    shapes = ("src/unidle/record/note_types.h", 'NoteShape{NoteType::kA, "a", "", ""}')
    writer = ("python/shim/a.py", 'note({"type": "a"})')
    case = ("src/x.timeline", 'note {"type": "b", "id": 1}\nseries tree.cpu 2\n')
    telemetry = ("src/telemetry.cpp", '"tree.cpu"')
    assert not list(problems([shapes, writer]))
    assert len(list(problems([shapes]))) == 1
    assert len(list(problems([case]))) == 2
    assert len(list(problems([case, telemetry]))) == 1
    print("written: the check works")


def main():
    if "--self-test" in sys.argv:
        return self_test()
    found = list(problems(list(files())))
    print("\n".join(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
