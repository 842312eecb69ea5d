"""Notes of this process, one JSON object per line, in a file beside the ring: docs/probe-format.md."""

import os
import time

from _unidle_shim.host.exception_origin import pass_on

_started = (0, 0)  # process number, see process_start


def write_line(fields):
    """Appends one note. Reopens the file each time: the program may close every descriptor that it finds."""
    write_notes('{"t_ns":%d,%s}\n' % (time.monotonic_ns(), fields))


def process_start():
    """Clock ticks from the machine's start to this process's start: with the process id, they identify a
    process. 0 without /proc."""
    global _started
    if _started[0] != os.getpid():
        try:
            with open("/proc/self/stat", "rb") as file:
                _started = os.getpid(), int(file.read().rsplit(b")", 1)[1].split()[19])
        except (OSError, ValueError, IndexError):
            _started = os.getpid(), 0
    return _started[1]


def write_notes(lines):
    try:
        path = os.path.join(
            os.environ["UNIDLE_PROBE_DIR"], "%d.%d.notes.jsonl" % (os.getpid(), process_start())
        )
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            os.write(handle, lines.encode("utf-8", "replace"))
        finally:
            os.close(handle)
    except (OSError, KeyError) as failure:  # a full disk, a deleted folder: the run continues unobserved
        pass_on(failure)
