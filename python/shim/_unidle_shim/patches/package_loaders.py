"""Patches of the package's own Loader (unidle.data), if the program has imported it. The package does not
know about them; the patched functions are the same as in torch's loaders."""

import os
import threading

from _unidle_shim.host import imports, places
from _unidle_shim.patches import loaders


def install(state):
    imports.watch("unidle.data.loader", lambda module: _patch(state, module))


def _patch(state, module):
    """Called once the module is imported, which may be before or after torch."""
    places.count_as_library(os.path.dirname(os.path.dirname(module.__file__)))
    options = state.actuators.package_options(module.Loader)
    loaders.patch_loader(state, module.Loader, options, _starts_no_processes)
    state.fetches.append(loaders.patch_iterator(state, module.Iteration))
    state.at_finish.append(lambda: _finish(state))


def _finish(state):
    """Reads the cost of the newest batches. Only the thread that takes them may query it."""
    for loader in state.all_loaders:
        if loader.of_package and threading.get_ident() == state.thread:
            loader.samples.ask_again()


def _starts_no_processes(real):
    return False
