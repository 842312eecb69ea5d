"""Stack frames: their file and line, and whether their code is the program's, a library's or ours."""

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
)  # makes samples of a data set in the package's Loader
_own = {}  # code object -> whether it is the program's own; bounded by the code of the program


def count_as_library(folder):
    """Counts a package as a library even if it is outside the folders for packages."""
    global _FOREIGN
    _FOREIGN += (os.path.join(folder, ""),)
    _own.clear()


def is_own(code):
    """True for the program's own code: neither the standard library, nor an installed package, nor ours."""
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
    """The path relative to the program's start folder, if it is below that folder."""
    if name.startswith(_START):
        return name[len(_START) :]
    return name


def full(name):
    """The path of a short() name."""
    return os.path.join(_START, name)


_START = os.path.join(os.getcwd(), "") if os.path.isdir(os.curdir) else "/"


def own_frame(frame):
    while frame is not None:
        if is_own(frame.f_code):
            return frame
        frame = frame.f_back
    return None


def own_line(stack):
    """The innermost (code, line) of the program's own, of a stack with the innermost first. None if there is
    none."""
    return next((entry for entry in stack if is_own(entry[0])), None)


def sample_line(stack):
    """The (code, line) where a sample is made, for a stack with the innermost first: that of the program's
    own, or else that of the library in which the sample began; never the line that requested the batch. None
    if no sample is being made."""
    own = library = None
    for entry in stack:
        code = entry[0]
        if code.co_filename.endswith(_FETCH) or (
            code.co_name == _MAKE[1] and code.co_filename.endswith(_MAKE[0])
        ):
            return own or library
        if is_own(code):
            own = own or entry
        elif not code.co_filename.startswith(MARK) and _LOADING not in code.co_filename:
            library = entry
    return None


def of_library(name):
    """The path of a library's file below the folder that contains packages."""
    for folder in ("site-packages", "dist-packages"):
        if folder + os.sep in name:
            return name.rsplit(folder + os.sep, 1)[1]
    return next(
        (name[len(path) :] for path in reversed(_FOREIGN) if path != _OURS and name.startswith(path)),
        short(name),
    )


def outside(frame):
    """The innermost frame that is not ours."""
    while frame is not None and frame.f_code.co_filename.startswith(MARK):
        frame = frame.f_back
    return frame


def call_of(frame):
    """Identifies a call of the program by the calling frame and the one around it: a helper may make the call
    for several lines."""
    frame = outside(frame)
    around = None if frame is None else outside(frame.f_back)
    return tuple((id(one.f_code), one.f_lasti) for one in (frame, around) if one is not None)


def lines_of_stack(frame):
    """The line in which each function on the stack is; of several calls of one function, the innermost."""
    lines = {}
    while frame is not None:
        lines.setdefault(frame.f_code, line_of(frame))
        frame = frame.f_back
    return lines


def line_of(frame):
    """The frame's line; between two lines Python reports none, and the function's first line is returned."""
    return frame.f_lineno or frame.f_code.co_firstlineno


def here(depth=2):
    """The innermost line of the program's own code that led here, as "file:line", or None."""
    frame = own_frame(sys._getframe(depth))
    return None if frame is None else "%s:%d" % (short(frame.f_code.co_filename), line_of(frame))


def of_function(function):
    """ "file:line" where a function is defined; None for builtins."""
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    return None if code is None else "%s:%d" % (short(code.co_filename), code.co_firstlineno)
