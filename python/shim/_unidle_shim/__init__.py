"""The Python side of the probe: tells `unidle run` where the time of a PyTorch program goes.

Standard library only. At start-up nothing is imported but this file and the import hook; everything else waits until
the program imports torch or argparse. Any failure of our own turns the observation off, writes one `shim` note and is never seen
by the program.
"""

import os
import sys
import time

from . import hiding

hiding.hide_modules(__path__[0])
on = False
_noted_off = False
_started = (0, 0)  # process number, see process_start


def start():
    """Called once by sitecustomize, in every Python process of the observed command."""
    global on
    from . import importing

    on = True
    write_line('"type":"shim","status":"on","python":"%d.%d.%d"' % sys.version_info[:3])
    importing.watch("torch", _torch_imported)
    importing.watch("argparse", _argparse_imported)
    if os.environ.get("UNIDLE_MUTED"):
        from . import muted

        muted.start()
    importing.watch_failures()
    os.register_at_fork(after_in_child=_forked)


def off(reason):
    """Our own failure: no more observation in this process. Safe to call from anywhere, as often as one likes."""
    global on, _noted_off
    on = False
    if _noted_off:
        return
    _noted_off = True
    try:
        import traceback

        text = reason if isinstance(reason, str) else "".join(traceback.format_exception_only(type(reason), reason)).strip()
        if isinstance(reason, BaseException) and reason.__traceback__ is not None:
            last = traceback.extract_tb(reason.__traceback__)[-1]
            text += " (%s:%d)" % (os.path.basename(last.filename).rstrip(">"), last.lineno)
        import json

        write_line('"type":"shim","status":"off","reason":' + json.dumps(text))
        session = sys.modules.get(__name__ + ".session")
        if session is not None:
            session.shut_down()
    except Exception as failure:
        from . import guard

        guard.pass_on(failure)


def write_line(fields):
    """Appends one note. The file is opened anew each time: the program may close every descriptor it finds."""
    write_notes('{"t_ns":%d,%s}\n' % (time.monotonic_ns(), fields))


def process_start():
    """When this process was started, in clock ticks since the machine was: with its number, who it is. 0 where /proc is not there."""
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
        path = os.path.join(os.environ["UNIDLE_PROBE_DIR"], "%d.%d.notes.jsonl" % (os.getpid(), process_start()))
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            os.write(handle, lines.encode("utf-8", "replace"))
        finally:
            os.close(handle)
    except (OSError, KeyError) as failure:  # a full disk, a folder that is gone: the run goes on unobserved
        from . import guard

        guard.pass_on(failure)


def _torch_imported(torch):
    if on:
        from . import patching

        patching.begin(torch)


def _argparse_imported(argparse):
    from . import options

    options.argparse_imported(argparse)


def _forked():
    from .guard import caught

    try:
        session = sys.modules.get(__name__ + ".session")
        if on and session is not None:
            session.forked()
    except BaseException as failure:
        caught(failure)


hiding.hide_functions(globals())
