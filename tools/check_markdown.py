"""Checks Markdown files, from the top of the tree. `check_markdown.py FILE ...`, or --self-test

- A line of prose has at most 110 columns. Tables, code blocks, the addresses of links and generated files may
  be wider.
- A link to a file of the tree leads to an existing file.
- Each page of docs/ is in the contents of the site, mkdocs.yml.
- Each module has a README.md of at most 60 lines, and the files that it names in code spans exist. Names with
  MY_, my_ or NAME in them are examples.

--self-test proves that it can fail.
"""

import contextlib
import glob
import io
import os
import re
import sys
import tempfile

WIDTH = 110
MOST_LINES = 60
GENERATED = "docs/rules.md", "docs/knobs.md"  # by ./dev format
MODULES = (
    ["src/unidle/*/"]
    + ["engine/", "workloads/", "python/shim/", "python/unidle/", "python/native/"]
    + ["tests/", "bench/", "tools/"]
)
SOURCE = re.compile(r"\.(h|cpp|py|sh|md|yaml|map)$")
EXAMPLE = re.compile(r"MY_|my_|NAME")


def prose(text):
    """(number, line) of each line outside fenced code."""
    fenced = False
    for number, line in enumerate(text.split("\n"), 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif not fenced:
            yield number, line


def long_lines(name, text):
    for number, line in prose(text):
        if not line.lstrip().startswith("|") and not line.startswith("    "):
            columns = len(re.sub(r"\]\([^)]*\)", "]", line))
            if columns > WIDTH:
                yield f"{name}:{number}: {columns} columns, at most {WIDTH}"


def dead_links(name, text):
    for number, line in prose(text):
        for address in re.findall(r"\]\(([^)#\s]+)", line):
            if ":" not in address and not os.path.exists(os.path.join(os.path.dirname(name), address)):
                yield f"{name}:{number}: links to {address}, which does not exist"


def missing_files(name, text):
    """Paths may be relative to the module, one of its folders, src/unidle or the top of the tree."""
    folder = os.path.dirname(name)
    roots = [folder, "", "src/unidle", *glob.glob(folder + "/*/")]
    for number, line in prose(text):
        for word in " ".join(re.findall(r"`([^`]+)`", line)).split():
            if SOURCE.search(word) and not EXAMPLE.search(word):
                if not any(glob.glob(os.path.join(root, word)) for root in roots):
                    yield f"{name}:{number}: names {word}, which does not exist"


def faults_of_modules():
    for pattern in MODULES:
        for folder in sorted(glob.glob(pattern)):
            name = folder + "README.md"
            if not os.path.exists(name):
                yield f"{name}: missing; each module has one, of at most {MOST_LINES} lines"
                continue
            with open(name, encoding="utf-8") as file:
                text = file.read()
            if text.count("\n") > MOST_LINES:
                yield f"{name}: {text.count(chr(10))} lines, at most {MOST_LINES}"
            yield from missing_files(name, text)


def missing_from_site():
    try:
        with open("mkdocs.yml", encoding="utf-8") as file:
            contents = file.read()
    except FileNotFoundError:
        return
    for name in sorted(glob.glob("docs/*.md")):
        if not re.search(rf"[\[ ]{re.escape(os.path.basename(name))}[\],]", contents):
            yield f"{name}: is not in the contents of the site, mkdocs.yml"


def check(names):
    faults = [*faults_of_modules(), *missing_from_site()]
    for name in names:
        if name not in GENERATED:
            with open(name, encoding="utf-8") as file:
                text = file.read()
            faults += [*long_lines(name, text), *dead_links(name, text)]
    for fault in faults:
        print(fault, file=sys.stderr)
    return bool(faults)


def self_test():
    """A tree with one module, with one fault after another in its README."""
    fine = "# base\n\n`error.h`, `src/unidle/base/error.h`, `MY_SOURCE.cpp`\n[here](error.h)\n"
    faults = {
        "a long line": fine + "long " * 30 + "\n",
        "a dead link": fine + "[gone](gone.h)\n",
        "a file that is gone": fine + "`gone.h`\n",
        "a long page": fine + "\n" * MOST_LINES,
        "no page": None,
    }
    with tempfile.TemporaryDirectory() as tree:
        os.chdir(tree)
        os.makedirs("src/unidle/base")
        open("src/unidle/base/error.h", "w").close()
        for what, text in {"a fine page": fine, **faults}.items():
            name = "src/unidle/base/README.md"
            if text is None:
                os.remove(name)
            else:
                with open(name, "w", encoding="utf-8") as file:
                    file.write(text)
            with contextlib.redirect_stderr(io.StringIO()):
                found = check([name] if text is not None else [])
            if found != (text != fine):
                sys.exit(f"self-test: {what} was {'refused' if found else 'passed'}")
        os.chdir("/")
    print("markdown: the check works")


if sys.argv[1:] == ["--self-test"]:
    self_test()
elif len(sys.argv) < 2:
    sys.exit("usage: check_markdown.py FILE ... | --self-test")
else:
    sys.exit(check(sys.argv[1:]))
