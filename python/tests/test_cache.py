"""unidle.Cache: a mapping of names to named arrays."""

import gc
import shutil
import subprocess
import threading
import unittest
from pathlib import Path

import package
from cache_case import UNIDLE, CacheTest, blob_of, python

import unidle

np = package.needs("numpy")

TYPES = (
    "bool uint8 int8 uint16 int16 uint32 int32 uint64 int64 float16 float32 float64 complex64 complex128"
).split()


def hits_of(folder, name):
    """The count that determines eviction (detail/board.h)."""
    prefix = int.from_bytes(bytes.fromhex(blob_of(folder, name).name)[:8], "little")
    return (folder / "v1" / "board").read_bytes()[4096 + (4 << 16) + (prefix >> 20) % (1 << 22)]


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
        while "4" not in other:  # until earlier results are stored, and nothing is held meanwhile
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

    def test_what_no_dict_of_names_would_have_is_not_there(self):
        for name in (5, None, [], ("a",)):
            self.assertNotIn(name, self.cache)
            self.assertEqual(
                (self.cache.get(name), self.cache.get(name, 7), self.cache.pop(name, 7)), (None, 7, 7)
            )
            for action in (self.cache.__getitem__, self.cache.__delitem__, self.cache.pop):
                with self.assertRaises(KeyError):
                    action(name)
            for action in (self.cache.setdefault, self.cache.get_or_compute):
                with self.assertRaisesRegex(unidle.UsageError, "expected a str or bytes as name"):
                    action(name, lambda: {"x": 1})

    def test_where_it_is_no_dict(self):
        with unidle.Cache(self.folder) as cache:
            cache["a"] = {"x": [1]}
            arrays = cache["a"]
        self.assertEqual((cache["a"]["x"].tolist(), arrays["x"].tolist()), ([1], [1]))
        self.assertEqual((cache, {cache: 1}[cache]), (cache, 1))
        self.assertNotEqual(cache, unidle.Cache(self.folder))
        with self.assertRaises(TypeError):
            reversed(cache)

    def test_clear_removes_what_was_stored_by_name(self):
        self.cache.update((str(number), {"x": [number]}) for number in range(300))
        function = unidle.cached(self.cache, 1, name="one")(lambda: 1)
        function()
        self.cache.clear()
        self.assertEqual((list(self.cache), self.cache.statistics()["entries"]), ([], 1))

    def test_texts_and_dates_are_refused_with_what_to_store(self):
        for array in (np.array(["a", "bc"]), np.array([b"abc"]), np.array(["2026"], "M8[s]")):
            with self.assertRaisesRegex(
                unidle.UsageError, r"view\('(uint32|uint8|int64)'\) has numbers"
            ) as caught:
                self.cache["a"] = {"x": array}
            self.cache["a"] = {"x": array.view(str(caught.exception).split("'")[1])}
            np.testing.assert_array_equal(self.cache["a"]["x"].view(array.dtype), array)

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


if __name__ == "__main__":
    unittest.main()
