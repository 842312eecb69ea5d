"""Stack frames: whose code one runs (the program's, a library's, ours), and the file and line of it."""

import os
import sys
import sysconfig

from _unidle_shim.host.hidden_frames import MARK

_OURS = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "")
_FOREIGN = tuple(
    sorted(
        {
            os.path.join(path, "")
            for path in (
                sysconfig.get_paths().get(key) for key in ("stdlib", "platstdlib", "purelib", "platlib")
            )
            if path
        }
        | {_OURS}
    )
)
_LOADING = os.path.join("torch", "utils", "data", "")
_FETCH = os.path.join("torch", "utils", "data", "_utils", "fetch.py")
_MAKE = (
    os.path.join("unidle", "data", "threads.py"),
    "make",
)  # the same for a data set in the package's Loader
_own = {}  # code object -> whether it is the program's own; bounded by the code of the program


def count_as_library(folder):
    """A package that may lie outside of where packages lie."""
    global _FOREIGN
    _FOREIGN += (os.path.join(folder, ""),)
    _own.clear()


def is_own(code):
    """True for the program's own code: no standard library, no installed package, nothing of ours."""
    known = _own.get(code)
    if known is None:
        known = is_own_file(code.co_filename)
        if len(_own) > 20000:
            _own.clear()
        _own[code] = known
    return known


def is_own_file(name):
    return not (
        name.startswith(_FOREIGN)
        or "site-packages" in name
        or "dist-packages" in name
        or (name.startswith("<") and name not in ("<stdin>", "<string>"))
    )


def short(name):
    """Relative to the folder that the program was started in, where it lies below that."""
    if name.startswith(_START):
        return name[len(_START) :]
    return name


def full(name):
    """The file of a short() name."""
    return os.path.join(_START, name)


_START = os.path.join(os.getcwd(), "") if os.path.isdir(os.curdir) else "/"


def own_frame(frame):
    while frame is not None:
        if is_own(frame.f_code):
            return frame
        frame = frame.f_back
    return None


def sample_frame(frame):
    """Of a stack that made a sample: where. The innermost frame of the program's own, and without any that of
    a library in which the sample began; never what asked for the batch. None where no sample is being
    made."""
    own = library = None
    while frame is not None:
        code = frame.f_code
        if code.co_filename.endswith(_FETCH) or (
            code.co_name == _MAKE[1] and code.co_filename.endswith(_MAKE[0])
        ):
            return own or library
        if is_own(code):
            own = own or frame
        elif not code.co_filename.startswith(MARK) and _LOADING not in code.co_filename:
            library = frame
        frame = frame.f_back
    return None


def of_library(name):
    """The file of a library below the folder that packages lie in."""
    for folder in ("site-packages", "dist-packages"):
        if folder + os.sep in name:
            return name.rsplit(folder + os.sep, 1)[1]
    return next(
        (name[len(path) :] for path in reversed(_FOREIGN) if path != _OURS and name.startswith(path)),
        short(name),
    )


def outside(frame):
    """The innermost frame that is none of ours."""
    while frame is not None and frame.f_code.co_filename.startswith(MARK):
        frame = frame.f_back
    return frame


def call_of(frame):
    """Which call of the program this is, by the frame that makes it and the one around that: a helper may
    make it for several lines."""
    frame = outside(frame)
    around = None if frame is None else outside(frame.f_back)
    return tuple((id(one.f_code), one.f_lasti) for one in (frame, around) if one is not None)


def line_of(frame):
    """Where it is; between two lines Python does not tell, and it counts as the function's first."""
    return frame.f_lineno or frame.f_code.co_firstlineno


def here(depth=2):
    """The innermost line of the program's own code that led here, as "file:line", or None."""
    frame = own_frame(sys._getframe(depth))
    return None if frame is None else "%s:%d" % (short(frame.f_code.co_filename), line_of(frame))


def of_function(function):
    """ "file:line" where a function is defined; None for builtins."""
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    return None if code is None else "%s:%d" % (short(code.co_filename), code.co_firstlineno)
