#!/usr/bin/env python3
"""Puts small faults into the product, one at a time, and shows whether the tests catch each.

    tools/mutations.py [--only WORD ...] [--list] [--json] [--build FOLDER]
    tools/mutations.py --check        only whether the list fits the sources
    tools/mutations.py --self-test

The faults are in mutations.txt beside this file, which explains its format. Each is put into this working
tree, its targets are built, and its tests run, without the nightly ones: at least one of them must fail.
The tree must have no changes, and is restored however the program ends; nobody else may build there
meanwhile. WORD is a part of a fault's name or file. The exit code is 1 if a fault is not caught.
"""

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LIST = Path(__file__).with_suffix(".txt")
PROGRAMS = ["unidle", "unidle_native", "unidle_probe_shared", "unidle_light"]


class Invalid(Exception):
    """The list, the tree or the build does not allow a run."""


@dataclass
class Mutation:
    name: str
    file: str
    old: list = field(default_factory=list)
    new: list = field(default_factory=list)
    tests: list = field(default_factory=list)  # (ctest test, filter)

    @property
    def module(self):
        """`account` of src/unidle/account/rate.cpp, `shim` and `package` of the two halves of python/."""
        if self.file.startswith("python/"):
            return "shim" if self.file.startswith("python/shim/") else "package"
        return self.file.split("/")[2]

    def applied(self, text):
        """The text of the file with the fault."""
        old, new = "\n".join(self.old), "\n".join(self.new)
        if text.count(old) != 1:
            raise Invalid(f"{self.name}: {self.file} has this {text.count(old)} times, expected once:\n{old}")
        return text.replace(old, new)


def parsed(text):
    mutations = []
    for number, line in enumerate(text.splitlines(), 1):
        mark, _, rest = line.partition(" ")
        if not line or mark == "#":
            continue
        if found := re.fullmatch(r"\[([\w-]+)\] (\S+)", line):
            mutations.append(Mutation(*found.groups()))
        elif mutations and mark in "-+" and len(mark) == 1:
            (mutations[-1].old if mark == "-" else mutations[-1].new).append(rest)
        elif mutations and mark == "by" and rest:
            test, _, cases = rest.partition(" ")
            mutations[-1].tests.append((test, cases or "*"))
        else:
            raise Invalid(f"mutations.txt:{number}: expected [NAME] FILE, -, +, by or #, found: {line}")
    names = [one.name for one in mutations]
    for one in mutations:
        if not one.old or not one.tests or names.count(one.name) > 1:
            raise Invalid(f"{one.name}: expected one entry with at least one line of - and of by")
    return mutations


def nightly_tests(root):
    lists = [root / folder / "CMakeLists.txt" for folder in ("python", "tests")]
    found = (re.findall(r"set\(nightly([^)]*)\)", path.read_text()) for path in lists if path.exists())
    return {name for texts in found for text in texts for name in text.split()}


def check(mutations, root):
    """Raises Invalid unless every text to replace is in its file, and every test has a source and is not
    nightly."""
    nightly = nightly_tests(root)
    for one in mutations:
        if not (root / one.file).is_file():
            raise Invalid(f"{one.name}: there is no file {one.file}")
        one.applied((root / one.file).read_text())
        for test, _ in one.tests:
            kind, _, name = test.partition(".")
            places = {
                "unit": f"src/unidle/{name.split('.')[0]}",
                "python": f"python/tests/{name}.py",
                "program": f"tests/{name}.sh",
            }
            if kind not in places or not (root / places[kind]).exists():
                raise Invalid(f"{one.name}: there is no test {test}")
            if name in nightly:
                raise Invalid(f"{one.name}: {test} is nightly; expected a test of the default selection")


def ended(command, limit_s, **options):
    """Returns the exit code. Ends the command and its children after `limit_s`, and returns None."""
    child = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True, **options
    )
    try:
        return child.wait(limit_s)
    except subprocess.TimeoutExpired:
        return None
    finally:
        if child.poll() is None:
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()


def targets_of(test):
    kind, _, name = test.partition(".")
    return {"unit": [f"unidle_{name}_test"], "python": PROGRAMS}.get(kind, ["programs"])


def build(folder, mutations):
    targets = {target for one in mutations for test, _ in one.tests for target in targets_of(test)}
    built = subprocess.run(
        ["ninja", "-C", folder, "-j1", *sorted(targets)], capture_output=True, text=True, check=False
    )
    if built.returncode != 0:
        raise Invalid(f"does not build:\n{built.stdout[-3000:]}")


class Tests:
    """The tests of a build folder, and how long each takes without a fault."""

    def __init__(self, folder):
        self.folder = folder
        self.seconds = {}  # (test, filter) -> seconds

    def _options(self, test, cases):
        """Command, working directory and environment of a test of ctest, restricted to some of its cases."""
        listed = subprocess.run(
            ["ctest", "--test-dir", self.folder, "--show-only=json-v1", "-LE", "nightly"],
            capture_output=True,
            text=True,
            check=True,
        )
        known = {each["name"]: each for each in json.loads(listed.stdout)["tests"]}
        found = known.get(test) or known.get(test + ".0")  # the first of several parts of one program
        if found is None:
            raise Invalid(f"{test} is no test of the default selection")
        properties = {each["name"]: each["value"] for each in found["properties"]}
        command, environment = found["command"], dict(os.environ)
        if test.startswith("unit."):
            nightly = "".join(re.findall("-[A-Z].*", command[-1]))
            command = [command[0], "--gtest_fail_fast", f"--gtest_filter={cases}{nightly}"]
        else:
            environment.update(each.split("=", 1) for each in properties["ENVIRONMENT"])
            if test.startswith("python."):
                command = [*command, "--failfast", "-k", cases]
        return command, {"cwd": properties["WORKING_DIRECTORY"], "env": environment}

    def need(self, test, cases):
        """Makes sure that the test passes without a fault."""
        if (test, cases) not in self.seconds:
            command, options = self._options(test, cases)
            began = time.monotonic()
            if ended(command, None, **options) != 0:
                raise Invalid(f"{test} {cases} fails without any fault")
            self.seconds[test, cases] = time.monotonic() - began

    def catches(self, test, cases):
        """Whether the test fails, or takes ten times as long."""
        command, options = self._options(test, cases)
        return ended(command, 60 + 10 * self.seconds[test, cases], **options) != 0


def tried(one, folder, tests):
    """Puts the fault in, and returns the first test that catches it, or None."""
    path = ROOT / one.file
    if not all(test in tests.seconds for test in one.tests):
        build(folder, [one])
        for test in one.tests:
            tests.need(*test)
    original = path.read_text()
    try:
        path.write_text(one.applied(original))
        build(folder, [one])
        return next((test for test, cases in one.tests if tests.catches(test, cases)), None)
    finally:
        path.write_text(original)


def clean_tree():
    changed = subprocess.run(
        ["git", "status", "--porcelain", "--untracked-files=no"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    if changed:
        raise Invalid(f"the working tree has changes; commit or stash them first:\n{changed}")


def run_all(mutations, folder, as_json):
    clean_tree()
    tests, results = Tests(folder), []
    for one in mutations:
        began = time.monotonic()
        by = tried(one, folder, tests)
        seconds = round(time.monotonic() - began)
        results.append(
            {"name": one.name, "file": one.file, "module": one.module, "by": by, "seconds": seconds}
        )
        if not as_json:
            print(f"{'caught' if by else 'SURVIVED':9}{one.name:40}{by or ''} ({seconds} s)", flush=True)
    build(folder, mutations)
    survived = [each["name"] for each in results if each["by"] is None]
    if as_json:
        print(json.dumps(results, indent=1))
    else:
        print(f"{len(results) - len(survived)} of {len(results)} caught")
    return bool(survived)


def self_test():
    text = "# a list\n[off-by-one] src/unidle/base/a.cpp\n- x < 1\n+ x <= 1\nby unit.base A*\n"
    (one,) = parsed(text)
    assert (one.module, one.tests) == ("base", [("unit.base", "A*")])
    assert one.applied("if (x < 1) {}\n") == "if (x <= 1) {}\n"

    def refused(names, action, *arguments):
        try:
            action(*arguments)
        except Invalid as error:
            assert all(name in str(error) for name in names), error
        else:
            raise AssertionError(f"{names} was not refused")

    refused(["mutations.txt:3", "x < 1"], parsed, "# a list\n[a] src/a.cpp\nx < 1\n")
    refused(["a:"], parsed, "[a] src/a.cpp\n- x\n+ y\n")
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        refused(["off-by-one", "no file"], check, [one], root)
        (root / "src/unidle/base").mkdir(parents=True)
        for content, times in (("if (x > 1) {}\n", "0 times"), ("x < 1; x < 1;\n", "2 times")):
            (root / one.file).write_text(content)
            refused(["off-by-one", one.file, times], check, [one], root)
        (root / one.file).write_text("if (x < 1) {}\n")
        check([one], root)
        one.tests.append(("python.test_a", "*"))
        refused(["off-by-one", "python.test_a"], check, [one], root)
        (root / "python/tests").mkdir(parents=True)
        (root / "python/tests/test_a.py").touch()
        (root / "python/CMakeLists.txt").write_text("set(nightly test_b\n  test_a)\n")
        refused(["off-by-one", "python.test_a is nightly"], check, [one], root)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="+", metavar="WORD", default=[""])
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--self-test", action="store_true")
    parser.add_argument("--build", type=Path, default=ROOT / "build", metavar="FOLDER")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    if options.self_test:
        return self_test()
    mutations = parsed(LIST.read_text())
    check(mutations, ROOT)
    if options.check:
        return 0
    chosen = [one for one in mutations if any(word in one.name or word in one.file for word in options.only)]
    if options.list:
        for one in chosen:
            print(f"{one.module:12}{one.name:32}{', '.join(' '.join(test) for test in one.tests)}")
        return 0
    return run_all(chosen, options.build, options.json)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Invalid as error:
        sys.exit(f"mutations: {error}")
