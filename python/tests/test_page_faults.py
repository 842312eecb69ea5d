"""Page faults of the training process, and keeping memory that is freed."""

import os
import subprocess
import sys
import unittest
import unittest.mock

SHIM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "shim")
sys.path.insert(0, SHIM)

from _unidle_shim.facts.page_faults import PageFaults  # noqa: E402
from _unidle_shim.knobs.kept_memory import KeptMemory  # noqa: E402

MIB = 1 << 20
# Prints the page faults of allocations that are freed at once, without the first one.
ALLOCATES = """
import resource, sys
sys.path.insert(0, sys.argv[1])
from _unidle_shim.knobs.kept_memory import KeptMemory
memory = KeptMemory()
if "keep" in sys.argv:
    assert memory.keep() and memory.in_effect()
def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
bytearray(64 << 20)
before = faults()
for _ in range(10):
    bytearray(64 << 20)
print(faults() - before)
"""


def faults_of_allocations(*words, **variables):
    done = subprocess.run(
        [sys.executable, "-c", ALLOCATES, SHIM, *words],
        env={**os.environ, **variables},
        stdout=subprocess.PIPE,
        check=True,
    )
    return int(done.stdout)


class Notes(unittest.TestCase):
    def test_faults_count_from_the_first_note_after_a_step_on(self):
        faults = PageFaults()
        self.assertEqual(list(faults.notes(0)), [])
        self.assertEqual(list(faults.notes(1)), [], "the training begins")
        kept = bytearray(32 * MIB)
        ((_, note),) = faults.notes(2)
        del kept
        pages = 32 * MIB // os.sysconf("SC_PAGESIZE")
        self.assertGreater(note["faults"], pages // 600, "also with pages of 2 MiB")
        self.assertGreaterEqual(note["cpu_seconds"], note["system_seconds"])
        self.assertGreater(note["seconds"], 0)
        (again,) = faults.notes(3)
        self.assertGreaterEqual(again[1]["faults"], note["faults"], "of the whole training")


class Kept(unittest.TestCase):
    def test_freed_memory_is_not_fetched_again(self):
        usual, kept = faults_of_allocations(), faults_of_allocations("keep")
        self.assertLess(kept, usual / 10)
        by_variables = faults_of_allocations(MALLOC_MMAP_MAX_="0", MALLOC_TRIM_THRESHOLD_="-1")
        self.assertLess(by_variables, usual / 10, "what the answer proposes for the environment")

    def test_the_environment_may_keep_it_already(self):
        for variables, keeps in (
            ({}, False),
            ({"MALLOC_MMAP_MAX_": "0"}, True),
            ({"MALLOC_MMAP_MAX_": "65536"}, False),
            ({"GLIBC_TUNABLES": "glibc.malloc.mmap_max=0"}, True),
            ({"GLIBC_TUNABLES": "glibc.malloc.check=1:glibc.malloc.mmap_max=0"}, True),
            ({"GLIBC_TUNABLES": "glibc.malloc.mmap_max=065"}, False),
        ):
            with unittest.mock.patch.dict(os.environ, variables, clear=True):
                self.assertIs(KeptMemory().in_effect(), keeps, variables)

    def test_another_c_library_is_left_alone(self):
        with unittest.mock.patch("ctypes.CDLL", return_value=object()):
            memory = KeptMemory()
            self.assertFalse(memory.keep())
            self.assertFalse(memory.kept)


if __name__ == "__main__":
    unittest.main()
