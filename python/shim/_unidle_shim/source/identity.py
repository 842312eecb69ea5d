"""Identifies a dataset across runs: a digest of everything on which its samples may depend.

This comprises its contents, to the last number of its arrays; the code of its class and the program's code
that this calls; the objects that the code names in its modules; the files and folders whose paths occur as
texts in these, by size and time; and the versions of Python and of the libraries involved. Anything that
cannot be digested is named and refused: a result of another run is worthless if it may be stale.
"""

import dis
import functools
import hashlib
import os
import pickle
import re
import stat
import sys
import types

from _unidle_shim.host import places
from _unidle_shim.host.exception_origin import pass_on

_MOST_FILES = 200_000
_NO_PATHS = {"", ".", "..", "/", "~"}
# Libraries whose objects are self-contained and pickle to the same bytes each time.
_PICKLED = {"pandas", "PIL", "datetime", "decimal", "fractions", "uuid"}
_FUNCTIONS = (types.FunctionType, staticmethod, classmethod, property)
_OF_C = (
    types.BuiltinFunctionType,
    types.MethodDescriptorType,
    types.WrapperDescriptorType,
    types.MemberDescriptorType,
    types.GetSetDescriptorType,
)
_PLAIN = (type(None), bool, int, float, complex, bytes)


class Unkeyable(Exception):
    """Says which part of the dataset cannot be identified."""


def of(dataset):
    """Returns 32 bytes. Raises Unkeyable."""
    walk = _Walk()
    walk.text("python " + sys.version)
    for library in ("torch", "numpy"):
        walk.library(library)
    walk.value(dataset, "the dataset")
    return walk.digest.digest()


class _Walk:
    def __init__(self):
        self.digest = hashlib.sha256()
        self.seen = {}  # id -> number: a repeated object is identified by its first occurrence
        self.keep = []  # keeps the objects with these ids alive
        self.files = 0
        self.libraries = set()

    def text(self, text):
        data = text.encode("utf-8", "surrogatepass")
        self.digest.update(b"%d:" % len(data) + data)

    def data(self, data):
        self.digest.update(hashlib.sha256(data).digest())

    def library(self, name):
        root = (name or "").split(".")[0]
        if root not in self.libraries:
            self.libraries.add(root)
            self.text("%s %s" % (root, getattr(sys.modules.get(root), "__version__", "")))

    def value(self, value, where):
        if isinstance(value, _PLAIN):
            return self.text("%s %r" % (type(value).__name__, value))
        if isinstance(value, (str, os.PathLike)):
            return self.path(os.fspath(value))
        if not isinstance(value, tuple):  # which of equal constants are the same object differs between runs
            if id(value) in self.seen:
                return self.text("again %d" % self.seen[id(value)])
            self.seen[id(value)] = len(self.seen)
            self.keep.append(value)
        kind = type(value)
        self.text("%s.%s" % (kind.__module__, kind.__qualname__))
        if isinstance(value, (list, tuple)):
            self.text("%d" % len(value))
            for each in value:
                self.value(each, where)
        elif isinstance(value, dict):
            self.text("%d" % len(value))
            for key, each in value.items():
                self.value(key, where)
                self.value(each, "%s[%r]" % (where, key) if isinstance(key, str) else where)
        elif isinstance(value, (set, frozenset)):
            self.members(value, where)
        elif not self.code_like(value, where):
            self.object(value, where)

    def members(self, value, where):
        if not all(isinstance(each, (str, int, float)) for each in value):
            raise Unkeyable("%s is a set of more than numbers and texts" % where)
        self.text(repr(sorted(map(repr, value))))

    def path(self, path):
        """A text; if it is a path, also the file or folder there."""
        path = os.fsdecode(path)
        self.text("text " + path)
        if path in _NO_PATHS or len(path) > 4000 or "\0" in path:
            return
        try:
            facts = os.stat(path)
        except (OSError, ValueError):
            return
        self.file(facts, "")
        if stat.S_ISDIR(facts.st_mode):
            for folder, folders, names in os.walk(path, followlinks=True):
                folders.sort()
                for name in sorted(names):
                    try:
                        self.file(os.stat(os.path.join(folder, name)), os.path.join(folder, name))
                    except OSError:
                        self.text("no " + name)

    def file(self, facts, name):
        self.files += 1
        if self.files > _MOST_FILES:
            raise Unkeyable("the dataset has to do with more than %d files" % _MOST_FILES)
        if not stat.S_ISDIR(facts.st_mode):  # a folder is identified by its files
            self.text("%s %d %d" % (os.fsencode(name).hex(), facts.st_size, facts.st_mtime_ns))

    # -- code --

    def code_like(self, value, where):
        if isinstance(value, types.MethodType):
            self.value(value.__func__, where)
            self.value(value.__self__, where)
        elif isinstance(value, functools.partial):
            for part in (value.func, value.args, value.keywords):
                self.value(part, where)
        elif isinstance(value, types.FunctionType):
            self.function(value, where)
        elif isinstance(value, types.ModuleType):
            self.module(value)
        elif isinstance(value, type):
            self.kind(value, where)
        elif isinstance(value, (staticmethod, classmethod)):
            self.value(value.__func__, where)
        elif isinstance(value, property):
            for part in (value.fget, value.fset):
                self.value(part, where)
        elif isinstance(value, _OF_C):
            self.library(getattr(value, "__module__", None))
            self.text(getattr(value, "__qualname__", ""))
        else:
            return False
        return True

    def function(self, function, where):
        self.text("%s.%s" % (function.__module__, function.__qualname__))
        if not places.is_own(function.__code__):
            return self.library(function.__module__)
        self.code(function.__code__, function.__globals__, where)
        self.value(function.__defaults__, where)
        self.value(function.__kwdefaults__, where)
        for cell in function.__closure__ or ():
            try:
                self.value(cell.cell_contents, where)
            except ValueError:
                self.text("empty")

    def code(self, code, names, where):
        self.data(code.co_code)
        self.text(repr((code.co_name, code.co_names, code.co_varnames, code.co_freevars, code.co_flags)))
        for constant in code.co_consts:
            if isinstance(constant, types.CodeType):
                self.code(constant, names, where)
            else:
                self.value(constant, where)
        named = {
            one.argval for one in dis.get_instructions(code) if one.opname in ("LOAD_GLOBAL", "LOAD_NAME")
        }
        for name in sorted(named):
            if name in names:
                self.text(name)
                self.value(names[name], name)

    def module(self, module):
        file = getattr(module, "__file__", None)
        if file is None or not places.is_own_file(file):
            self.library(module.__name__)
            return self.text(module.__name__)
        try:
            with open(file, "rb") as source:
                self.data(source.read())
        except OSError:
            raise Unkeyable("the source of %s cannot be read" % module.__name__) from None

    def kind(self, kind, where):
        self.text("%s.%s" % (kind.__module__, kind.__qualname__))
        if not self.is_own_kind(kind):
            return self.library(kind.__module__)
        for one in kind.__mro__:
            if not self.is_own_kind(one):
                self.library(one.__module__)
                continue
            for name, each in sorted(vars(one).items()):
                if not name.startswith(("__", "_abc_")) or isinstance(each, _FUNCTIONS):
                    self.text(name)
                    self.value(each, "%s.%s" % (one.__qualname__, name))

    @staticmethod
    def is_own_kind(kind):
        file = getattr(sys.modules.get(kind.__module__), "__file__", None)
        return kind.__module__ == "__main__" or file is not None and places.is_own_file(file)

    # -- objects --

    def object(self, value, where):
        kind, np, torch = type(value), sys.modules["numpy"], sys.modules["torch"]
        root = kind.__module__.split(".")[0]
        self.library(root)
        if isinstance(value, (np.ndarray, np.generic)) and not value.dtype.hasobject:
            return self.array(np, np.asarray(value))
        if isinstance(value, np.ndarray):
            return self.value(value.tolist(), where)
        if isinstance(value, torch.Tensor):
            if value.device.type != "cpu" or value.layout != torch.strided or value.is_quantized:
                raise Unkeyable("%s is a tensor on a device, or not dense" % where)
            self.text(str(value.dtype))
            plain = value.detach().contiguous()
            return self.array(
                np, (plain.view(torch.int16) if value.dtype == torch.bfloat16 else plain).numpy()
            )
        if isinstance(value, (torch.dtype, torch.device, np.dtype, re.Pattern, range, slice)):
            return self.text(repr(value))
        if root in _PICKLED:
            try:
                return self.data(pickle.dumps(value, 4))
            except Exception as failure:
                pass_on(failure)
        held = getattr(value, "__dict__", None)
        if held is None or hasattr(value, "read") or root in ("h5py", "lmdb", "zarr", "threading", "_thread"):
            raise Unkeyable(
                "%s is a %s.%s, which cannot be keyed" % (where, kind.__module__, kind.__qualname__)
            )
        self.kind(kind, where)
        for name, each in held.items():
            self.text(name)
            self.value(each, "%s.%s" % (where, name))

    def array(self, np, array):
        self.text("%s %r" % (array.dtype, array.shape))
        self.data(np.ascontiguousarray(array).reshape(-1).view(np.uint8) if array.size else b"")
