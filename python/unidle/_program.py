"""Calls the program `unidle` for functions that this package does not implement."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from typing import Union

from unidle._places import places
from unidle.errors import Error, InputError, MissingError

PathLike = Union[str, "os.PathLike[str]"]


def program() -> str:
    """The path of the program `unidle`."""
    for path in places("bin/unidle"):
        if path.is_file():
            return str(path)
    found = shutil.which("unidle")
    if found is None:
        raise MissingError("unidle: the program is not on PATH (build it with ./dev build core)")
    return found


def main() -> None:
    """`python -m unidle`: replaces this process with the program."""
    path, words = program(), sys.argv[1:]
    if words[:1] == ["demo"]:  # trains with this Python
        words[1:1] = ["--python", sys.executable]
    os.execv(path, [path, *words])


def asked(*command: str, ends: tuple = (0,)) -> str:
    """Returns what the program answers, if it ends with one of these codes."""
    done = subprocess.run(command, capture_output=True, text=True, errors="replace")
    if done.returncode not in ends:
        lines = done.stderr.strip().splitlines() or [f"unidle ended with {done.returncode}"]
        raise {2: InputError, 3: MissingError}.get(done.returncode, Error)(lines[-1])
    return done.stdout
