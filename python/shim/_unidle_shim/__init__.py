"""The Python side of the probe: records where the time of a PyTorch program goes, for `unidle run`.

Uses only the standard library. Start-up imports little more than the import hook, and what looks where the
program's own start-up takes its time; everything else waits until the program imports torch or argparse. A
failure in this package turns observation off and writes one `shim` note; the program never sees it.

The folders, each of which imports only from those above it:

    host      running inside the user's process: hidden frames, guarded calls, patching, notes and the ring
    loop      which step of the training loop a call belongs to, and the overhead of observation
    source    static analysis of the program's functions
    samples   the cost of making samples
    facts     the settings in effect in the running program
    patches   patches of functions of torch and Python, which show what the program does
    trial     code that only trials of `unidle optimize` need
    knobs     changes settings of the running program
"""

import os
import sys
import time

from _unidle_shim.host import hidden_frames

hidden_frames.hide_modules(__path__[0])
hidden_frames.hide_modules(os.path.join(__path__[0], "host"))


def start():
    """Called once by sitecustomize, in every Python process of the observed command."""
    from _unidle_shim.host import guard, imports, notes, startup

    guard.on = True
    notes.write_line('"type":"shim","status":"on","python":"%d.%d.%d"' % sys.version_info[:3])
    imports.watch("torch", _torch_imported)
    imports.watch("argparse", _argparse_imported)
    # It imports torch, whose import watches it: its functions do not exist yet then.
    imports.watch("safetensors.torch", lambda module: None)
    if os.environ.get("UNIDLE_MUTED"):
        from _unidle_shim.trial import muted_trackers

        muted_trackers.start()
    imports.watch_failures()
    os.register_at_fork(after_in_child=_forked)
    startup.begin()


def attach():
    """Called by `unidle.observe()`, in a program that runs already and whose objects may exist already; again
    after detach()."""
    from _unidle_shim.host import exceptions, guard, imports, notes, startup

    again, startup.since_ns = startup.since_ns > 0, time.monotonic_ns()
    if not again:
        start()
        return
    guard.on, guard.failed = True, False
    exceptions.begin_again()
    notes.write_line('"type":"shim","status":"on","python":"%d.%d.%d"' % sys.version_info[:3])
    session = sys.modules.get("_unidle_shim.session")
    if session is None or session.state.torch is None:
        imports.watch("torch", _torch_imported)
    else:
        session.begin_again()


def detach(failure=None):
    """Ends the observation; the patches stay, and only call the original. `failure`: the exception that left
    the observed code. Whoever prints it does so after us, or in another process."""
    from _unidle_shim.host import exceptions, guard, startup

    if failure is not None:
        guard.value_or_none(exceptions.note, type(failure), failure, failure.__traceback__, False)
    startup.end()
    session = sys.modules.get("_unidle_shim.session")
    if guard.on and session is not None:
        session.finish()
    guard.on = False


def _torch_imported(torch):
    from _unidle_shim.host import guard

    if guard.on:
        from _unidle_shim import install

        install.begin(torch)


def _argparse_imported(argparse):
    from _unidle_shim.facts import options

    options.argparse_imported(argparse)


def _forked():
    from _unidle_shim.host import guard

    try:
        session = sys.modules.get("_unidle_shim.session")
        if guard.on and session is not None:
            session.forked()
    except BaseException as failure:
        guard.caught(failure)


hidden_frames.hide_functions(globals())
