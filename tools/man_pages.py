"""Writes manual pages from the help texts of a program: `man_pages.py UNIDLE FOLDER`

FOLDER/unidle.1, and FOLDER/unidle-COMMAND.1 for each command, with its subcommands. A command whose help the
program cannot print (`unidle train` without torch) has no page. --self-test proves that it can fail.
"""

import os
import re
import subprocess
import sys
import time
from pathlib import Path

ENTRY = re.compile(r"^  (\S.*?)(?:  +(\S.*))?$")


class Help:
    """A help text: what the command is, how it is called, lists of (title, [(term, text), ...]), the rest."""

    def __init__(self, text):
        self.about, self.usage, self.lists, self.examples, self.paragraphs = [], "", [], [], []
        title = None
        for line in text.splitlines():
            if line.startswith("Usage: "):
                self.usage = line.removeprefix("Usage: ")
            elif not self.usage:
                self.about.append(line)
            elif re.fullmatch(r"[A-Z][A-Za-z ]*:", line):
                title = line[:-1]
                if title != "Examples":
                    self.lists.append((title, []))
            elif not line.strip():
                title = title if title == "Examples" else None
            elif title == "Examples":
                self.examples.append(line.strip())
            elif title and line.startswith(" " * 12):
                term, known = self.lists[-1][1][-1]
                self.lists[-1][1][-1] = (term, f"{known} {line.strip()}".strip())
            elif title and ENTRY.match(line):
                term, words = ENTRY.match(line).groups()
                self.lists[-1][1].append((term, words or ""))
            else:
                self.paragraphs.append(line.strip())

    def subcommands(self):
        return [term for title, entries in self.lists if title == "Subcommands" for term, _ in entries]


def escaped(text):
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("~", "\\(ti").replace("^", "\\(ha")
    return "\\&" + text if text.startswith((".", "'")) else text


def listing(entries, commands_of=None):
    for term, text in entries:
        yield ".TP"
        if commands_of:
            yield f".BR {escaped(f'{commands_of}-{term}')} (1)"
        else:
            yield f'.B "{escaped(term)}"'.replace('""', '"')
        yield escaped(text)


def example_lines(lines):
    yield from [".nf", *(escaped(line) for line in lines), ".fi"]


def body(help, commands_of=None, heading=".SH"):
    for title, entries in help.lists:
        yield f'{heading} "{title.upper() if heading == ".SH" else title}"'
        yield from listing(entries, commands_of if title == "Subcommands" else None)


def page(words, help, subs, version):
    name = "-".join(words)
    first = next(line for line in help.about if line.strip()).strip()
    made = time.gmtime(float(os.environ.get("SOURCE_DATE_EPOCH", time.time())))
    yield f'.TH {escaped(name.upper())} 1 {time.strftime("%Y-%m-%d", made)} "unidle {version}" "unidle"'
    yield ".SH NAME"
    yield f"{escaped(name)} \\- {escaped(first.rstrip('.'))}"
    yield ".SH SYNOPSIS"
    yield f'.B "{escaped(help.usage)}"'
    more = [line.strip() for line in help.about if line.strip()][1:]
    if more:
        yield ".SH DESCRIPTION"
        yield from example_lines(more)
    yield from body(help, "unidle" if len(words) == 1 else None)
    for sub, text in subs:
        yield f'.SH "{escaped(" ".join([*words, sub]).upper())}"'
        yield escaped(" ".join(line.strip() for line in text.about if line.strip()))
        yield ".PP"
        yield f'.B "{escaped(text.usage)}"'
        yield from body(text, heading=".SS")
        for paragraph in text.paragraphs:
            yield from (".PP", escaped(paragraph))
    if help.paragraphs:
        yield ".SH NOTES"
        yield from "\n.PP\n".join(escaped(paragraph) for paragraph in help.paragraphs).split("\n")
    if help.examples:
        yield ".SH EXAMPLES"
        yield from example_lines(help.examples)
    if len(words) > 1:
        yield from (".SH SEE ALSO", ".BR unidle (1)")


def help_of(program, *words):
    environment = {**os.environ, "LC_ALL": "C", "COLUMNS": "1000"}
    command = [program, *words, "--help"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    return Help(done.stdout) if done.returncode == 0 and "Usage: " in done.stdout else None


def write_pages(program, folder):
    version = subprocess.run(
        [program, "--version"], capture_output=True, text=True, check=True
    ).stdout.split()[1]
    folder.mkdir(parents=True, exist_ok=True)
    top = help_of(program)
    pages = {("unidle",): (top, [])}
    for command in top.subcommands():
        help = help_of(program, command)
        if help is None:
            print(f"man pages: unidle {command} has no help here, and gets no page", file=sys.stderr)
            continue
        subs = [(sub, help_of(program, command, sub)) for sub in help.subcommands()]
        pages["unidle", command] = (help, subs)
    for words, (help, subs) in pages.items():
        text = "\n".join(line for line in page(words, help, subs, version) if line)
        (folder / ("-".join(words) + ".1")).write_text(text + "\n", encoding="utf-8")


def self_test():
    text = """What it is
Usage: unidle x [OPTIONS] SUBCOMMAND

Options:
  -o,--output FILE            Where to
  --format TEXT:{text,json}=text
                              text or json
Subcommands:
  y                           Another

Exit code: 0 all is well.

Examples:
  unidle x -- \\.
"""
    help = Help(text)
    options = [("-o,--output FILE", "Where to"), ("--format TEXT:{text,json}=text", "text or json")]
    assert help.lists[0] == ("Options", options), help.lists
    assert help.subcommands() == ["y"] and help.paragraphs == ["Exit code: 0 all is well."], help.paragraphs
    written = list(page(("unidle", "x"), help, [], "1.0"))
    assert "unidle x \\-\\- \\e." in written and "unidle\\-x \\- What it is" in written, written
    print("man pages: the check works")


if __name__ == "__main__":
    if sys.argv[1:] == ["--self-test"]:
        self_test()
    else:
        write_pages(sys.argv[1], Path(sys.argv[2]))
