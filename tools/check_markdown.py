"""Checks Markdown files, from the top of the tree. `check_markdown.py FILE ...`, or --self-test

- A line of prose has at most 110 columns. Tables, code blocks, the addresses of links and generated files may
  be wider, and pages in Chinese, where the break of a line would show as a space.
- PAGE.zh-CN.md, a page in Chinese, has the commands of PAGE.md and no others, and all its links.
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
CHINESE = ".zh-CN.md"
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


def code_blocks(text):
    """The lines of each code block, fenced or indented."""
    block, fenced = [], False
    for line in [*text.split("\n"), "end"]:
        fence = line.startswith("```")
        if not fence and (fenced or line.startswith("    ")):
            block.append(line)
        elif (fence or line) and block:  # an empty line does not end an indented block
            yield block
            block = []
        fenced ^= fence


def commands(text):
    """Lines of code without comments, of a transcript only what is typed after `$`, and commands in prose."""
    found = []
    for block in code_blocks(text):
        typed = [line for line in block if line.startswith("    $ ")] or block
        found += [re.sub(r"\s\s+# .*", "", line).strip() for line in typed]
    return found + re.findall(r"`((?:unidle|\./dev) [^`]+)`", text)


def links(text):
    return [address.replace(CHINESE, ".md") for address in re.findall(r"\]\(([^)\s]+)", text)]


def unlike_original(name, text):
    if name.endswith(CHINESE):
        original = name.replace(CHINESE, ".md")
        with open(original, encoding="utf-8") as file:
            wanted = file.read()
        for part in commands, links:
            for lost in sorted({*part(wanted)} - {*part(text)}):
                yield f"{name}: lacks {lost}, which is in {original}"
        for new in sorted({*commands(text)} - {*commands(wanted)}):
            yield f"{name}: has {new}, which is not in {original}"


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
            faults += [*dead_links(name, text), *unlike_original(name, text)]
            if not name.endswith(CHINESE):
                faults += long_lines(name, text)
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


def self_test_of_translations():
    """A page, and its translation with one fault after another."""
    page = "`./dev all` [here](b.md)\n\n    $ unidle run  # see\n    told\n\n```\nunidle fix\n```\n\n    ls\n"
    fine = page.replace("see", "看").replace("told", "说").replace("b.md", "b.zh-CN.md")
    faults = {
        "a command that is gone": fine.replace("unidle fix", ""),
        "a command that is gone from prose": fine.replace("`./dev all`", ""),
        "another command": fine.replace("unidle run", "unidle run x"),
        "one more command": fine + "    rm b.md\n",
        "a link that is gone": fine.replace("[here](b.zh-CN.md)", ""),
    }
    with tempfile.TemporaryDirectory() as tree:
        os.chdir(tree)
        with open("a.md", "w", encoding="utf-8") as file:
            file.write(page)
        for what, text in {"a fine translation": fine, **faults}.items():
            if bool(list(unlike_original("a.zh-CN.md", text))) != (text != fine):
                sys.exit(f"self-test: {what} was not told from its opposite")
        os.chdir("/")


if sys.argv[1:] == ["--self-test"]:
    self_test()
    self_test_of_translations()
    print("markdown: the check works")
elif len(sys.argv) < 2:
    sys.exit("usage: check_markdown.py FILE ... | --self-test")
else:
    sys.exit(check(sys.argv[1:]))
