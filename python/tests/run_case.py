"""Shared by tests of `unidle run` and `unidle diagnose` on Python programs: runs, bare and observed, and
their records."""

import glob
import importlib.util
import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import unittest

import note_types
import preloaded

HERE = os.path.dirname(os.path.abspath(__file__))
UNIDLE = os.path.join(os.environ.get("UNIDLE_BIN", ""), "unidle")
TRAIN = os.path.join(HERE, "programs", "train.py")
# The last lines of `unidle run`; the diagnosis in one sentence stands before the record.
OURS = re.compile(
    r"unidle: (recorded|taken|ran|\S+=\S+ refused)\b.*\n|unidle: [A-Z].*[.!?]\n(?=unidle: recorded )"
)

HAS_TORCH = importlib.util.find_spec("torch") is not None
# This one, then those of pyenv from 3.9 on.
PYTHONS = [sys.executable] + sorted(
    glob.glob(os.path.expanduser("~/.pyenv/versions/3.9*/bin/python3"))
    + glob.glob(os.path.expanduser("~/.pyenv/versions/3.1[0-9]*/bin/python3")),
    key=lambda path: [int(number) for number in re.findall(r"\d+", path)],
)
# UNIDLE_FRESH=1: each program gets its own Python in all tests.
PRELOADED = HAS_TORCH and hasattr(os, "pidfd_open") and not os.environ.get("UNIDLE_FRESH")


def without_ours(stderr):
    return re.sub(rf"(?m)^(?:{OURS.pattern})", "", stderr)


def environment(**more):
    kept = {key: value for key, value in os.environ.items() if not key.startswith("UNIDLE_")}
    return dict(kept, **more)


class Record:
    def __init__(self, folder):
        self.folder = folder
        self.database = sqlite3.connect(os.path.join(folder, "record.db"))

    def rows(self, query):
        return self.database.execute(query).fetchall()

    def one(self, query):
        return self.rows(query)[0][0]

    def meta(self, key):
        return json.loads(self.one("select value from meta where key='%s'" % key))

    def notes(self, kind, process=None):
        """All notes of the run, or those of one process."""
        rows = self.rows("select process, body from notes order by t_ns")
        found = [json.loads(body) for number, body in rows if process in (None, number)]
        unlisted = [
            (note["type"], field)
            for note in found
            for field in note
            if not note_types.has(note["type"], field)
        ]
        assert not unlisted, "docs/probe-format.md does not list %s" % sorted(set(unlisted))
        return [note for note in found if note["type"] == kind]

    def settings(self):
        return dict(self.rows("select knob, value from settings order by rowid"))


def started(command, given):
    """The command with a Python that has already imported torch, unless options are given to Python
    itself."""
    options = command[1].startswith("-") and command[1] != "-c"
    if command[0] != sys.executable or options or not PRELOADED:
        return list(command)
    return [preloaded.python(given), *command[1:]]


@unittest.skipUnless(os.path.exists(UNIDLE), "UNIDLE_BIN is not set: there is no unidle to run")
class RunCase(unittest.TestCase):
    fresh = False  # whether each program gets its own Python

    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)

    def command(self, command, given):
        return list(command) if self.fresh else started(command, given)

    def bare(self, *command):
        given = environment()
        return subprocess.run(
            self.command(command, given), cwd=self.folder, env=given, capture_output=True, text=True
        )

    def observed_text(self, program, **more):
        """Observes a program that is given as text, as train.py."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "train.py")
            with open(path, "w", encoding="utf-8") as file:
                file.write(program)
            done = self.observed(sys.executable, path, **more)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def observed(self, *command, options=(), begin=None, **more):
        """Runs it, after begin() in the process that becomes `unidle`, and removes our own last lines from
        its stderr."""
        path = os.path.join(self.folder, "record%d" % len(os.listdir(self.folder)))
        given = environment(**more)
        done = subprocess.run(
            [UNIDLE, "run", "-o", path, *options, "--", *self.command(command, given)],
            cwd=self.folder,
            env=given,
            capture_output=True,
            text=True,
            preexec_fn=begin,
        )
        done.stderr = without_ours(done.stderr)
        self.record = Record(path)
        self.assertEqual(self.record.meta("problems"), [])
        return done

    def same_as_bare(self, *command):
        bare, done = self.bare(*command), self.observed(*command)
        self.assertEqual(
            (done.returncode, done.stdout, done.stderr), (bare.returncode, bare.stdout, bare.stderr)
        )
        return done


@unittest.skipUnless(HAS_TORCH, "this Python has no torch")
class DiagnosedCase(RunCase):
    fresh = True  # a diagnosis reports CPU use by the command's own processes, and by others

    def diagnosed(self, program, *words, code=0, **more):
        """Runs the program; returns the diagnosis."""
        done = self.observed(sys.executable, os.path.join(HERE, "programs", program), *words, **more)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.printed = done.stdout
        self.assertEqual([note for note in self.record.notes("shim") if note["status"] == "off"], [])
        path = max(
            (
                os.path.join(self.folder, name)
                for name in os.listdir(self.folder)
                if name.startswith("record")
            ),
            key=os.path.getmtime,
        )
        asked = subprocess.run(
            [UNIDLE, "diagnose", path, "--format", "json"], env=environment(), capture_output=True, text=True
        )
        self.assertEqual(asked.returncode, code, asked.stdout + asked.stderr)
        self.said = json.loads(asked.stdout)
        return {finding["id"]: finding for finding in self.said["findings"]}
