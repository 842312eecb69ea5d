"""Records programs.py with a build's unidle, and the engine, and writes records.tar.xz beside it.

    python tests/account/record_corpus.py build/bin [NAME ...]

Needs a Python with torch. Takes a few minutes. With names, only these are recorded again.
"""

import lzma
import shutil
import signal
import sqlite3
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path

from programs import PROGRAMS

HERE = Path(__file__).resolve().parent
ARCHIVE = HERE / "records.tar.xz"
# For the engine, which marks its own steps: a dozen with a small configuration.
ENGINE = ["train.samples=240", "checkpoint.interval=0", "--format", "json", "-q"]


def recorded(unidle, name, folder, options=()):
    """Runs one program under observation and returns the process to wait for."""
    command = [unidle, "run", "-o", folder / name, *options, "--", sys.executable, HERE / "programs.py", name]
    work = folder / f"{name}-work"
    work.mkdir()
    return subprocess.Popen(command, cwd=work, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def cut_off(process):
    """Kills the observer as soon as the record has steps; the program ends normally."""
    time.sleep(20)
    process.send_signal(signal.SIGKILL)
    process.wait()


def record(unidle, name, folder):
    busy = []
    if name == "crowded":
        busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"])]
    process = recorded(unidle, name, folder, ["--timeout", "20"] if name == "timed-out" else [])
    if name == "cut-off":
        cut_off(process)
    process.wait()
    for each in busy:
        each.kill()
        each.wait()


def record_engine(bin_folder, folder):
    config = folder / "engine.yaml"
    shutil.copy(HERE.parent.parent / "workloads" / "superres" / "naive.yaml", config)
    engine = bin_folder / "unidle-train"
    subprocess.run([engine, config, "--prepare"], cwd=folder, stdout=subprocess.DEVNULL, check=True)
    command = [bin_folder / "unidle", "run", "-o", folder / "engine", "--", engine, config, *ENGINE]
    subprocess.run(command, cwd=folder, stdout=subprocess.DEVNULL, check=True)


def packed(folder, name, into):
    """Writes one file without free pages and without a write-ahead log beside it."""
    source = folder / name / "record.db"
    with sqlite3.connect(source) as record:
        record.execute("VACUUM INTO ?", [str(into / f"{name}.db")])


def main():
    bin_folder = Path(sys.argv[1]).resolve()
    names = sys.argv[2:] or [*PROGRAMS, "engine"]
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        records = folder / "records"
        records.mkdir()
        if sys.argv[2:] and ARCHIVE.exists():
            with tarfile.open(ARCHIVE) as old:
                old.extractall(records, filter="data")
        for name in names:
            (records / f"{name}.db").unlink(missing_ok=True)
            if name == "engine":
                record_engine(bin_folder, folder)
            else:
                record(bin_folder / "unidle", name, folder)
            packed(folder, name, records)
            write(records)
            print(name, (records / f"{name}.db").stat().st_size, flush=True)


def write(records):
    fresh = ARCHIVE.with_suffix(".new")
    with lzma.open(fresh, "wb", preset=9) as packed_file, tarfile.open(fileobj=packed_file, mode="w") as tar:
        for each in sorted(records.iterdir()):
            info = tarfile.TarInfo(each.name)
            info.size = each.stat().st_size
            with each.open("rb") as content:
                tar.addfile(info, content)
    shutil.move(fresh, ARCHIVE)


if __name__ == "__main__":
    main()
