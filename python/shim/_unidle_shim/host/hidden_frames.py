"""Hides our stack frames from warnings, log records, tracebacks and torch's compiler.

All our code objects have a file name that begins with MARK. When Python's warnings look for the caller
(stacklevel), they skip frames whose file name contains "importlib" and "_bootstrap", so that a warning from a
wrapped function names the same line as without us; logging finds its caller the same way. Torch's compiler
skips frames of files whose name begins with "<frozen importlib"; otherwise it would compile our patches when
they are called between two of its graphs.
"""

import builtins
import functools
import importlib.machinery
import os
import sys
import types

_ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
MARK = "<frozen importlib._bootstrap unidle"
_MACHINERY = "<frozen importlib"
_GROUP = getattr(builtins, "BaseExceptionGroup", ())  # since Python 3.11


def renamed(code, name):
    """Returns a copy of the code object, and of all code objects within it, with `name` as their file
    name."""
    within = tuple(renamed(one, name) if isinstance(one, types.CodeType) else one for one in code.co_consts)
    return code.replace(co_filename=name, co_consts=within)


def _name(path):
    return "%s/%s>" % (MARK, os.path.relpath(path, _ROOT))


class _Loader(importlib.machinery.SourceFileLoader):
    """Loads one of our modules or packages. The cached byte code stays unchanged: names are replaced on each
    load."""

    def get_code(self, fullname):
        return renamed(super().get_code(fullname), _name(self.path))

    def exec_module(self, module):
        if self.is_package(module.__name__):
            hide_modules(os.path.dirname(self.path))
        super().exec_module(module)


def hide_modules(folder):
    """Hides the modules of that folder that are imported from now on."""
    sys.path_importer_cache[folder] = importlib.machinery.FileFinder(folder, (_Loader, [".py"]))


def hide_functions(namespace):
    """Hides the functions of a module that is already imported."""
    for value in namespace.values():
        if isinstance(value, types.FunctionType) and value.__globals__ is namespace:
            value.__code__ = renamed(value.__code__, _name(value.__code__.co_filename))


def wraps(original):
    """Like functools.wraps, but accepts objects without attributes."""

    def decorate(wrapper):
        try:
            functools.update_wrapper(wrapper, original)
        except AttributeError:
            pass
        return wrapper

    return decorate


def strip(trace, mark=MARK, machinery=_MACHINERY):
    """Returns the traceback without our frames, and without those of Python's import machinery that lead to
    them: Python removes these itself only if they lead straight to the module. Uses no global names, which
    may be None while Python shuts down."""
    kept, hidden = [], False
    while trace is not None:
        name = trace.tb_frame.f_code.co_filename
        if name.startswith(mark):
            while kept and kept[-1].tb_frame.f_code.co_filename.startswith(machinery):
                kept.pop()
            hidden = True
        elif not (hidden and name.startswith(machinery)):
            kept.append(trace)
            hidden = False
        trace = trace.tb_next
    for one, follower in zip(kept, kept[1:] + [None]):
        if one.tb_next is not follower:
            one.tb_next = follower
    return kept[0] if kept else None


def strip_exception(value):
    """Strips the tracebacks of an exception, of those that it was raised from, and of those in a group."""
    waiting, seen = [value], set()
    while waiting:
        one = waiting.pop()
        if not isinstance(one, BaseException) or id(one) in seen:
            continue
        seen.add(id(one))
        BaseException.with_traceback(one, strip(one.__traceback__))
        waiting += (one.__cause__, one.__context__)
        if isinstance(one, _GROUP):
            waiting += one.exceptions


hide_functions(globals())
