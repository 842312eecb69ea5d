"""Loads the part of the shim that is written in C++ (python/native/)."""

import importlib.machinery
import importlib.util
import os
import sys

_loaded = []


def library():
    """The library; None if this Python cannot load it."""
    if not _loaded:
        _loaded.append(_load())
    return _loaded[0]


def _load():
    path = os.environ.get("UNIDLE_LIGHT_LIBRARY")
    if not path or not getattr(sys, "_is_gil_enabled", lambda: True)():
        return None
    try:
        loader = importlib.machinery.ExtensionFileLoader("_unidle_light", path)
        module = importlib.util.module_from_spec(importlib.util.spec_from_loader("_unidle_light", loader))
        loader.exec_module(module)
        return module
    except (ImportError, OSError):
        return None
