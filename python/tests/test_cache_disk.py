"""unidle.Cache on a disk that is small, or read-only: a separate file system in memory."""

import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

import package
from test_cache import UNIDLE, python

np = package.needs("numpy")

FILL = """
cache = unidle.Cache(sys.argv[1], durable=sys.argv[2] == "durable")
def entry(number):
    return {"values": np.full(40_000, number % 251, np.uint8)}
stored = 0
for number in range(200):
    found = cache.get_or_compute(str(number), lambda: entry(number))
    assert (found["values"] == number % 251).all()
    stored += str(number) in cache
cache.update((str(number), entry(number)) for number in range(200, 250))
for number in range(250):
    found = cache.get(str(number))
    assert found is None or (found["values"] == number % 251).all()
print(stored)
"""


class DiskTest(unittest.TestCase):
    def setUp(self):
        self.disk = Path(tempfile.mkdtemp(prefix="unidle-disk-"))
        self.addCleanup(shutil.rmtree, self.disk, ignore_errors=True)
        if self.mount("-t", "tmpfs", "-o", "size=2m", "none") != 0:
            self.skipTest("nothing can be mounted here")
        self.addCleanup(subprocess.run, ["umount", "-l", self.disk], capture_output=True)
        self.folder = self.disk / "cache"

    def mount(self, *options):
        return subprocess.run(["mount", *options, self.disk], capture_output=True).returncode

    def ran(self, program, *arguments):
        process = python(program, self.folder, *arguments)
        out, err = process.communicate()
        self.assertEqual(process.returncode, 0, err)
        return out.split(), err.splitlines()

    def verified(self):
        return subprocess.run([UNIDLE, "cache", "verify", self.folder], capture_output=True, text=True)

    def test_a_full_one_costs_the_caching_and_is_told_once(self):
        for durable in ("durable", "quick"):
            with self.subTest(durable=durable):
                (stored,), told = self.ran(FILL, durable)
                self.assertTrue(5 <= int(stored) < 60, stored)  # in 2 MiB
                self.assertEqual(len(told), 1, told)
                self.assertIn("No space left", told[0])
                self.assertEqual(os.listdir(self.folder / "v1" / "tmp"), [])
                self.assertEqual(self.verified().returncode, 0)
                # Freeing space helps, and stored entries are there for the next run.
                pruned = subprocess.run(
                    [UNIDLE, "cache", "prune", self.folder, "--max-bytes", "300kB"],
                    capture_output=True,
                    text=True,
                )
                self.assertEqual(pruned.returncode, 0, pruned.stderr)
                out, told = self.ran(
                    "c = unidle.Cache(sys.argv[1]); c['new'] = {'x': [1]}; print('new' in c, len(c) > 3)"
                )
                self.assertEqual((out, told), (["True", "True"], []))
                shutil.rmtree(self.folder)

    def test_one_that_may_only_be_read_serves(self):
        self.ran("c = unidle.Cache(sys.argv[1]); c['a'] = {'x': [1, 2]}")
        self.assertEqual(self.mount("-o", "remount,ro"), 0)
        out, told = self.ran(
            "c = unidle.Cache(sys.argv[1])\n"
            "b = [c.get_or_compute('b', lambda: {'x': [7]})['x'][0] for _ in range(2)]\n"
            "print(c['a']['x'].sum(), *b, 'b' in c)"
        )
        self.assertEqual(out, ["3", "7", "7", "False"])
        self.assertEqual(len(told), 1, told)
        self.assertEqual(self.verified().returncode, 0)
