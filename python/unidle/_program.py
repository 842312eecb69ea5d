"""Calls the program `unidle` for functions that this package does not implement."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Optional, Union

from unidle.errors import Error, InputError, MissingError

PathLike = Union[str, "os.PathLike[str]"]


def program() -> str:
    """The path of the program `unidle`."""
    here = Path(__file__).parent
    # Like the library: in a wheel, installed as PREFIX/share/unidle/python/unidle, in a checkout.
    for folder in (here / "_installed", here.parents[3], here.parents[1] / "build"):
        path = folder / "bin" / "unidle"
        if path.is_file():
            return str(path)
    found = shutil.which("unidle")
    if found is None:
        raise MissingError("unidle: the program is not on PATH (build it with ./dev build core)")
    return found


def main() -> None:
    """The entry point of pip's script `unidle`: replaces this process with the program."""
    path = program()
    os.execv(path, [path, *sys.argv[1:]])


def report(record: PathLike, output: Optional[PathLike] = None) -> Path:
    """Writes the report of a record (`unidle report`), an HTML file that needs no network. The default
    `output` is `report.html` in the record's folder. Returns its path."""
    command = [program(), "report", os.fspath(record)]
    if output is not None:
        command += ["-o", os.fspath(output)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or [f"unidle report ended with {done.returncode}"]
        raise {2: InputError, 3: MissingError}.get(done.returncode, Error)(lines[-1])
    return Path(done.stdout.strip().splitlines()[-1])
