"""unidle.Cache: a mapping of names to named arrays, for many processes at once."""

import gc
import os
import pickle
import shutil
import subprocess
import sys
import tempfile
import threading
import unittest
from pathlib import Path

import package

import unidle

np = package.needs("numpy")

UNIDLE = package.BUILD / "bin" / "unidle"
TYPES = (
    "bool uint8 int8 uint16 int16 uint32 int32 uint64 int64 float16 float32 float64 complex64 complex128"
).split()


def hits_of(folder, name):
    """What eviction goes by (detail/board.h)."""
    prefix = int.from_bytes(bytes.fromhex(blob_of(folder, name).name)[:8], "little")
    return (folder / "v1" / "board").read_bytes()[4096 + (4 << 16) + (prefix >> 20) % (1 << 22)]


def python(program, *arguments, options=()):
    """Starts a Python that has the package; its output is text."""
    text = f"import sys; sys.path.insert(0, {sys.path[0]!r}); import unidle, numpy as np\n" + program
    command = [sys.executable, *options, "-c", text, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def blob_of(folder, name):
    """The file of an entry, as the program knows it."""
    command = [UNIDLE, "cache", "path", folder, "--name", name]
    return Path(subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip())


class CacheTest(unittest.TestCase):
    def setUp(self):
        self.folder = Path(tempfile.mkdtemp(prefix="unidle-cache-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.cache = unidle.Cache(self.folder)

    def said(self, process):
        out, err = process.communicate()
        self.assertEqual(process.returncode, 0, err)
        return out


class MappingTest(CacheTest):
    def test_what_is_put_comes_back_with_type_and_shape(self):
        arrays = {name: np.arange(24).reshape(2, 3, 4).astype(name) for name in TYPES}
        arrays.update(scalar=np.float32(2.5), empty=np.zeros((0, 7)), columns=np.asfortranarray(np.eye(3)))
        self.cache["all"] = arrays
        found = self.cache["all"]
        self.assertEqual(list(found), list(arrays))
        for name, array in arrays.items():
            np.testing.assert_array_equal(found[name], array)
            self.assertEqual((found[name].dtype, found[name].shape), (array.dtype, array.shape))

    def test_foreign_byte_order_and_lists_are_stored_by_their_values(self):
        self.cache["a"] = {
            "big": np.arange(5, dtype=">i4"),
            "list": [[1.5, 2.5]],
            "every other": np.arange(9)[::2],
        }
        found = self.cache["a"]
        self.assertEqual(found["big"].tolist(), [0, 1, 2, 3, 4])
        self.assertEqual(found["list"].tolist(), [[1.5, 2.5]])
        self.assertEqual(found["every other"].tolist(), [0, 2, 4, 6, 8])

    def test_text_and_bytes_name_different_entries(self):
        self.cache["a"], self.cache[b"a"] = {"x": 1}, {"x": 2}
        self.assertEqual((int(self.cache["a"]["x"]), int(self.cache[b"a"]["x"])), (1, 2))
        self.assertEqual(sorted(map(repr, self.cache)), ["'a'", "b'a'"])
        program = (
            "c = unidle.Cache(sys.argv[1])\n"
            "print(*(int(c[name]['x']) for name in ('a', b'a', 'a', b'a') for _ in '12'))"
        )
        self.assertEqual(self.said(python(program, self.folder, options=["-bb"])), "1 1 2 2 1 1 2 2\n")

    def test_it_is_a_mapping(self):
        names = ["", "grüße", "a/../b", "x" * 5000, "\udcff", b"", b"\0\xff"]
        for number, name in enumerate(names):
            self.cache[name] = {"n": number}
        self.assertEqual(set(self.cache), set(names))
        self.assertEqual((len(self.cache), bool(self.cache)), (len(names), True))
        self.assertEqual(
            {name: int(value["n"]) for name, value in self.cache.items()}, dict(zip(names, range(9)))
        )
        del self.cache["grüße"]
        self.assertNotIn("grüße", self.cache)
        self.assertIn(b"", self.cache)
        self.assertIsNone(self.cache.get("grüße"))
        with self.assertRaises(KeyError):
            del self.cache["grüße"]
        self.assertEqual(int(self.cache.pop("")["n"]), 0)
        self.cache.clear()
        self.assertEqual(
            (list(self.cache), bool(self.cache), self.cache.statistics()["entries"]), ([], False, 0)
        )

    def test_len_counts_what_was_stored_by_name(self):
        @unidle.cached(self.cache, version=1)
        def squared(number):
            return np.array([number * number])

        self.assertFalse(self.cache)
        for number in range(5):
            squared(number)
            self.cache[str(number)] = {"x": np.zeros(3)}
        self.cache.update((number.to_bytes(2, "big"), {}) for number in range(4))
        self.cache.get_or_compute("computed", lambda: {"x": np.zeros(3)})
        self.assertEqual(len(self.cache), 10)
        self.assertEqual(len(list(self.cache)), 10)
        self.assertEqual(self.cache.statistics()["entries"], 15)
        self.assertEqual(set(self.cache.statistics()), {"entries", "bytes", "max_bytes"})
        del self.cache["3"]
        self.assertEqual(len(self.cache), 9)
        self.assertTrue(self.cache)

    def test_an_entry_can_be_replaced(self):
        self.cache["a"] = {"x": [1]}
        before = self.cache["a"]["x"]
        self.cache["a"] = {"y": [2, 3]}
        self.assertEqual((before.tolist(), list(self.cache["a"]), len(self.cache)), ([1], ["y"], 1))

    def test_what_is_asked_for_again_is_what_is_there_now(self):
        other = unidle.Cache(self.folder)
        self.cache["a"] = {"x": [1]}
        for value in (1, 2, 3):
            other["a"] = {"x": [value]}
            self.assertEqual([int(self.cache["a"]["x"][0]) for _ in range(3)], [value] * 3)
        self.said(python("unidle.Cache(sys.argv[1])['a'] = {'x': [4]}", self.folder))
        self.assertEqual(int(self.cache["a"]["x"][0]), 4)
        del other["a"]
        with self.assertRaises(KeyError):
            self.cache["a"]

    def test_each_who_asks_has_arrays_of_their_own(self):
        self.cache["a"] = {"x": np.arange(6), "empty": np.zeros((0, 2))}
        first = self.cache["a"]
        first["x"].shape = (2, 3)
        del first["empty"]
        again = self.cache["a"]
        self.assertEqual({name: array.shape for name, array in again.items()}, {"x": (6,), "empty": (0, 2)})
        np.testing.assert_array_equal(again["x"], np.arange(6))

    def test_each_use_counts_for_eviction(self):
        self.cache["a"] = {"x": np.zeros(5)}
        counted = []
        for _ in range(5):
            self.cache["a"]
            counted.append(hits_of(self.folder, "a"))
        self.assertEqual(counted, [1, 2, 3, 3, 3])

    def test_update_takes_a_mapping_pairs_and_names(self):
        self.cache.update({"a": {"x": [1]}, b"a": {"x": [2]}}, c={"x": [3]})
        self.cache.update((str(number), {"x": [number]}) for number in range(300))
        self.cache.update()
        self.cache.update([("a", {"x": [4]}), ("b", {"x": [5]}), ("a", {"x": [6]})])
        self.assertEqual(len(self.cache), 304)
        found = {name: int(self.cache[name]["x"][0]) for name in ["a", b"a", "b", "c", "299"]}
        self.assertEqual(found, {"a": 6, b"a": 2, "b": 5, "c": 3, "299": 299})

    def test_update_waits_for_who_computes(self):
        computing, asked = threading.Event(), threading.Event()

        def compute():
            computing.set()
            asked.wait()
            return {"x": [1]}

        other = unidle.Cache(self.folder)
        computes = threading.Thread(target=other.get_or_compute, args=("5", compute))
        computes.start()
        computing.wait()
        updates = threading.Thread(
            target=self.cache.update, args=([(str(number), {"x": [number]}) for number in range(10)],)
        )
        updates.start()
        while "4" not in other:  # what comes before is stored, and nothing is held meanwhile
            pass
        other["4"] = {"x": [40]}
        self.assertNotIn("9", other)
        asked.set()
        computes.join()
        updates.join()
        self.assertEqual(
            [int(other[str(number)]["x"][0]) for number in range(10)], [0, 1, 2, 3, 40, *range(5, 10)]
        )

    def test_update_stores_what_came_before_it_failed(self):
        def entries():
            for number in range(200):
                yield str(number), {"x": [number]}
            raise OSError("no more")

        with self.assertRaises(OSError):
            self.cache.update(entries())
        self.assertIn("0", self.cache)
        self.cache["199"] = {"x": [0]}  # nobody holds it
        with self.assertRaises(unidle.UsageError):
            self.cache.update({"a": {"x": [1]}, "b": {"x": "text"}})

    def test_what_is_no_dict_of_arrays_is_told_what_was_expected(self):
        for value in (np.zeros(3), [1, 2], None, 3):
            with self.assertRaisesRegex(unidle.UsageError, "dict of named arrays, found"):
                self.cache["a"] = value
        self.assertNotIn("a", self.cache)

    def test_masked_values_are_not_lost_silently(self):
        with self.assertRaisesRegex(unidle.UsageError, "array x: has masked values"):
            self.cache["a"] = {"x": np.ma.array([1.0, 2.0], mask=[False, True])}
        self.cache["a"] = {"x": np.ma.array([1.0, 2.0])}
        np.testing.assert_array_equal(self.cache["a"]["x"], [1.0, 2.0])

    def test_what_makes_no_sense_is_refused(self):
        for name, arrays in [
            (3, {"x": 1}),
            (None, {"x": 1}),
            ("a", {"x": "text"}),
            ("a", {"x": object()}),
            ("a", {"x": np.zeros(2, "M8[s]")}),
            ("a", {"nul\0": 1}),
            ("a", {7: 1}),
            ("a", {"x" * 2000: 1}),
            ("a", {"unidle:name": 1}),
        ]:
            with self.assertRaises(unidle.UsageError, msg=f"{name!r} {arrays!r}"):
                self.cache[name] = arrays
        self.assertEqual(self.cache.statistics()["entries"], 0)
        with self.assertRaises(unidle.UsageError):
            unidle.Cache(self.folder / "unidle-cache.json")
        with self.assertRaises(unidle.UsageError):
            unidle.Cache(self.folder, max_bytes=-1)

    def test_names_are_those_of_the_program(self):
        self.cache["1ubq"] = {"x": np.zeros(5)}
        self.assertTrue(blob_of(self.folder, "1ubq").is_file())


class MemoryTest(CacheTest):
    def test_arrays_are_mapped_and_read_only(self):
        self.cache["a"] = {"x": np.arange(1 << 16)}
        found = self.cache["a"]["x"]
        self.assertFalse(found.flags.writeable)
        self.assertFalse(found.flags.owndata)
        with self.assertRaises(ValueError):
            found[0] = 1
        with self.assertRaises(ValueError):
            found.flags.writeable = True
        self.assertEqual(found.ctypes.data % 64, 0)

    def test_arrays_outlive_entry_and_cache(self):
        values = np.random.default_rng(0).random(10_000)
        cache = unidle.Cache(self.folder)
        cache["a"] = {"x": values, "y": values + 1}
        part = cache["a"]["x"][100:200]
        del cache["a"], cache
        gc.collect()
        shutil.rmtree(self.folder)
        np.testing.assert_array_equal(part, values[100:200])

    def test_files_are_let_go_with_the_last_array(self):
        cache = unidle.Cache(self.folder, max_bytes=1 << 20)  # a sixteenth of it may stay mapped for speed
        for number in range(20):
            cache[str(number)] = {"x": np.full(30_000, number % 100, np.uint8)}

        def mapped():
            return Path("/proc/self/maps").read_text().count("/blobs/")

        kept = [cache[str(number)]["x"] for number in range(20)]
        self.assertGreaterEqual(mapped(), 18)
        kept.clear()
        gc.collect()
        self.assertLessEqual(mapped(), 4)

    def test_what_is_kept_for_speed_goes_when_others_need_room(self):
        cache = unidle.Cache(self.folder, max_bytes=1 << 20)
        for number in range(20):
            cache[str(number)] = {"x": np.zeros(100)}
        held = [cache[str(number)] for number in range(20) for _ in range(2)][0]

        def left():
            command = [UNIDLE, "cache", "prune", self.folder, "--max-bytes", "0"]
            subprocess.run(command, capture_output=True, check=True)
            return len(cache)

        self.assertGreater(left(), 1)
        self.assertIsNone(cache.get("not there"))
        self.assertEqual(left(), 1)
        np.testing.assert_array_equal(held["x"], np.zeros(100))

    def test_the_bound_holds_and_is_kept_with_the_cache(self):
        cache = unidle.Cache(self.folder, max_bytes=100_000)
        for number in range(50):
            cache[str(number)] = {"x": np.zeros(10_000, np.uint8)}
        self.assertLessEqual(cache.statistics()["bytes"], 100_000)
        self.assertGreaterEqual(len(cache), 5)
        self.assertEqual(unidle.Cache(self.folder).statistics()["max_bytes"], 100_000)


class FaultTest(CacheTest):
    def test_a_damaged_entry_counts_as_missing(self):
        self.cache["a"], self.cache["b"] = {"x": [1]}, {"x": [2]}
        blob = blob_of(self.folder, "a")
        blob.write_bytes(blob.read_bytes()[:-1] + b"\xff")
        out = self.said(
            python("c = unidle.Cache(sys.argv[1]); print(c.get('a'), list(c), c['b']['x'][0])", self.folder)
        )
        self.assertEqual(out.strip(), "None ['b'] 2")
        self.assertFalse(blob.exists())

    def test_where_nothing_can_be_written_results_are_computed(self):
        shutil.rmtree(self.folder / "v1" / "tmp")
        (self.folder / "v1" / "tmp").write_text("no folder")
        process = python(
            "c = unidle.Cache(sys.argv[1])\n"
            "a = [c.get_or_compute('a', lambda: {'x': [7]})['x'] for _ in range(2)]\n"
            "print(*(int(x[0]) for x in a), a[0].flags.writeable, 'a' in c)",
            self.folder,
        )
        out, err = process.communicate()
        self.assertEqual((process.returncode, out.split()), (0, ["7", "7", "False", "False"]), err)
        self.assertEqual(len(err.splitlines()), 1, err)


COMPUTE = """
import os, time
cache = unidle.Cache(sys.argv[1])
def compute():
    with open(sys.argv[2], "a") as log:
        log.write("x")
    time.sleep(0.2)  # the others come meanwhile
    return {"pid": os.getpid()}
print(int(cache.get_or_compute("one", compute)["pid"]))
"""


class ProcessesTest(CacheTest):
    def test_eight_processes_compute_once(self):
        log = self.folder / "log"
        processes = [python(COMPUTE, self.folder / "cache", log) for _ in range(8)]
        answers = {self.said(process).split()[-1] for process in processes}
        self.assertEqual((len(answers), log.read_text()), (1, "x"))

    def test_threads_compute_once(self):
        calls, answers = [], []
        barrier = threading.Barrier(8)

        def ask():
            barrier.wait()
            entry = self.cache.get_or_compute("one", lambda: calls.append(1) or {"x": np.arange(3)})
            answers.append(entry["x"].tolist())

        threads = [threading.Thread(target=ask) for _ in range(8)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        self.assertEqual((len(calls), answers), (1, [[0, 1, 2]] * 8))

    def test_when_the_computing_process_dies_another_takes_over(self):
        dying = python(
            "c = unidle.Cache(sys.argv[1])\n"
            "def compute():\n"
            "    print('computing', flush=True); sys.stdin.read()\n"
            "c.get_or_compute('one', compute)",
            self.folder,
        )
        self.assertEqual(dying.stdout.readline(), "computing\n")
        waiting = python(
            "print(unidle.Cache(sys.argv[1]).get_or_compute('one', lambda: {'x': 5})['x'])", self.folder
        )
        self.assertIsNone(waiting.poll())
        dying.kill()
        dying.communicate()
        self.assertEqual(self.said(waiting).strip(), "5")

    def test_a_forked_child_goes_on(self):
        self.cache["a"] = {"x": [1]}
        held = self.cache["a"]["x"]
        child = os.fork()
        if child == 0:
            try:
                self.cache["b"] = {"x": held + 1}
                fine = self.cache["a"]["x"].tolist() == [1] and len(self.cache) == 2
                os._exit(0 if fine else 1)
            finally:
                os._exit(2)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)
        self.assertEqual((self.cache["b"]["x"].tolist(), held.tolist()), ([2], [1]))

    def test_a_pickled_cache_is_opened_where_it_arrives(self):
        self.cache["a"] = {"x": [1]}
        again = pickle.loads(pickle.dumps(self.cache))
        self.assertEqual((again.path, again["a"]["x"].tolist()), (self.cache.path, [1]))

    def test_waiting_is_ended_by_a_signal(self):
        with self.cache.claim(self.cache._key(1, b"one")):
            waiting = python(
                "import signal, os\n"
                "def stop(*_): raise KeyboardInterrupt\n"
                "signal.signal(signal.SIGALRM, stop); signal.setitimer(signal.ITIMER_REAL, 0.3)\n"
                "try: unidle.Cache(sys.argv[1])['one'] = {}\n"
                "except KeyboardInterrupt: print('stopped')",
                self.folder,
            )
            self.assertEqual(self.said(waiting).strip(), "stopped")


class Predicted:
    """A map-style data set with a cache."""

    def __init__(self, folder):
        self.cache = unidle.Cache(folder)

    def __len__(self):
        return 32

    def __getitem__(self, item):
        features = self.cache.get_or_compute(str(item % 16), lambda: {"x": np.full(4, item % 16, np.float32)})
        return features["x"].copy()


class WorkersTest(CacheTest):
    def test_workers_of_a_dataloader_share_it(self):
        try:
            from torch.utils.data import DataLoader
        except ImportError:
            self.skipTest("needs torch")
        for method in ("fork", "spawn"):
            with self.subTest(method):
                data = Predicted(self.folder / method)
                loader = DataLoader(data, batch_size=8, num_workers=2, multiprocessing_context=method)
                rows = [row for batch in loader for row in batch[:, 0].tolist()]
                self.assertEqual(rows, [item % 16 for item in range(32)])
                self.assertEqual(len(data.cache), 16)

    def test_tensors_are_stored_and_bfloat16_keeps_its_bits(self):
        try:
            import torch
        except ImportError:
            self.skipTest("needs torch")
        tensor = torch.arange(6, dtype=torch.bfloat16).reshape(2, 3)
        self.cache["a"] = {"b": tensor, "t": torch.eye(3, requires_grad=True).t()}
        found = self.cache["a"]
        self.assertEqual((found["b"].shape, found["b"].dtype.itemsize), ((2, 3), 2))
        self.assertTrue(
            torch.equal(torch.from_numpy(found["b"].view("int16").copy()).view(torch.bfloat16), tensor)
        )
        np.testing.assert_array_equal(found["t"], np.eye(3, dtype=np.float32))


if __name__ == "__main__":
    unittest.main()
