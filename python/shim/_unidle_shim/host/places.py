"""Stack frames, and the place that a finding names: the innermost line of the program itself.

The standard library, installed packages and unidle are not the program, wherever they are: a virtual
environment may be inside the program's folder. An editable install is the program. If that line was in a call
of a package, `called_notes` names the package's function."""

import os
import sys

from _unidle_shim.host.hidden_frames import MARK

_MOST_DECORATORS = 20  # lines

_OURS = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "")
_UNIDLE = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(_OURS))), "unidle", "")
_PACKAGES = tuple(os.sep + folder + os.sep for folder in ("site-packages", "dist-packages"))


def _folders_of_python():
    """The standard library's. Without sysconfig, which takes long to import."""
    version = "python%d.%d" % sys.version_info[:2]
    found = {os.path.dirname(os.__file__)}
    for prefix in (sys.prefix, sys.base_prefix):
        found |= {os.path.join(prefix, lib, version) for lib in ("lib", getattr(sys, "platlibdir", "lib"))}
    found |= {os.path.realpath(path) for path in found}
    return tuple(sorted(os.path.join(path, "") for path in found))


_STANDARD = _folders_of_python()
_FOREIGN = _STANDARD + (_OURS, _UNIDLE)
if sys.prefix != sys.base_prefix:
    _FOREIGN += (os.path.join(sys.prefix, "bin", ""),)  # commands of a virtual environment
_FETCH = os.path.join("torch", "utils", "data", "_utils", "fetch.py")
_LOADER = os.path.join("torch", "utils", "data", "dataloader.py")
_MAKE = (
    os.path.join("unidle", "data", "threads.py"),
    "make",
)  # makes samples of a data set in the package's Loader
_IMPORTLIB = "<frozen importlib"
_CELL = "<ipython-input-"
_MOST = 20000
_MOST_CALLED = 256
# Functions of frameworks that only call another one.
_PASS_ON = (
    *("wrapper", "wrapped", "inner", "<lambda>"),
    *("_fn", "_use_grad", "decorate_context", "_call_impl", "_wrapped_call_impl"),
)
# Generated code is a "<string>", too, and so is what Python gives to a process of multiprocessing.
_STARTED_BY_PYTHON = any(word.startswith("from multiprocessing.") for word in getattr(sys, "orig_argv", ()))
# Not by code objects: equal code at the same line of two files is equal to Python.
_own = {}  # file -> whether it is the program's own
_packaged = {}  # (file, function, line) -> name in an installed package, or None
_called = {}  # (file, line) of the program -> name of the package's function that it called


def count_as_library(folder):
    """Counts a package as a library even if it is outside the folders for packages."""
    global _FOREIGN
    _FOREIGN += (os.path.join(folder, ""),)
    _own.clear()


def is_own(code):
    """True for the program's own code: neither the standard library, nor an installed package, nor ours."""
    name = code.co_filename
    known = _own.get(name)
    if known is None:
        known = is_own_file(name)
        if len(_own) > _MOST:
            _own.clear()
        _own[name] = known
    return known


def is_own_file(name):
    if name.startswith("<"):
        if name.startswith(_CELL):
            return True
        return name == "<stdin>" or (name == "<string>" and sys.argv[:1] == ["-c"] and not _STARTED_BY_PYTHON)
    return not (name.startswith(_FOREIGN) or any(folder in name for folder in _PACKAGES))


def is_standard(name):
    """Whether it is a file of the standard library."""
    return name.startswith(_STANDARD) and not any(folder in name for folder in _PACKAGES)


def _in_package(code):
    """The dotted name of a function of an installed package; "" for torch's, which every program calls; None
    for others, and for those that only call another one."""
    key = code.co_filename, code.co_name, code.co_firstlineno
    if key not in _packaged:
        if len(_packaged) > _MOST:
            _packaged.clear()
        _packaged[key] = _name_in_package(code)
    return _packaged[key]


def _name_in_package(code):
    folder = next((folder for folder in _PACKAGES if folder in code.co_filename), None)
    if folder is None or is_own(code):
        return None
    module = os.path.splitext(code.co_filename.rsplit(folder, 1)[1])[0].split(os.sep)
    if code.co_name in _PASS_ON:
        return None
    if module[0] == "torch":
        return ""
    if module[-1] == "__init__":
        module.pop()
    return ".".join(module + [name_of(code)])


def package_function(code):
    """(function, package) of a function of the standard library or of an installed package. None for the
    program's and ours, for code outside of functions, and for functions that only call another one."""
    file, name = code.co_filename, code.co_name
    if name.startswith("<") or name in _PASS_ON or file.startswith(("<", _OURS, _UNIDLE)) or is_own(code):
        return None
    package = _module_of(file)
    return None if package is None else (name_of(code), package)


def _cell_of(name):
    """The number of the notebook's cell to whose code IPython gives this file name; None for others."""
    if not (name.startswith(_CELL) or "ipykernel_" in name):
        return None
    try:
        return sys.modules["IPython"].get_ipython().compile._filename_map.get(name)
    except (KeyError, AttributeError):  # another program, another version of IPython
        return None


def short(name):
    """The path relative to the program's start folder, if it is below that folder; "In[3]" for a notebook's
    cell."""
    cell = _cell_of(name)
    if cell is not None:
        return "In[%d]" % cell
    if name.startswith(_START):
        return name[len(_START) :]
    return name


def full(name):
    """The path of a short() name."""
    return os.path.join(_START, name)


_START = os.path.join(os.getcwd(), "") if os.path.isdir(os.curdir) else "/"


def own_frame(frame):
    """The innermost frame of the program's own; None if there is none."""
    called = None
    while frame is not None:
        code = frame.f_code
        if is_own(code):
            if called:
                _remember(code, line_of(frame), called)
            return frame
        named = _in_package(code)
        called = called if named is None else named
        frame = frame.f_back
    return None


def of_stack(stack):
    """The same for a stack of (code, line), the innermost first: (code, line), or None. And the name of the
    package's function that it called, or if there is no such line, of the outermost one; or None."""
    called = None
    for entry in stack:
        if is_own(entry[0]):
            if called:
                _remember(*entry, called)
            return entry, called or None
        named = _in_package(entry[0])
        called = called if named is None else named
    return None, called or None


def within_sample(stack):
    """The part of the stack that makes a sample, which excludes the line that requested the batch. None if no
    sample is being made."""
    for depth, (code, _) in enumerate(stack):
        if code.co_filename.endswith(_FETCH) or (
            code.co_name == _MAKE[1] and code.co_filename.endswith(_MAKE[0])
        ):
            return stack[:depth]
    return None


def of_sample(stack):
    """What of_stack() finds in that part. (None, None) if no sample is being made."""
    part = within_sample(stack)
    return (None, None) if part is None else of_stack(part)


def of_sampler(stack):
    """The program's innermost line while its sampler gives a loader of torch the indices of a batch; None
    otherwise. A loader asks for the first ones when its iterator is made."""
    for depth, (code, _) in enumerate(stack):
        if code.co_filename.endswith(_FETCH):
            return None
        if code.co_filename.endswith(_LOADER) and code.co_name in ("_next_index", "__init__"):
            # Making an iterator also starts workers, which calls more than the sampler.
            direct = code.co_name == "_next_index" or (depth and is_own(stack[depth - 1][0]))
            return of_stack(stack[:depth])[0] if direct else None
    return None


def of_import(stack):
    """If the program executes an import statement: that statement, the outermost of those that led to each
    other, and the name of what the innermost one imports. (None, None) otherwise."""
    statement = name = module = None
    importing = False
    for code, line in stack:
        file = code.co_filename
        if file.startswith((MARK, _OURS)):
            continue
        if file.startswith(_IMPORTLIB):
            importing = True
        elif is_own(code):
            if not importing:
                break
            name = (name or module) if statement else module
            statement, importing = (code, line), False
        else:
            module, importing = _module_of(file), False
    return statement, name


def _module_of(file):
    """The name by which a program imports the package, or the module, of a file that is not its own."""
    for folder in _PACKAGES + _FOREIGN:
        if folder in file:
            return file.rsplit(folder, 1)[1].split(os.sep)[0].split(".")[0]
    return None


def of_start(stack):
    """What the program does before it trains: (line, function, caller), each a text or None. The function of
    an import statement is "import NAME"; the caller is "function (line)". None outside of the program."""
    statement, name = of_import(stack)
    if statement is not None:
        return text(*statement), "import %s" % name if name else "import", None
    place, _ = of_stack(stack)
    if place is None:
        return None
    outer = stack[stack.index(place) + 1 :]
    caller = next((entry for entry in outer if is_own(entry[0]) and entry[0] is not place[0]), None)
    within = None if caller is None else "%s (%s)" % (name_of(caller[0]), text(*caller))
    return text(*place), name_of(place[0]), within


def name_of(code):
    return getattr(code, "co_qualname", code.co_name)


def _remember(code, line, called):
    if len(_called) < _MOST_CALLED:
        _called[code.co_filename, line] = called


def called_notes():
    for (name, line), called in list(_called.items()):
        where = "%s:%d" % (short(name), line)
        yield ("called", where), {"type": "called", "where": where, "function": called}


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


def text(code, line):
    """ "file:line"; None if there is no code."""
    return None if code is None else "%s:%d" % (short(code.co_filename), line)


def of_frame(frame):
    """(code, line) of the innermost frame of the program's own; (None, 0) if there is none."""
    frame = own_frame(frame)
    return (None, 0) if frame is None else (frame.f_code, line_of(frame))


def here(depth=2):
    """The innermost line of the program's own code that led here, as "file:line", or None."""
    return text(*of_frame(sys._getframe(depth)))


def of_function(function):
    """ "file:line" where a function of the program is defined; None for others."""
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    return text(code, _line_of_def(code)) if code is not None and is_own(code) else None


def _line_of_def(code):
    """Its line; Python names that of the first decorator."""
    import linecache  # takes long, and every process of Python imports this module

    if not linecache.getline(code.co_filename, code.co_firstlineno).lstrip().startswith("@"):
        return code.co_firstlineno
    for line in range(code.co_firstlineno, code.co_firstlineno + _MOST_DECORATORS):
        words = linecache.getline(code.co_filename, line).split(None, 1)
        if words and words[0] in ("def", "async"):
            return line
    return code.co_firstlineno
