"""unidle.data.npy and windows: the results of numpy and of a plain loop, for every kind of file."""

import tempfile
import unittest
from pathlib import Path

import package

import unidle
from unidle.data import Loader, arrays, npy, windows

np = package.needs("numpy")

TYPES = "bool int8 uint8 <i2 >i2 <u2 >u4 <i4 <i8 >i8 <f2 >f2 <f4 >f4 <f8 >f8 <u8".split()


def values(shape, kind, seed=0):
    numbers = np.random.default_rng(seed).integers(0, 100, shape)
    return (numbers % 2 if kind == "bool" else numbers).astype(kind)


def rows(source, field=0, **options):
    options = {"shuffle": False, **options}
    return np.concatenate([batch[field] for batch in Loader(source, 5, tensors="numpy", **options)])


class InFolder(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = Path(temporary.name)


class FilesTest(InFolder):
    def test_every_type_order_and_version(self):
        for kind in TYPES:
            for order in "CF":
                for version in ((1, 0), (2, 0), (3, 0)):
                    array = np.asarray(values((7, 3, 2), kind), order=order)
                    with open(self.folder / "x.npy", "wb") as file:
                        np.lib.format.write_array(file, array, version=version)
                    got = rows(npy(self.folder / "x.npy"))
                    self.assertEqual(got.dtype, array.dtype.newbyteorder("="))
                    np.testing.assert_array_equal(got, array, err_msg=f"{kind} {order} {version}")

    def test_headers_of_python_2(self):
        header = b"{'descr': '<i4', 'fortran_order': False, 'shape': (3L, 2L), }".ljust(117) + b"\n"
        (self.folder / "x.npy").write_bytes(
            b"\x93NUMPY\x01\x00"
            + len(header).to_bytes(2, "little")
            + header
            + np.arange(6, dtype="<i4").tobytes()
        )
        np.testing.assert_array_equal(np.load(self.folder / "x.npy"), np.arange(6).reshape(3, 2))
        np.testing.assert_array_equal(rows(npy(self.folder / "x.npy")), np.arange(6).reshape(3, 2))

    def test_rows_without_axes_and_without_values(self):
        np.save(self.folder / "x.npy", np.arange(9.0))
        np.testing.assert_array_equal(rows(npy(self.folder / "x.npy")), np.arange(9.0))
        np.save(self.folder / "x.npy", np.asfortranarray(np.arange(9)))
        np.testing.assert_array_equal(rows(npy(self.folder / "x.npy")), np.arange(9))

    def test_shards_come_in_natural_order_and_may_differ_in_length(self):
        shards = [values((count, 4), "<f4", count) for count in (3, 9, 1, 6)]
        for number, shard in zip((1, 2, 10, 11), shards):
            np.save(self.folder / f"image_{number}.npy", shard)
        np.testing.assert_array_equal(rows(npy(self.folder, ["image"]), workers=3), np.concatenate(shards))

    def fields(self, layout):
        images = [values((n, 6, 5), "u1", n) for n in (4, 7, 2)]
        heats = [values((n, 3), "<f4", n + 50) for n in (4, 7, 2)]
        for number, (image, heat) in enumerate(zip(images, heats)):
            layout(number, image, heat)
        source = npy(self.folder, ("image", "heat"))
        self.assertEqual([field.name for field in source.fields], ["image", "heat"])
        np.testing.assert_array_equal(rows(source, 0), np.concatenate(images))
        np.testing.assert_array_equal(rows(source, 1), np.concatenate(heats))

    def test_fields_by_prefix(self):
        def layout(number, image, heat):
            np.save(self.folder / f"image-{number}.npy", image)
            np.save(self.folder / f"heat-{number}.npy", heat)

        self.fields(layout)

    def test_fields_by_suffix(self):
        def layout(number, image, heat):
            np.save(self.folder / f"{number}_image.npy", image)
            np.save(self.folder / f"{number}_heat.npy", heat)

        self.fields(layout)

    def test_fields_by_folder(self):
        def layout(number, image, heat):
            for name, array in (("image", image), ("heat", heat)):
                (self.folder / name).mkdir(exist_ok=True)
                np.save(self.folder / name / f"{number}.npy", array)

        self.fields(layout)

    def test_fields_in_archives(self):
        self.fields(
            lambda number, image, heat: np.savez(self.folder / f"{number}.npz", image=image, heat=heat)
        )

    def test_one_archive(self):
        path = self.folder / "alone.npz"
        np.savez(path, x=np.arange(4), y=np.arange(8).reshape(4, 2))
        self.assertEqual([field.name for field in npy(path).fields], ["y", "x"])
        (batch,) = Loader(npy(path, ["x"]), 4, shuffle=False, tensors="numpy")
        self.assertEqual(batch[0].tolist(), [0, 1, 2, 3])
        np.savez(path)
        with self.assertRaisesRegex(unidle.errors.InputError, "alone.npz"):
            npy(path)

    def test_files_that_change_meanwhile_are_named(self):
        path = self.folder / "x.npy"
        np.save(path, np.ones((10, 3), "f4"))
        batches = iter(Loader(npy(path), 5, shuffle=False, workers=0))
        next(batches)
        np.save(path, np.full((20, 3), 7.0))  # replaces it
        with self.assertRaisesRegex(unidle.InputError, "x.npy: was changed while it was read"):
            next(batches)
        for number in range(200):  # more than are held open
            np.save(self.folder / f"y_{number:03}.npy", np.full((2, 3), number))
        source = npy(self.folder, ["y"])
        np.save(self.folder / "other.npy", np.full((2, 3), 5))
        (self.folder / "other.npy").replace(self.folder / "y_150.npy")
        with self.assertRaisesRegex(unidle.InputError, "y_150.npy: was changed"):
            list(Loader(source, 50, shuffle=False, workers=0))

    def test_the_longest_name_that_fits_has_the_file(self):
        np.save(self.folder / "image.npy", np.zeros((3, 2)))
        np.save(self.folder / "image_mask.npy", np.ones((3, 2)))
        source = npy(self.folder, ["image", "image_mask"])
        self.assertEqual(rows(source, 0).sum(), 0)
        self.assertEqual(rows(source, 1).sum(), 6)

    def test_the_same_bytes_for_any_workers_ranks_and_start(self):
        for number in range(4):
            np.save(self.folder / f"x_{number}.npy", values((13 + number, 3), ">i4", number))
        source = npy(self.folder, ["x"])
        expected = rows(source, shuffle=True, seed=3, workers=0)
        for workers in (1, 3):
            np.testing.assert_array_equal(rows(source, shuffle=True, seed=3, workers=workers), expected)
        ranks = [rows(source, shuffle=True, seed=3, rank=rank, world=2) for rank in range(2)]
        np.testing.assert_array_equal(np.stack(ranks, 1).reshape(-1, 3)[: len(expected)], expected)
        for start in (0, 1, 17, 40, len(source) - 1):
            loader = Loader(source, 4, seed=3, tensors="numpy")
            loader.load_state_dict({**loader.state_dict(), "sample": start})
            np.testing.assert_array_equal(np.concatenate([batch[0] for batch in loader]), expected[start:])

    def test_more_shards_than_files_are_kept_open(self):
        for number in range(300):
            np.save(self.folder / f"x_{number}.npy", np.full((2, 1), number))
        got = rows(npy(self.folder, ["x"]), shuffle=True, workers=4)
        self.assertEqual(sorted(got[:, 0].tolist()), sorted(list(range(300)) * 2))


class DamageTest(InFolder):
    def refused(self, fields=None, path=None):
        with self.assertRaises(unidle.InputError) as caught:
            npy(path or self.folder, fields or ["x"])
        return str(caught.exception)

    def test_what_is_wrong_is_named(self):
        self.assertIn("field x", self.refused())
        np.save(self.folder / "x_1.npy", np.zeros((3, 2)))
        np.save(self.folder / "x_2.npy", np.zeros((3, 3)))
        self.assertIn("x_2.npy", self.refused())
        np.save(self.folder / "x_2.npy", np.zeros((3, 2), np.float32))
        self.assertIn("x_2.npy", self.refused())
        np.save(self.folder / "x_2.npy", np.zeros((3, 2)))
        np.save(self.folder / "y_1.npy", np.zeros((3, 2)))
        self.assertIn("y", self.refused(["x", "y"]))
        np.save(self.folder / "y_2.npy", np.zeros((4, 2)))
        self.assertIn("y_2.npy", self.refused(["x", "y"]))
        with self.assertRaises(unidle.UsageError):
            npy(self.folder, "x")

    def test_types_that_have_no_place_are_refused(self):
        for array in (
            np.array(["text"]),
            np.array([1 + 2j]),
            np.zeros(3, [("a", "f4"), ("b", "i4")]),
            np.zeros(3, "datetime64[s]"),
            np.array([{}], dtype=object),
            np.float32(3),
        ):
            np.save(self.folder / "x.npy", array, allow_pickle=True)
            self.assertIn("x.npy", self.refused())

    def test_complex_numbers_are_taken_as_told(self):
        complexes = (np.arange(6).reshape(3, 2) * (1 - 2j)).astype("complex64")
        with self.assertRaisesRegex(
            unidle.UsageError, r"real numbers.*found complex64 \(array.view\('float32'\)"
        ):
            arrays(complexes)
        np.save(self.folder / "x.npy", complexes)
        self.assertRegex(self.refused(), r'complex numbers \(<c8\).*save array.view\("float32"\)')
        np.save(self.folder / "x.npy", complexes.view("float32"))
        np.testing.assert_array_equal(rows(npy(self.folder / "x.npy")).view("complex64"), complexes)

    def test_every_cut_is_refused(self):
        np.save(self.folder / "x.npy", values((5, 3), "<f4"))
        whole = (self.folder / "x.npy").read_bytes()
        for length in range(len(whole)):
            (self.folder / "x.npy").write_bytes(whole[:length])
            self.assertIn("x.npy", self.refused())
        (self.folder / "x.npy").write_bytes(whole)
        npy(self.folder, ["x"])

    def test_archives_that_are_compressed_cut_or_lack_a_member(self):
        np.savez_compressed(self.folder / "a.npz", x=np.zeros((4, 4)))
        self.assertIn("compressed", self.refused())
        np.savez(self.folder / "a.npz", y=np.zeros((4, 4)))
        self.assertIn("a.npz", self.refused())
        np.savez(self.folder / "a.npz", x=values((5, 3), "<f4"), y=np.zeros(9))
        whole = (self.folder / "a.npz").read_bytes()
        for length in range(len(whole)):
            (self.folder / "a.npz").write_bytes(whole[:length])
            self.assertIn("a.npz", self.refused())

    def test_a_file_that_becomes_shorter_is_an_error_and_no_signal(self):
        for number in range(3):
            np.save(self.folder / f"x_{number}.npy", np.zeros((50, 100)))
        source = npy(self.folder, ["x"])
        with open(self.folder / "x_1.npy", "r+b") as file:
            file.truncate(2000)
        with self.assertRaisesRegex(unidle.InputError, "x_1.npy"):
            rows(source, workers=2)
        loader = Loader(source, 5, shuffle=False, on_error="replace")
        self.assertEqual(len(list(loader)), 30)
        self.assertGreater(loader.skipped, 40)


class ShardsTest(InFolder):
    """shuffle_shards: a window of shards is shuffled at a time."""

    def shards(self, *lengths):
        for old in self.folder.glob("*.npy"):
            old.unlink()
        first = np.cumsum([0, *lengths])
        for number, (begin, length) in enumerate(zip(first, lengths)):
            np.save(self.folder / f"x_{number}.npy", np.arange(begin, begin + length))
        return npy(self.folder, ["x"])

    def taken(self, source, **options):
        loader = Loader(source, 7, tensors="numpy", **options)
        return np.concatenate([batch[0] for batch in loader]).tolist()

    def test_an_epoch_has_each_row_once_and_a_shard_within_a_window(self):
        source = self.shards(*[10] * 12)
        for seed in range(5):
            order = self.taken(source, shuffle_shards=3, seed=seed)
            self.assertEqual(sorted(order), list(range(120)))
            for begin in range(0, 120, 30):
                window = {row // 10 for row in order[begin : begin + 30]}
                self.assertEqual(len(window), 3)
            self.assertNotEqual(order, self.taken(source, shuffle_shards=3, seed=seed + 1))

    def test_shards_of_other_lengths(self):
        for lengths in ([10, 10, 10, 4], [3, 9, 1, 6, 20], [5], [1, 1, 1]):
            source = self.shards(*lengths)
            for window in (1, 2, 100):
                order = self.taken(source, shuffle_shards=window, workers=2)
                self.assertEqual(sorted(order), list(range(sum(lengths))), (lengths, window))

    def test_a_subset_keeps_its_shards(self):
        rows = [row for row in range(120) if row % 5]
        subset = self.shards(*[10] * 12).subset(rows)
        order = self.taken(subset, shuffle_shards=3)
        self.assertEqual(sorted(order), rows)
        self.assertNotEqual(order, rows)
        for begin in range(0, 96, 24):
            self.assertEqual(len({row // 10 for row in order[begin : begin + 24]}), 3)

    def test_workers_ranks_and_resuming(self):
        source = self.shards(*[8] * 9)
        expected = self.taken(source, shuffle_shards=2, workers=0)
        self.assertEqual(self.taken(source, shuffle_shards=2, workers=3), expected)
        ranks = [self.taken(source, shuffle_shards=2, rank=rank, world=3) for rank in range(3)]
        self.assertEqual([row for rows in zip(*ranks) for row in rows], expected)
        loader = Loader(source, 7, shuffle_shards=2, tensors="numpy")
        batches = iter(loader)
        for _ in range(4):
            next(batches)
        later = Loader(source, 7, shuffle_shards=2, tensors="numpy", workers=1)
        later.load_state_dict(loader.state_dict())
        self.assertEqual(np.concatenate([batch[0] for batch in later]).tolist(), expected[28:])
        with self.assertRaisesRegex(unidle.UsageError, "loader state"):
            Loader(source, 7, shuffle_shards=3).load_state_dict(loader.state_dict())

    def test_what_makes_no_sense_is_refused(self):
        source = self.shards(8, 8)
        for options in (
            {"shuffle_shards": 0},
            {"shuffle_shards": 2, "shuffle": False},
            {"shuffle_shards": "x"},
        ):
            with self.assertRaisesRegex(unidle.UsageError, "loader option shuff"):
                Loader(source, 7, **options)
        for other in (arrays(np.arange(9)), source.subset([9, 2])):
            with self.assertRaisesRegex(unidle.UsageError, r"source of shards.*\.subset\(sorted\(items\)\)"):
                Loader(other, 7, shuffle_shards=2)
        with self.assertRaisesRegex(unidle.UsageError, "expected one of them"):
            Loader(source, 7, shuffle_shards=2, weights=[1] * 16)


class WindowsTest(unittest.TestCase):
    def test_windows_are_those_of_a_plain_loop(self):
        rng = np.random.default_rng(1)
        series = [rng.normal(size=(steps, 3)) for steps in (40, 7, 90)]
        for length, horizon, stride in ((5, 1, 1), (8, 3, 2), (1, 0, 7)):
            source = windows(series, length, horizon, stride)
            expected = [
                (one[start : start + length], one[start + length : start + length + horizon])
                for one in (array.astype(np.float32) for array in series)
                for start in range(0, len(one) - length - horizon + 1, stride)
            ]
            self.assertEqual(len(source), len(expected))
            inputs, targets = (rows(source, field) for field in range(2))
            np.testing.assert_array_equal(inputs, np.stack([one for one, _ in expected]))
            np.testing.assert_array_equal(targets, np.stack([one for _, one in expected]))

    def test_gaps_and_targets(self):
        series = np.arange(60, dtype=np.float32).reshape(20, 3)
        series[9, 1] = np.nan
        source = windows(series, 4, 2, targets=[2])
        self.assertEqual(len(source), (9 - 6 + 1) + (10 - 6 + 1))
        self.assertFalse(np.isnan(rows(source, 0)).any())
        np.testing.assert_array_equal(rows(source, 1)[0], series[4:6, 2:])
        self.assertEqual(len(windows(series, 4, 2, skip_gaps=False)), 15)

    def test_a_single_row_of_numbers_is_a_series(self):
        source = windows(np.arange(10.0), 3)
        self.assertEqual(rows(source).shape, (7, 3, 1))

    def test_what_makes_no_sense_is_refused(self):
        with self.assertRaises(unidle.InputError):
            windows(np.arange(10.0), 30)
        with self.assertRaises(unidle.UsageError):
            windows(np.arange(10.0), 0)
        with self.assertRaises(unidle.UsageError):
            windows(np.zeros((2, 3, 4)), 1)


if __name__ == "__main__":
    unittest.main()
