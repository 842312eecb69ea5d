"""Imported by Python at start-up; `unidle run` puts its folder first on PYTHONPATH.

Starts the observation, then runs the sitecustomize that would have been imported without us. A failure here
must not show in the observed program.
"""

import os
import sys


def _start():
    folder = os.path.dirname(os.path.abspath(__file__))
    if folder in sys.path:
        sys.path.remove(folder)
    if not os.environ.get("UNIDLE_PROBE_DIR") or sys.version_info < (3, 9):
        return
    sys.path.insert(0, folder)
    try:
        import _unidle_shim
    finally:
        sys.path.remove(folder)
    _unidle_shim.start()


def _pass_on():
    """Runs the next sitecustomize on the path, as the module of that name. Its exceptions are the
    program's."""
    if sys.version_info < (3, 5):
        return
    from importlib.machinery import PathFinder
    from importlib.util import module_from_spec

    spec = PathFinder.find_spec("sitecustomize", sys.path)
    if spec is None or spec.loader is None:
        return
    module = module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


try:
    _start()
except Exception:
    pass
_pass_on()
