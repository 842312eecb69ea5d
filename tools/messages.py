#!/usr/bin/env python3
"""Compares the catalogues of translations (po/*.po) with the sources.

    tools/messages.py            reports missing, unused and wrong entries; exits with 1 if there are any
    tools/messages.py --update   adds new messages without a translation, takes unused ones out, sorts by file

A message is a text that is passed to translate(), or a text in the folders and files of SPOKEN that has at
least two words or is passed to say() or word(). ENGLISH and NOT_SPOKEN list texts for machines. RECORDED are
files of Python whose sentences stand in records, from where answers quote them.
"""

import argparse
import ast
import dataclasses
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDERS = ("src/unidle", "engine")

# Folders and files whose texts all have translations.
SPOKEN = tuple(
    "src/unidle/" + place
    for place in (
        "account/run_data.cpp",
        "check/gpu_problems.cpp",
        "check/problems.cpp",
        "check/render.cpp",
        "diagnose/",
        "experiment/equal_samples.cpp",
        "experiment/parity.cpp",
        "experiment/protection.cpp",
        "monitor/collector.cpp",
        "monitor/lines.cpp",
        "monitor/live_page.cpp",
        "monitor/screen.cpp",
        "monitor/summary.cpp",
        "report/",
        "slurm/job_view.cpp",
        "slurm/tables.cpp",
        "telemetry/gpu.cpp",
        "trace/compared.cpp",
        "trace/summary.cpp",
        "trace/text.cpp",
        "tune/",
    )
)
RECORDED = (
    *(f"python/unidle/data/recognition/{name}.py" for name in ("hints", "pictures", "rows", "written")),
    *(f"python/shim/_unidle_shim/{name}.py" for name in ("facts/replaceable", "samples/own_state")),
    *(f"python/shim/_unidle_shim/{name}.py" for name in ("samples/row_access", "samples/row_code")),
    *(f"python/shim/_unidle_shim/{name}.py" for name in ("samples/subsets", "samples/whole_batches")),
    *(f"python/shim/_unidle_shim/knobs/{name}.py" for name in ("trimmed_padding", "validation_interval")),
    *(
        f"python/shim/_unidle_shim/knobs/{name}.py"
        for name in ("actuators", "fp16", "fused", "gathered_rows")
    ),
    *(f"python/shim/_unidle_shim/knobs/{name}.py" for name in ("kept_calls", "kept_samples", "non_blocking")),
    "python/shim/_unidle_shim/knobs/package_options.py",
    "python/shim/_unidle_shim/facts/profiler_window.py",
    "python/shim/_unidle_shim/samples/trailing_padding.py",
    *(f"python/shim/_unidle_shim/source/{name}.py" for name in ("purity", "side_effects", "stand_in")),
)
ASIDE = (
    "_test.cpp",
    "/testing/",
    "/main/",
    "/gpu_table.cpp",
    "/document.cpp",
)  # those of them that no person reads

# Texts that are the same in every language: code, and texts of other programs.
ENGLISH = {
    ' class="word"',
    " - unidle report",
    "(anonymous namespace)::",
    "CPU",
    "GPU",
    '@unidle.cached(".unidle/cache", version=1)',
    "cpupower frequency-set -g performance",
    "expected one of ",
    "import unidle",
    "HtoD (Pageable -> Device)",
    "HtoD (Pinned -> Device)",
    "nvidia-smi --compute-mode=0",
    "nvidia-smi -i {} -pl {:.0f}",
    "nvidia-smi -pm 1",
    'torch.compile(model, mode="reduce-overhead")',
    "unidle monitor",
    "unidle report",
    "unidle run",
    "with open(",
}

# Calls whose texts stay English: errors and the log, and calls whose texts no person sees.
NOT_SPOKEN = {
    "Error",
    "fail",
    "system_error",
    "warn",
    "info",
    "debug",
    "log",
    "starts_with",
    "ends_with",
    "find",
    "contains",
    "query",
    "prepare",
    "metric",
    "static_assert",
    "add_command",
}

HEADER = """msgid ""
msgstr ""
"Project-Id-Version: unidle\\n"
"PO-Revision-Date: 2026-01-01 00:00+0000\\n"
"Last-Translator: unidle\\n"
"Language-Team: Chinese (simplified)\\n"
"Language: zh_CN\\n"
"MIME-Version: 1.0\\n"
"Content-Type: text/plain; charset=UTF-8\\n"
"Content-Transfer-Encoding: 8bit\\n"
"""

TOKEN = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"(?P<mark>[^(\s]*)\((?P<raw>.*?)\)(?P=mark)"|"(?P<text>(?:[^"\\\n]|\\.)*)"'
    r"|'(?:[^'\\\n]|\\.[^'\n]*)'|(?P<name>[A-Za-z_]\w*)|(?P<number>\d[\w.']*)|(?P<sign>\S)",
    re.DOTALL,
)


@dataclasses.dataclass
class Text:
    """A string literal of a source, with adjacent ones joined."""

    text: str
    path: str
    line: int
    calls: tuple  # the names of the enclosing calls, the nearest last


def unescaped(text):
    return re.sub(r"\\(.)", lambda m: {"n": "\n", "t": "\t"}.get(m[1], m[1]), text)


def texts_of(source, path):
    """All string literals of a C++ source except those of #include."""
    found, opened, before, joins = [], [], "", False
    source = re.sub(r"^#\s*include.*$", "", source, flags=re.MULTILINE)
    for match in TOKEN.finditer(source):
        if match[0].startswith(("//", "/*")):
            continue
        text = match["raw"] if match["raw"] is not None else match["text"]
        if text is not None:
            text = text if match["raw"] is not None else unescaped(text)
            if joins:
                found[-1].text += text
            else:
                line = source.count("\n", 0, match.start()) + 1
                found.append(Text(text, path, line, tuple(opened)))
            joins = True
            continue
        joins = False
        if match["sign"] in ("(", "{", "["):
            opened.append(before)
        elif match["sign"] in (")", "}", "]") and opened:
            opened.pop()
        before = match["name"] or ("" if match["sign"] else before)
    return found


CODE = re.compile(r"[\w.]+[(\[]|import ")  # at the beginning


def sentences_of(source, path):
    """The texts of a Python source that are sentences; {} stands for the value of a % and of an f-string."""
    tree = ast.parse(source)
    aside = set()
    for node in ast.walk(tree):
        parts = node.body[:1] if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) else ()
        parts = [one for one in parts if isinstance(one, ast.Expr)]  # a docstring
        if isinstance(node, (ast.Raise, ast.JoinedStr)):
            parts = list(ast.iter_child_nodes(node))
        aside.update(id(inner) for part in parts for inner in ast.walk(part))
    nodes = [node for node in ast.walk(tree) if isinstance(node, (ast.Constant, ast.JoinedStr))]
    for node in sorted(nodes, key=lambda node: (node.lineno, node.col_offset)):
        if id(node) in aside:
            continue
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = re.sub(r"%(?:\.\d)?[sdf]", "{}", node.value)
        elif isinstance(node, ast.JoinedStr):
            text = "".join(one.value if isinstance(one, ast.Constant) else "{}" for one in node.values)
        else:
            continue
        if len(WORD.findall(text)) > 2 and " " in text and not CODE.match(text):
            yield Text(text, path, node.lineno, ())


def sources():
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            name = str(path.relative_to(ROOT))
            if path.suffix in (".cpp", ".h") and not any(part in "/" + name for part in ASIDE):
                yield name, path.read_text(encoding="utf-8")


MARKUP = re.compile(r"<[^<>]*>")
WORD = re.compile(r"[^\W\d_]{2,}")


def is_message(text):
    """Whether a person reads it, judged by its place and its words."""
    nearest = text.calls[-1] if text.calls else ""
    rest = re.sub(r"\{[^{}]*\}", "", MARKUP.sub("", text.text))
    words = WORD.findall(rest)
    if text.path in RECORDED:
        return True
    if nearest == "translate":
        return bool(rest.strip()) and text.text not in ENGLISH
    if not text.path.startswith(SPOKEN) or text.text in ENGLISH or text.text.lstrip().startswith("#"):
        return False
    if nearest in ("say", "word"):
        return bool(words)
    return len(words) > 1 and " " in text.text and not any(call in NOT_SPOKEN for call in text.calls)


@dataclasses.dataclass
class Entry:
    message: str
    translation: str
    notes: list  # translators' comments and flags, unchanged


def unquoted(line):
    return unescaped(line[line.index('"') + 1 : line.rindex('"')])


def read_catalogue(path):
    """The entries by message, without the header."""
    entries, entry, part = {}, None, ""
    for line in path.read_text(encoding="utf-8").split("\n") if path.exists() else []:
        if line.startswith("msgid "):
            entry = Entry(unquoted(line), "", entry.notes if entry and part == "notes" else [])
            part = "message"
        elif line.startswith("msgstr "):
            entry.translation, part = unquoted(line), "translation"
        elif line.startswith('"') and part in ("message", "translation"):
            setattr(entry, part, getattr(entry, part) + unquoted(line))
        elif line.startswith("#") and not line.startswith("#:"):
            if part != "notes":
                add(entries, entry)
                entry, part = Entry("", "", []), "notes"
            entry.notes.append(line)
        elif part == "translation":
            add(entries, entry)
            entry, part = None, ""
    add(entries, entry)
    return entries


def add(entries, entry):
    if entry is not None and entry.message:
        entries[entry.message] = entry


def quoted(text):
    return (
        '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t") + '"'
    )


def write_catalogue(path, entries, places):
    """Writes the entries in the order of the sources."""
    blocks = [HEADER]
    order = {message: number for number, message in enumerate(places)}
    for message in sorted(entries, key=order.get):
        files = sorted({place[0] for place in places[message] if place[0].startswith(SPOKEN)}) or [
            places[message][0][0]
        ]
        entry = entries[message]
        lines = [*entry.notes, *(f"#: {file}" for file in files)]
        blocks.append(
            "\n".join([*lines, f"msgid {quoted(message)}", f"msgstr {quoted(entry.translation)}\n"])
        )
    path.write_text("\n".join(blocks), encoding="utf-8")


def placeholders(text):
    """The placeholders of a message, as positions or names with their formats, sorted."""
    found = []
    for inside in re.findall(r"\{([^{}]*)\}", text.replace("{{", "").replace("}}", "")):
        name, colon, form = inside.partition(":")
        found.append((name or str(len(found))) + colon + form)
    return sorted(found)


def mixes_positions(text):
    """Whether it has both {} and {0}: fmt refuses such a text, and the English one would be said."""
    names = [inside.partition(":")[0] for inside in re.findall(r"\{([^{}]*)\}", text.replace("{{", ""))]
    return "" in names and any(name.isdigit() for name in names)


def problems(catalogue, entries, places, messages):
    """The faults of a catalogue, one line each."""
    for message in messages:
        if message not in entries:
            file, line = places[message][0]
            yield f"{file}:{line}: messages: {catalogue} has no entry for {quoted(message)}"
    for message, entry in entries.items():
        if message not in places:
            yield f"{catalogue}: messages: no source has {quoted(message)}"
        elif not entry.translation or any(note.startswith("#,") and "fuzzy" in note for note in entry.notes):
            yield f"{catalogue}: messages: {quoted(message)} is not translated"
        elif placeholders(message) != placeholders(entry.translation):
            yield f"{catalogue}: messages: the placeholders of {quoted(message)} and its translation differ"
        elif mixes_positions(entry.translation):
            yield f"{catalogue}: messages: the translation of {quoted(message)} mixes {{}} and {{0}}"


def self_test():
    """Proves that each kind of mistake is found."""
    source = """#include "a b.h"
    // "no text of ours"
    style.say("waits {} of "
              "each step"); throw Error("is no file"); fact("plain text here"); key("word"); R"(raw)";
    """
    texts = texts_of(source, "src/unidle/diagnose/a.cpp")
    assert [text.text for text in texts] == [
        "waits {} of each step",
        "is no file",
        "plain text here",
        "word",
        "raw",
    ], texts
    messages = {text.text: None for text in texts if is_message(text)}
    assert list(messages) == ["waits {} of each step", "plain text here"], messages
    python = """def of(value):
        \'\'\'No sentence of ours.\'\'\'
        if value:
            raise ValueError("no sentence for answers")
        return "%s has %d rows of it" % value, f"{value} is no table", "unidle.data.table(paths, more, words)"
    """
    sentences = [text.text for text in sentences_of(python, "a.py")]
    assert sentences == ["{} has {} rows of it", "{} is no table"], sentences
    places = {text.text: [(text.path, text.line)] for text in texts}
    found = {
        "no entry": {"plain text here": "b"},
        "no source": {"waits {} of each step": "{}", "plain text here": "b", "gone": "c"},
        "not translated": {"waits {} of each step": "{}", "plain text here": ""},
        "placeholders": {"waits {} of each step": "{1}", "plain text here": "b"},
    }
    for expected, translations in found.items():
        entries = {message: Entry(message, text, []) for message, text in translations.items()}
        told = list(problems("po/a.po", entries, places, messages))
        assert len(told) == 1 and expected in told[0], (expected, told)
    mixed = {"{} of {}": Entry("{} of {}", "{0}/{}", [])}
    assert "mixes" in next(problems("po/a.po", mixed, {"{} of {}": [("a.cpp", 1)]}, {}))
    right = {"waits {} of each step": "{0}", "plain text here": "b"}
    entries = {message: Entry(message, text, []) for message, text in right.items()}
    assert not list(problems("po/a.po", entries, places, messages))
    print("messages: the check works")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--update", action="store_true", help="rewrite the catalogues")
    parser.add_argument("--self-test", action="store_true", help="prove that mistakes are found")
    arguments = parser.parse_args()
    if arguments.self_test:
        self_test()
        return 0
    texts = [text for name, source in sources() for text in texts_of(source, name)]
    for name in RECORDED:
        texts += sentences_of((ROOT / name).read_text(encoding="utf-8"), name)
    texts.sort(
        key=lambda text: not text.path.startswith(SPOKEN)
    )  # stable: the place where a message is printed comes first
    messages = {text.text: None for text in texts if is_message(text)}  # in the order of the sources
    places = {}
    for text in texts:
        places.setdefault(text.text, []).append((text.path, text.line))
    failed = False
    for path in sorted((ROOT / "po").glob("*.po")):
        entries = read_catalogue(path)
        if arguments.update:
            kept = {message for message, entry in entries.items() if entry.translation or message in messages}
            entries = {
                message: entry for message, entry in entries.items() if message in kept and message in places
            }
            entries.update(
                {message: Entry(message, "", []) for message in messages if message not in entries}
            )
            write_catalogue(path, entries, places)
        for problem in problems(path.relative_to(ROOT), entries, places, messages):
            failed = True
            print(problem, file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
