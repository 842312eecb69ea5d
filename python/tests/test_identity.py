"""The digest that identifies a dataset across runs: what changes it, what does not, and what is refused."""

import importlib
import os
import shutil
import sys
import tempfile
import textwrap
import unittest
from unittest import mock

from run_case import HAS_TORCH, HERE

sys.path.insert(0, os.path.join(HERE, "..", "shim"))

MODULES = {
    "id_data.py": """
        import id_config, id_pack.inner, id_plain.deep, id_readers

        class Data:
            def sized(self, i):
                return [i] * id_config.SIZE
            def whole(self, i):
                return getattr(id_config, "SI" + "ZE")
            def nested(self, i):
                return [id_config.SIZE for _ in range(i)]
            def calls(self, i):
                return id_readers.read(i)
            def package(self, i):
                return id_pack.inner.decode(i)
            def folder(self, i):
                return id_plain.deep.decode(i)
            def imports(self, i):
                from id_decoding import decode
                return decode(i)
            def imports_all(self, i):
                import id_pack.inner
                return id_pack.inner.decode(i)
            def imports_later(self, i):
                import id_later
                return id_later.decode(i)
            def misses(self, i):
                return id_config.NOT_YET
            def by_text(self, i):
                return __import__("id_" + "later").decode(i)
            def imports_beyond(self, i):
                from . import nothing
                return i
            def last(self, i):
                return i[..., ::-1] if i in {None, 1} else None
            def read(self, i):
                return i
            def library(self, i):
                import csv, xml.dom
                return csv, xml
    """,
    "id_config.py": "SIZE = 224",
    "id_readers.py": "import id_decoding\ndef read(i): return id_decoding.decode(i)\ndef write(i): return 1",
    "id_decoding.py": "def decode(i): return i * 2",
    "id_pack/__init__.py": "",
    "id_pack/inner.py": "def decode(i): return i * 2",
    "id_plain/deep.py": "def decode(i): return i * 2",
    "id_later.py": "def decode(i): return i * 2",
}


@unittest.skipUnless(HAS_TORCH, "this Python has no torch")
class IdentityTest(unittest.TestCase):
    def setUp(self):
        from _unidle_shim.source import identity

        self.identity = identity
        self.folder = tempfile.mkdtemp(prefix="unidle-identity-")
        self.addCleanup(shutil.rmtree, self.folder)
        self.addCleanup(self.forget)
        for patch in (
            mock.patch.object(sys, "path", [self.folder] + sys.path),
            mock.patch.object(sys, "dont_write_bytecode", True),
        ):
            patch.start()
            self.addCleanup(patch.stop)
        for name, text in MODULES.items():
            self.write(name, text)

    def forget(self):
        for name in [name for name in sys.modules if name.startswith("id_")]:
            del sys.modules[name]

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as file:
            file.write(textwrap.dedent(text))

    def data(self, kind):
        """A dataset with this method only, as in a new run."""
        self.forget()
        importlib.invalidate_caches()
        return type("Way", (), {kind: vars(importlib.import_module("id_data").Data)[kind]})()

    def key(self, kind):
        return self.identity.of(self.data(kind))

    def refused(self, kind):
        with self.assertRaises(self.identity.Unkeyable) as refused:
            self.key(kind)
        return str(refused.exception)

    def test_it_changes_with_the_code_in_other_modules(self):
        for kind, edited in (
            ("calls", "id_decoding.py"),
            ("imports", "id_decoding.py"),
            ("package", "id_pack/inner.py"),
            ("imports_all", "id_pack/inner.py"),
            ("folder", "id_plain/deep.py"),
        ):
            with self.subTest(kind):
                before = self.key(kind)
                self.assertEqual(self.key(kind), before)
                self.write("id_readers.py", MODULES["id_readers.py"].replace("return 1", "return 2"))
                self.assertEqual(self.key(kind), before)  # an edit that does not matter
                self.write(edited, "def decode(i): return i * 3")
                self.assertNotEqual(self.key(kind), before)
                self.write(edited, MODULES[edited])

    def test_it_changes_with_the_present_values_of_other_modules(self):
        for kind in ("sized", "whole", "nested"):
            with self.subTest(kind):
                before = self.key(kind)
                data = self.data(kind)
                sys.modules["id_config"].SIZE = 128
                self.assertNotEqual(self.identity.of(data), before)

    def test_what_cannot_be_resolved_is_refused(self):
        self.assertIn("id_later is imported later", self.refused("imports_later"))
        self.assertIn("id_config has no NOT_YET yet", self.refused("misses"))
        self.assertIn("__import__", self.refused("by_text"))

    def test_a_rare_tensor_is_refused(self):
        import torch

        for value in (torch.zeros(2, device="meta"), torch.zeros(2).to_sparse()):
            with self.assertRaises(self.identity.Unkeyable):
                self.identity.of([value])

    def test_a_method_of_an_object_of_c_changes_with_the_object(self):
        self.assertNotEqual(self.identity.of({"a": 1}.get), self.identity.of({"a": 2}.get))

    def test_ordinary_code_is_taken(self):
        for kind in ("last", "read", "library", "imports_beyond"):
            with self.subTest(kind):
                self.assertEqual(self.key(kind), self.key(kind))

    def test_an_open_file_is_refused(self):
        with open(__file__) as file:
            for value in (file, file.buffer):
                with self.assertRaises(self.identity.Unkeyable):
                    self.identity.of([value])


if __name__ == "__main__":
    unittest.main()
