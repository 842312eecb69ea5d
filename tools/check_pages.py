"""Checks the commands and the output that README.md and docs/ show. `check_pages.py UNIDLE`, or --self-test

- The subcommand and each option of a shown `unidle ...` exist: the program's own help lists them.
- `--apply KNOB=VALUE` names a knob, and `./dev NAME` a command of ./dev.
- What a page shows below `$ unidle ...` can be printed by the program. Sentences are compared with the string
  literals of the source; names, figures and lines of code between them are not checked.

--self-test proves that it can fail.
"""

import functools
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LONGEST_VALUE = 90  # characters that one placeholder of a message may stand for
SENTENCE = re.compile(r"(?<![\w./'\"#])(?:[a-z]{2,},? ){3}[a-z]{2,}(?![\w(=])")
LITERAL = r'"(?:[^"\\\n]|\\.)*"'
# Where a shell would look for a command; what a program prints may begin with its name as well.
COMMAND = re.compile(r"(?:^ *\$? *|[;&|(] *|sudo |[A-Z_]+=\S* )(unidle(?![\w:.-])(?: +[^`|#&;<>)\n]*)?)")
DEV = re.compile(r"\./dev +([a-z]+)")
HIDDEN = {"attach", "--rules-markdown"}  # for programs, not in the help


class Program:
    """What `unidle` knows, by its own answers."""

    def __init__(self, path):
        self._path = path
        self.help = functools.lru_cache(maxsize=None)(self._help)

    def _help(self, *words):
        done = subprocess.run([self._path, *words, "--help"], capture_output=True, text=True)
        return done.stdout if done.returncode == 0 else None

    def subcommands(self, *words):
        said = (self.help(*words) or "").partition("Subcommands:\n")[2]
        return set(re.findall(r"^  ([a-z][\w-]*)", said, re.M))

    @functools.cached_property
    def knobs(self):
        said = subprocess.run([self._path, "knobs", "list"], capture_output=True, text=True).stdout
        return set(re.findall(r"\b[a-z_]+\.[a-z_]+\b", said))


def unknown_words(command, program):
    """Why a shown command line is wrong."""
    words = command.split(" -- ")[0].split()[1:]
    path = []
    while words and words[0] in program.subcommands(*path):
        path.append(words.pop(0))
    if (
        words
        and words[0] not in HIDDEN
        and re.fullmatch(r"[a-z][a-z-]*", words[0])
        and program.subcommands(*path)
    ):
        yield f"unidle {' '.join(path)} has no subcommand {words[0]}"
        return
    known = program.help(*path) or ""
    for number, word in enumerate(words):
        option = re.match(r"(--[A-Za-z][\w-]*|-[A-Za-z])", word)
        if (
            option
            and option[1] not in HIDDEN
            and not re.search(rf"(?<![\w-]){re.escape(option[1])}(?![\w-])", known)
        ):
            yield f"unidle {' '.join(path)} has no option {option[1]}"
        applied = re.match(r"--apply=(.*)", word) or re.match(
            r"(.*)", " ".join(words[number + 1 : number + 2])
        )
        knob = word.startswith("--apply") and re.match(r"[\"']?([a-z_]+\.[a-z_]+)=", applied[1])
        if knob and knob[1] not in program.knobs:
            yield f"no knob {knob[1]}"


def commands(text):
    """The command lines in code blocks and code spans."""
    fenced = False
    for line in re.sub(r"\\\n\s*", " ", text).split("\n"):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        code = fenced or line.startswith("    ")
        for span in [line] if code else re.findall(r"`([^`]+)`", line):
            for found in COMMAND.findall(re.sub(r"(^|\s)#.*|(?<=\S) {3,}.*", "", span)):
                yield found


def value_of(literal):
    return re.sub(r"\\(.)", lambda escaped: {"n": "\n", "t": "\t"}.get(escaped[1], escaped[1]), literal[1:-1])


def messages(sources):
    """(its longest part, regular expression) of each string literal that has words."""
    for entry in re.finditer(rf"{LITERAL}(?:\s*{LITERAL})*", sources):
        quoted = re.findall(LITERAL, entry[0])
        parts = re.split(r"\{[^{}]*\}", "".join(map(value_of, quoted)).strip())
        if len(re.findall(r"[A-Za-z]{2,}", " ".join(parts))) < 2:
            continue
        fixed = ["(" + r"\s+".join(map(re.escape, re.split(r"\s+", part))) + ")" for part in parts]
        value = f".{{1,{LONGEST_VALUE}}}?"
        # At the edge of a message nothing says where a value ends: it is one word.
        if parts[0] == "":
            fixed[:2] = [rf"\S+{fixed[1]}"]
        if parts[-1] == "" and len(fixed) > 1:
            fixed[-2:] = [rf"{fixed[-2]}\S+"]
        longest = max(parts, key=len).split()
        yield " ".join(longest), re.compile(value.join(fixed))


def outputs(text):
    """What each page shows below its `$ unidle` lines, in one line each, without patches."""
    shown, in_patch = None, False
    for line in [*text.split("\n"), "end"]:
        in_patch = line.startswith("    @@") or in_patch and line != ""
        if line.startswith("    $ ") or line and not line.startswith("    "):
            if shown:
                yield " ".join(" ".join(shown).split())
            shown = [] if line.startswith("    $ unidle") else None
        elif shown is not None and not in_patch and not re.match(r"\s*[-+|] ?(?:\S+ = |\+\+|--)", line):
            shown.append(re.sub(r"(?<=\S)  +", " | ", line))  # columns


def unknown_sentences(output, known):
    """A value within a message may be a message of its own, and is not taken as known otherwise."""
    covered = bytearray(len(output))
    for some_words, message in known:
        for found in message.finditer(output) if some_words in output else ():
            for begin, end in found.regs[1:]:
                covered[begin:end] = b"\1" * (end - begin)
    rest = "".join("\n" if is_known else letter for letter, is_known in zip(output, covered))
    return SENTENCE.findall(rest)


def faults(name, text, program, known, dev):
    for command in commands(text):
        for why in unknown_words(command, program):
            yield f"{name}: `{command.strip()}`: {why}"
    for word in DEV.findall(text):
        if not re.search(rf"^  {word}\b", dev, re.M):
            yield f"{name}: ./dev {word}: no such command"
    for output in outputs(text):
        for sentence in unknown_sentences(output, known):
            yield f"{name}: the program prints nothing like: {sentence}"


def self_test(check):
    page = "    $ unidle diagnose --format text\n    Device: 2.2 % busy on average.\n\n`./dev test`\n"
    wrong = {
        "diagnose": "diagnoze",
        "--format": "--fromat",
        "Device: 2.2 % busy on average.": "the device has much to do",
        "./dev test": "./dev tset",
        "--format text": "--apply loader.wokers=2",
        "diagnose --format text": "cache lisst",
        "    $ unidle diagnose": "```\nsudo unidle diagnoze\n```\n    $ unidle diagnose",
    }
    page += "`pip install unidle --upgrade`, `import unidle as u`, `unidle`\n"
    assert not list(check("page", page)), list(check("page", page))
    for before, after in wrong.items():
        assert list(check("page", page.replace(before, after))), after
    print("pages: the check works")


def main():
    program = Program(sys.argv[1])
    sources = [path for path in (ROOT / "src" / "unidle").rglob("*.cpp") if not path.stem.endswith("_test")]
    known = list(messages("\n".join(path.read_text(encoding="utf-8") for path in sources)))
    dev = subprocess.run(["bash", ROOT / "dev", "help"], capture_output=True, text=True).stdout

    def check(name, text):
        return faults(name, text, program, known, dev)

    if "--self-test" in sys.argv:
        return self_test(check)
    found = []
    for path in [*ROOT.glob("README*.md"), *sorted(ROOT.glob("docs/*.md"))]:
        text = path.read_text(encoding="utf-8")
        if ".zh-CN" in path.name:
            text = re.sub(r"(?m)^(    \$ )unidle", r"\1 unidle", text)  # the output is in Chinese
        found += check(path.relative_to(ROOT), text)
    print("\n".join(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
