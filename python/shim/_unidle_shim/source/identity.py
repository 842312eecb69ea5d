"""Identifies a dataset across runs: a digest of everything on which its samples may depend.

This comprises its contents, to the last number of its arrays; the code of its class and the program's code
that this calls; the objects that the code names in its modules and in other modules of the program, with
their present values; the files and folders whose paths occur as texts in these, by size and time; and the
versions of Python and of the libraries involved. Anything that cannot be digested is named and refused: a
result of another run is worthless if it may be stale.
"""

import collections
import functools
import hashlib
import importlib.machinery
import io
import os
import pickle
import re
import stat
import sys
import types

from _unidle_shim.host import places
from _unidle_shim.host.exception_origin import pass_on
from _unidle_shim.source import module_reads

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
    type(collections.namedtuple("_", "field").field),
)
_PLAIN = (type(None), type(Ellipsis), bool, int, float, complex, bytes)
_EXTENSIONS = tuple(importlib.machinery.EXTENSION_SUFFIXES)


class Unkeyable(Exception):
    """Says which part of the dataset cannot be identified."""


def of(dataset):
    """Returns 32 bytes. Raises Unkeyable."""
    walk = _Walk()
    walk.text("python " + sys.version)
    for library in ("torch", "numpy"):
        walk.library(library)
    try:
        walk.value(dataset, "the dataset")
    except RecursionError:
        raise Unkeyable("the dataset is nested too deeply") from None
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
        if not all(isinstance(each, (str,) + _PLAIN) for each in value):
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
            self.of_c(value, where)
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
        by_text = module_reads.by_text(code)
        if by_text is not None:
            raise Unkeyable("%s uses %s, which may reach anything" % (where, by_text))
        for name, *steps in module_reads.reads(code):
            if name in names:
                self.text(name)
                self.read(names[name], name, steps)
        for module, name in module_reads.imports(code, names):
            self.imported(module, name)

    def read(self, value, name, steps):
        """A value that the code names; of a module of the program, the attribute that it reads there."""
        for step in steps:
            if not module_reads.is_module_of_program(value):
                break
            if step not in vars(value):
                raise Unkeyable("%s has no %s yet" % (name, step))
            name, value = "%s.%s" % (name, step), vars(value)[step]
            self.text(step)
        self.value(value, name)

    def imported(self, name, attribute):
        """What the code imports when it is called; a library may not be there before that."""
        root = name.split(".")[0]
        file = module_reads.file_of(root)
        self.text("import %s" % name)
        if file is None or not places.is_own_file(file):
            return self.path(file or root)
        if name not in sys.modules:
            raise Unkeyable("%s is imported later" % name)
        self.read(sys.modules[name], name, () if attribute is None else (attribute,))

    def module(self, module):
        """All of it: the code uses it in another way than by reading an attribute."""
        if not module_reads.is_module_of_program(module):
            self.library(module.__name__)
            return self.text(module.__name__)
        for name, each in sorted(vars(module).items()):
            if not name.startswith("__") or isinstance(each, _FUNCTIONS):
                self.text(name)
                self.value(each, "%s.%s" % (module.__name__, name))

    def of_c(self, value, where):
        """A function of C, with the object whose method it is."""
        module, owner = getattr(value, "__module__", None), getattr(value, "__self__", None)
        self.library(module)
        self.text(getattr(value, "__qualname__", ""))
        file = getattr(sys.modules.get(module), "__file__", None) or ""
        if file.endswith(_EXTENSIONS) and places.is_own_file(file):
            self.path(file)
        if owner is not None and not isinstance(owner, types.ModuleType):
            self.value(owner, where)

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
            return self.tensor(torch, np, value, where)
        if isinstance(value, (torch.dtype, torch.device, np.dtype, re.Pattern, range, slice)):
            return self.text(repr(value))
        if root == "logging":  # shows what the program does, and is no part of it
            return self.text(str(getattr(value, "name", "")))
        if root in _PICKLED:
            try:
                return self.data(pickle.dumps(value, 4))
            except Exception as failure:
                pass_on(failure)
        held = getattr(value, "__dict__", None)
        if held is None or self.is_file(kind) or root in ("h5py", "lmdb", "zarr", "threading", "_thread"):
            raise Unkeyable(
                "%s is a %s.%s, which cannot be keyed" % (where, kind.__module__, kind.__qualname__)
            )
        self.kind(kind, where)
        for name, each in held.items():
            self.text(name)
            self.value(each, "%s.%s" % (where, name))

    def is_file(self, kind):
        """Whether it reads in a library's way; the code of the program's own `read` is known."""
        return issubclass(kind, io.IOBase) or any(
            "read" in vars(one) for one in kind.__mro__ if not self.is_own_kind(one)
        )

    def tensor(self, torch, np, value, where):
        self.text(str(value.dtype))
        try:
            plain = value.detach().contiguous()
            array = (plain.view(torch.int16) if value.dtype == torch.bfloat16 else plain).numpy()
        except (TypeError, RuntimeError):
            raise Unkeyable("%s is a tensor on a device, not dense, or of a rare type" % where) from None
        self.array(np, array)

    def array(self, np, array):
        self.text("%s %r" % (array.dtype, array.shape))
        self.data(np.ascontiguousarray(array).reshape(-1).view(np.uint8) if array.size else b"")
