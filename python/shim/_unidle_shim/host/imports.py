"""Import hooks: run a callback right after the program has imported a certain module."""

import sys

from _unidle_shim.host.guard import caught

_watched = {}  # name of a module -> callbacks
_running = set()  # watched modules whose code runs now


class _Finder:
    """First on sys.meta_path, for watched names only: finds the module as without us, and calls a callback
    after its execution."""

    def find_spec(self, name, path=None, target=None):
        if name not in _watched:
            return None
        spec = _find_without_us(name, path, target)
        try:
            if spec is not None and spec.loader is not None and hasattr(spec.loader, "exec_module"):
                spec.loader = _Loader(spec.loader, name)
        except BaseException as failure:
            caught(failure)
        return spec


def _find_without_us(name, path, target):
    for finder in sys.meta_path:
        if isinstance(finder, _Finder) or not hasattr(finder, "find_spec"):
            continue
        spec = finder.find_spec(name, path, target)
        if spec is not None:
            return spec
    return None


class _Loader:
    """Replaces the real loader while the module is executed, then restores it."""

    def __init__(self, real, name):
        self._real, self._name = real, name

    def __getattr__(self, name):
        return getattr(self._real, name)

    def create_module(self, spec):
        return self._real.create_module(spec)

    def exec_module(self, module):
        try:
            module.__loader__ = self._real
            if module.__spec__ is not None:
                module.__spec__.loader = self._real
        except BaseException as failure:
            caught(failure)
        _running.add(self._name)
        try:
            self._real.exec_module(module)
        finally:
            _running.discard(self._name)
        for callback in tuple(_watched[self._name]):
            try:
                callback(module)
            except BaseException as failure:
                caught(failure)


def watch(name, callback):
    """Calls `callback(module)` once `name` is imported, or at once if it already is. Several callbacks are
    called in the order of their calls of watch(), each once."""
    if name in sys.modules and name not in _running:
        callback(sys.modules[name])
        return
    callbacks = _watched.setdefault(name, [])
    if callback not in callbacks:
        callbacks.append(callback)
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


def watch_failures():
    """Watches uncaught exceptions and those that the program prints: both identify a failed run."""
    from _unidle_shim.host import exceptions

    exceptions.install_hooks()
    watch("threading", exceptions.threading_imported)
    watch("traceback", exceptions.traceback_imported)
