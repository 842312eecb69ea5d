#!/usr/bin/env python3
"""Finds names that two files of one target define in anonymous namespaces.

The build compiles several files of a module as one. There such names collide or, if they are functions,
become overloads of each other, and the wrong one may be called silently. The grouping of files changes with
every new file, so a name must be unique in its target. Reads sources formatted by clang-format. --self-test
proves that it can fail.
"""

import collections
import contextlib
import io
import os
import re
import sys
import tempfile

OPENS = re.compile(r"^(?:inline )?namespace \{")
CLOSES = re.compile(r"^\}  // namespace$")
TYPE = re.compile(r"^(?:template <.*> *)?(?:struct|class|union|enum(?: class)?|using|concept) (\w+)(?:\W|$)")
FUNCTION = re.compile(r"^[\w:<>,&*\[\]\s.\"]*?[\s&*>](\w+)\(")
VARIABLE = re.compile(r"^[\w:<>,&*\s\[\]()\"{}-]*?[\s&*>](\w+)(?:\[[^\]]*\])*(?: = .*|\{.*|;)$")
NOT_NAMES = (
    "operator",
    "TEST",
    "TEST_F",
    "TEST_P",
    "INSTANTIATE_TEST_SUITE_P",
    "static_assert",
    "extern",
    "friend",
)


def defined(lines):
    """The names that `lines` define in an anonymous namespace, with their line numbers."""
    inside, joined, at = False, "", 0
    for number, line in enumerate(lines, 1):
        line = line.rstrip("\n")
        if OPENS.match(line):
            inside = True
        elif CLOSES.match(line):
            inside, joined = False, ""
        elif inside and line and line[0] not in " /#}":
            # Long lines continue indented; a template has its own line.
            line = re.sub(r" *__attribute__\(\(.*?\)\)+", "", line).lstrip()
            joined, at = (joined + " " + line, at) if joined else (line, number)
            if joined.startswith(NOT_NAMES):
                joined = ""
                continue
            if joined.startswith("template") and joined.endswith(">"):
                continue
            found = TYPE.match(joined) or FUNCTION.match(joined) or VARIABLE.match(joined)
            if found and not re.match(r"(?:using namespace|using [\w:]+;|using enum|namespace )", joined):
                yield found[1], at
            joined = ""


def targets(root):
    """The files that are compiled into one library or test program, for each of them."""
    found = collections.defaultdict(list)
    for base in ("src/unidle", "workloads", "engine"):
        for folder, _, files in os.walk(os.path.join(root, base)):
            below = os.path.relpath(folder, root).split(os.sep)
            module = "/".join(below[:3] if base == "src/unidle" else below[:1])
            # Single-file programs, and commands, are compiled separately.
            if "main" in below or below[1:4] == ["unidle", "cli", "commands"] or "fake_nvml" in below:
                continue
            for name in sorted(files):
                if name.endswith(".cpp"):
                    kind = (
                        "tests"
                        if name.endswith("_test.cpp")
                        else "fakes"
                        if "testing" in below
                        else "sources"
                    )
                    found["%s of %s" % (kind, module)].append(os.path.join(folder, name))
    return found


def check(root):
    failures = 0
    for target, files in sorted(targets(root).items()):
        places = collections.defaultdict(dict)
        for path in sorted(files):
            with open(path, encoding="utf-8") as source:
                for name, line in defined(source):
                    places[name].setdefault(path, line)
        for name, where in sorted(places.items()):
            if len(where) > 1:
                failures += 1
                print("%s: %s is defined in several anonymous namespaces:" % (target, name))
                for path, line in sorted(where.items()):
                    print("  %s:%d" % (os.path.relpath(path, root), line))
    return failures


SAMPLE = """namespace unidle::base {
namespace {

constexpr int kMost = 3;
constexpr std::array<std::pair<int, const char*>, 2> kTable = {{
    {1, "one"},
}};
std::atomic<bool> g_stop{false};

/// Says so.
__attribute__((target("avx2"))) bool is_blank(char c) { return c == ' '; }

template <typename T>
std::vector<T> all_of(const std::string& text,
                      int count) {
  int inner = count;
}

struct Facts {
  int member = 0;
  void method() {}
};
using Names = std::vector<std::string>;
typedef float Lanes __attribute__((vector_size(32)));
using ::testing::ElementsAre;

TEST(Base, Works) { EXPECT_TRUE(true); }

}  // namespace

int outside() { return 1; }

}  // namespace unidle::base
"""


def self_test():
    names = {name for name, _ in defined(SAMPLE.splitlines(True))}
    expected = {"kMost", "kTable", "g_stop", "is_blank", "all_of", "Facts", "Names", "Lanes"}
    if names != expected:
        return "read %s, expected %s" % (sorted(names), sorted(expected))
    with tempfile.TemporaryDirectory() as root:
        folder = os.path.join(root, "src/unidle/base")
        os.makedirs(folder)
        for name in ("a.cpp", "a_test.cpp"):
            with open(os.path.join(folder, name), "w") as file:
                file.write(SAMPLE)
        if check(root):
            return "a library and its tests are no target together"
        with open(os.path.join(folder, "b.cpp"), "w") as file:
            file.write(
                "namespace b {\nnamespace {\n\nint is_blank(int c) { return c; }\n\n}  // namespace\n}\n"
            )
        with contextlib.redirect_stdout(io.StringIO()):
            if check(root) != 1:
                return "a collision passed"
    return None


if __name__ == "__main__":
    if sys.argv[1:] == ["--self-test"]:
        problem = self_test()
        print("names: " + (problem or "the check works"))
        sys.exit(1 if problem else 0)
    sys.exit(1 if check(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")) else 0)
