"""The C ABI is written three times: in the headers, for the package, and for the shim, which must not import
the package. All agree."""

import ctypes
import os
import re
import shutil
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import package

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "python" / "shim"))

HEADERS = ("src/unidle/data/capi/unidle_data.h", "src/unidle/cache/capi/unidle_cache.h")
SCALARS = {
    "int": ctypes.c_int,
    "size_t": ctypes.c_size_t,
    **{
        name + "_t": getattr(ctypes, "c_" + name)
        for name in ("int32", "int64", "uint8", "uint16", "uint32", "uint64")
    },
}


def header():
    """The text of the headers without comments and preprocessor lines."""
    text = "\n".join((ROOT / name).read_text() for name in HEADERS)
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    return re.sub(r"^#.*$", "", text, flags=re.M)


CALLBACKS = set(re.findall(r"typedef [\w* ]+\(\*(\w+)\)", header()))


def kind_in_c(declaration, structs):
    """("pointer",), ("nothing",), ("struct", name) or ("number", bytes, signed) of "const int64_t* items"."""
    if "*" in declaration or "[" in declaration:
        return ("pointer",)
    words = [word for word in declaration.split() if word not in ("const", "struct")]
    if words[0] in CALLBACKS:
        return ("pointer",)
    if words[0] == "void":
        return ("nothing",)
    if words[0] in structs:
        return ("struct", words[0])
    return kind(SCALARS[words[0]])


def kind(type_):
    """The same for a ctypes type."""
    if type_ is None:
        return ("nothing",)
    if issubclass(type_, ctypes.Structure):
        return ("struct", type_)
    pointers = (ctypes._Pointer, ctypes._CFuncPtr, ctypes.c_void_p, ctypes.c_char_p)
    if issubclass(type_, pointers):
        return ("pointer",)
    return ("number", ctypes.sizeof(type_), type_(-1).value < 0)


def functions_of(text):
    structs = structs_of(text)
    found = {}
    for result, name, arguments in re.findall(r"^([\w* ]+?)\b(unidle_\w+)\(([^;{]*)\);", text, flags=re.M):
        arguments = [] if arguments.strip() == "void" else arguments.split(",")
        found[name] = kind_in_c(result, structs), [kind_in_c(each.strip(), structs) for each in arguments]
    return found


def structs_of(text):
    """Name -> the fields' declarations."""
    return {
        name: [field.strip() for field in fields.split(";") if field.strip()]
        for fields, name in re.findall(r"typedef struct \w*\s*\{(.*?)\}\s*(\w+);", text, flags=re.S)
    }


class AbiTest(unittest.TestCase):
    def setUp(self):
        package.needs("numpy")
        self.text = header()
        self.functions, self.structs = functions_of(self.text), structs_of(self.text)

    def agree_on(self, name, ours):
        result, arguments = self.functions[name]
        if ours.argtypes is not None:
            self.assertEqual([kind(each) for each in ours.argtypes], arguments, name)
        if result != ("nothing",):
            self.assertEqual(kind(ours.restype), result, name)

    def agree_on_struct(self, name, ours):
        fields = self.structs[name]
        self.assertEqual(len(ours._fields_), len(fields), name)
        for (field, type_), declaration in zip(ours._fields_, fields):
            with self.subTest(struct=name, field=field):
                in_c = kind_in_c(declaration, self.structs)
                if in_c[0] == "struct":
                    self.agree_on_struct(in_c[1], type_)
                    continue
                self.assertEqual(kind(type_), in_c)
                if in_c[0] == "number":
                    self.assertEqual(re.split(r"[\s*]", declaration)[-1], field)

    def test_the_headers_are_understood(self):
        self.assertGreater(len(self.functions), 30)
        self.assertEqual(self.functions["unidle_cache_close"], (("nothing",), [("pointer",)]))
        self.assertEqual(self.functions["unidle_data_version"], (kind(ctypes.c_int), []))
        self.assertEqual(self.functions["unidle_loader_next"][1][1], ("number", 8, True))
        self.assertIn("unidle_found", self.structs)

    def test_the_package_declares_what_the_headers_do(self):
        from unidle import _native

        library = _native.library()
        declared = [name for name in self.functions if name in vars(library)]
        self.assertEqual(set(self.functions) - set(declared), {"unidle_loader_open"})  # Python has orders
        for name in declared:
            with self.subTest(function=name):
                self.agree_on(name, getattr(library, name))
                self.assertIsNotNone(getattr(library, name).argtypes)
        for name, ours in (
            ("unidle_dl_tensor", _native.Tensor),
            ("unidle_dl_managed", _native.Managed),
            ("unidle_batch_facts", _native.Facts),
            ("unidle_loader_costs", _native.Costs),
            ("unidle_found", _native.Found),
            ("unidle_cache_array", _native.CacheArray),
            ("unidle_cache_new_entry", _native.CacheNewEntry),
        ):
            self.agree_on_struct(name, ours)

    def test_the_package_takes_the_library_of_its_version_alone(self):
        from unidle.errors import MissingError

        from unidle import _native

        (version,) = re.findall(r"#define UNIDLE_DATA_VERSION (\d+)", (ROOT / HEADERS[0]).read_text())
        self.assertEqual(_native.VERSION, int(version))
        with mock.patch.dict(os.environ, UNIDLE_LIBRARY=str(package.LIBRARY)):
            with mock.patch.object(_native, "VERSION", 1), mock.patch.object(_native, "_declare") as declare:
                with self.assertRaisesRegex(MissingError, f"is of version {version}; the package expects 1"):
                    _native._load()
                declare.assert_not_called()  # which fails if functions are missing
        with mock.patch.dict(os.environ, UNIDLE_LIBRARY="libc.so.6"):
            with self.assertRaisesRegex(MissingError, "is no library of unidle"):
                _native._load()

    def test_the_shim_declares_what_the_headers_do(self):
        from _unidle_shim.knobs import disk_cache

        folder = tempfile.mkdtemp(prefix="unidle-abi-")
        self.addCleanup(shutil.rmtree, folder)
        before = {name: os.environ.get(name) for name in ("UNIDLE_LIBRARY", "UNIDLE_CACHE")}
        os.environ.update(UNIDLE_LIBRARY=str(package.LIBRARY), UNIDLE_CACHE=folder)
        try:
            cache = disk_cache.DiskCache(b"abi")
            cache.put("a", b"1")
            self.assertEqual(cache.get("a"), b"1")
        finally:
            for name, value in before.items():
                os.environ.pop(name) if value is None else os.environ.update({name: value})
        used = [name for name in vars(cache._library) if name.startswith("unidle_")]
        self.assertGreaterEqual(len(used), 6)
        for name in used:
            with self.subTest(function=name):
                self.agree_on(name, getattr(cache._library, name))
        self.agree_on_struct("unidle_found", disk_cache._Found)
        self.agree_on_struct("unidle_cache_array", disk_cache._Array)
