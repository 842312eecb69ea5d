"""Hides our stack frames: from warnings, log records and tracebacks, and from torch's compiler.

All code of ours says that it is of a file whose name begins with MARK. Python's warnings count no frames
whose file name has "importlib" and "_bootstrap" in it when they look for the caller (stacklevel), so that a
warning from a wrapped function names the same line as without us; logging looks for its caller in the same
way. And torch's compiler passes over frames of files whose name begins with "<frozen importlib": else it
would compile our patches wherever they are called between two of its graphs.
"""

import functools
import importlib.machinery
import os
import sys
import types

_ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
MARK = "<frozen importlib._bootstrap unidle"
_MACHINERY = "<frozen importlib"


def renamed(code, name):
    """The code object, and all code objects within it, with `name` as their file name."""
    within = tuple(renamed(one, name) if isinstance(one, types.CodeType) else one for one in code.co_consts)
    return code.replace(co_filename=name, co_consts=within)


def _name(path):
    return "%s/%s>" % (MARK, os.path.relpath(path, _ROOT))


class _Loader(importlib.machinery.SourceFileLoader):
    """Of one module of ours, or of a folder of them. Its cached byte code is as ever: the names are changed
    each time."""

    def get_code(self, fullname):
        return renamed(super().get_code(fullname), _name(self.path))

    def exec_module(self, module):
        if self.is_package(module.__name__):
            hide_modules(os.path.dirname(self.path))
        super().exec_module(module)


def hide_modules(folder):
    """Modules of that folder that are imported from now on."""
    sys.path_importer_cache[folder] = importlib.machinery.FileFinder(folder, (_Loader, [".py"]))


def hide_functions(namespace):
    """Functions of a module that is imported already."""
    for value in namespace.values():
        if isinstance(value, types.FunctionType) and value.__globals__ is namespace:
            value.__code__ = renamed(value.__code__, _name(value.__code__.co_filename))


def wraps(original):
    """Like functools.wraps, also for what has no attributes of its own."""

    def decorate(wrapper):
        try:
            functools.update_wrapper(wrapper, original)
        except AttributeError:
            pass
        return wrapper

    return decorate


def strip(trace):
    """The traceback without our frames, and without those of Python's import machinery that lead to them:
    Python leaves these out by itself where they lead straight to the module."""
    kept, hidden = [], False
    while trace is not None:
        name = trace.tb_frame.f_code.co_filename
        if name.startswith(MARK):
            while kept and kept[-1].tb_frame.f_code.co_filename.startswith(_MACHINERY):
                kept.pop()
            hidden = True
        elif not (hidden and name.startswith(_MACHINERY)):
            kept.append(trace)
            hidden = False
        trace = trace.tb_next
    for one, follower in zip(kept, kept[1:] + [None]):
        if one.tb_next is not follower:
            one.tb_next = follower
    return kept[0] if kept else None


hide_functions(globals())
