"""The digest of a program's files: equal for a copy, other after a change. Without torch."""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest

from run_case import PYTHONS

SHIM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "shim")
SCRIPT = """
import sys, json
sys.path.insert(0, %r)
import model
from _unidle_shim.facts import program_files
print((program_files.note() or {}).get("digest"), (program_files.note() or {}).get("files"))
""" % os.path.abspath(SHIM)


class ProgramFilesTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        self.copy = self.program("first")

    def program(self, name, model="size = 1\n", config="lr: 1\n"):
        folder = os.path.join(self.folder, name)
        os.mkdir(folder)
        for file, text in (("train.py", SCRIPT), ("model.py", model), ("config.yaml", config)):
            with open(os.path.join(folder, file), "w") as out:
                out.write(text)
        return folder

    def digest(self, folder, python=sys.executable, config="config.yaml"):
        words = [python, "train.py", config]
        done = subprocess.run(words, cwd=folder, check=True, stdout=subprocess.PIPE, text=True)
        return tuple(done.stdout.split())

    def test_a_copy_has_the_same_and_a_change_another(self):
        for python in PYTHONS:
            with self.subTest(python):
                first = self.digest(self.copy, python)
                self.assertEqual(first[1], "3", "not the standard library's")
                shutil.rmtree(os.path.join(self.folder, "b"), ignore_errors=True)
                self.assertEqual(self.digest(self.program("b"), python), first)
        self.assertNotEqual(self.digest(self.program("c", model="size = 2\n")), first)
        self.assertNotEqual(self.digest(self.program("d", config="lr: 2\n")), first)

    def test_a_configuration_counts_wherever_the_program_goes(self):
        leaves = SCRIPT.replace("print", "import os; os.chdir('/'); sys.argv[1:] = []\nprint", 1)
        for python in PYTHONS:
            for script, config in ((SCRIPT, "--config=config.yaml"), (leaves, "config.yaml")):
                with self.subTest((python, config)):
                    found = set()
                    for rate in (1, 2):
                        folder = self.program("a", config="lr: %d\n" % rate)
                        with open(os.path.join(folder, "train.py"), "w") as out:
                            out.write(script)
                        digest, files = self.digest(folder, python, config)
                        self.assertEqual(files, "3")
                        found.add(digest)
                        shutil.rmtree(folder)
                    self.assertEqual(len(found), 2)

    def test_a_file_that_cannot_be_read_is_unknown(self):
        with open(os.path.join(self.copy, "train.py"), "a") as script:
            script.write("program_files._digests.clear(); program_files._known = 0, None\n")
            script.write("import os; os.remove(model.__file__)\n")
            script.write("print(program_files.note())\n")
        self.assertEqual(self.digest(self.copy)[-1], "None")


if __name__ == "__main__":
    unittest.main()
