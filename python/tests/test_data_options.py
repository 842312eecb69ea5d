"""Arguments of unidle.data: numpy's numbers count as numbers, paths are arbitrary bytes, and invalid values
are a UsageError that names the option."""

import os
import tempfile
import unittest
from pathlib import Path

import package

import unidle
from unidle.data import Loader, arrays, images, npy, pairs, sequences, table, windows

np, torch = package.needs("numpy", "torch")

NAN = float("nan")
ROWS = np.arange(30, dtype=np.float32).reshape(10, 3)


class InFolder(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = Path(temporary.name)
        (self.folder / "a.txt").write_text("ACD\nAC\n")
        (self.folder / "a.csv").write_text("seq,label\nACD,1\nAC,0\n")

    def refuses(self, text, function, *arguments, **options):
        with self.subTest(text, options=options), self.assertRaisesRegex(unidle.UsageError, text):
            function(*arguments, **options)


class OptionsTest(InFolder):
    def test_the_loader_names_the_option(self):
        source = arrays(ROWS)
        for name, values in {
            "batch_size": ("x", 1.5, 0, None, True, 2**40),
            "seed": ("x", 1.5, None, 2**64),
            "workers": ("2", 1.5, -1, True, 10**6),
            "prefetch": ("2", 0),
            "shuffle": (None, "no", 1),
            "drop_last": (None, "yes"),
            "on_error": (None, "x"),
            "batch_transform": (3,),
            "device": ("foo",),
        }.items():
            for value in values:
                self.refuses(f"loader option {name}: ", Loader, source, **{name: value})
        self.refuses("loader option rank: expected 0 to 1", Loader, source, rank=2, world=2)
        self.refuses("loader option world: ", Loader, source, rank=0, world="1")
        self.refuses("wrap", Loader, torch.utils.data.TensorDataset(torch.zeros(3)))

    def test_sources_name_the_option(self):
        for function in (images, pairs, npy, sequences):
            for path in (None, 3, "", "a\0b", ["a"]):
                self.refuses("option path: expected a path", function, path)
        for path in (None, 3, [], [None], ""):
            self.refuses("table option paths: ", table, path)
        for name, value in {"scale": 5, "mean": "abc", "flip": NAN, "size": 1.5, "transform": 3}.items():
            self.refuses(f"images option {name}: ", images, self.folder, **{name: value})
        for name, value in {"length": 1.5, "targets": 3, "stride": 0}.items():
            self.refuses(f"windows option {name}: ", windows, ROWS, **{"length": 2, name: value})
        self.refuses("sequences option padding: ", sequences, self.folder / "a.txt", padding=NAN)
        self.refuses("npy option fields: ", npy, self.folder, fields="image")
        self.refuses("arrays option names: ", arrays, ROWS, names=3)
        self.refuses("pairs option crop: ", pairs, self.folder, crop=3)

    def test_numbers_of_numpy_and_torch_are_numbers(self):
        source = windows(ROWS, np.int64(4), horizon=np.int32(2), targets=np.array([0, 2]))
        self.assertEqual([field.shape for field in source.fields], [(4, 3), (2, 2)])
        loader = Loader(source, np.int64(2), seed=np.int64(3), workers=np.int32(1), rank=np.int64(0), world=1)
        self.assertEqual(next(iter(loader))[0].shape, (2, 4, 3))
        self.assertEqual(len(arrays(ROWS).subset(torch.tensor([1, 2]))), 2)
        self.assertEqual(len(sequences(self.folder / "a.txt", np.int64(9)).fields), 2)

    def test_a_subset_takes_items_and_nothing_else(self):
        source = arrays(ROWS)
        for items in ([1.5], ["1"], [None], [True], [10], [-1], [2**70], 3, "12", np.array([1.0])):
            self.refuses("subset option items: ", source.subset, items)
        (batch,) = Loader(source.subset(np.array([9, 0, 9])), 3, shuffle=False)
        self.assertEqual(batch[0][:, 0].tolist(), [27, 0, 27])

    def test_what_a_loader_was_made_with_is_not_changed_later(self):
        """As in torch's DataLoader; changes of its own options would have no effect."""
        loader = Loader(arrays(np.arange(20)), 4, shuffle=False)
        whole = [batch[0].tolist() for batch in loader]
        names = "batch_size drop_last dataset sampler batch_sampler persistent_workers".split()  # torch's
        names += "shuffle seed workers source rank world prefetch max_bytes on_error weights groups".split()
        names += "num_workers prefetch_factor collate_fn device tensors pin_memory generator".split()
        for name in names:
            for value in (None, 5, getattr(loader, name, True)):
                with self.assertRaisesRegex(ValueError, f"{name} attribute should not be set after"):
                    setattr(loader, name, value)
        self.assertEqual((loader.batch_size, loader.drop_last, loader.shuffle), (4, False, False))
        self.assertEqual([batch[0].tolist() for batch in loader], whole)
        loader.of_the_program = 1
        loader.batch_transform = lambda batch: batch[0].tolist()
        self.assertEqual(list(loader), whole)
        loader.load_state_dict({**loader.state_dict(), "seed": 3, "shuffle": True})  # which may change
        self.assertEqual((loader.seed, loader.shuffle), (3, True))

    def test_a_state_is_what_state_dict_gave(self):
        loader = Loader(arrays(ROWS), 4)
        state = loader.state_dict()
        for wrong in (None, 3, "x", {}, {"version": 2}, {"version": 1}):
            self.refuses("loader", loader.load_state_dict, wrong)
        for name, value in {
            "epoch": -1,
            "sample": 11,
            "seed": "x",
            "shuffle": 3,
            "samples": 9,
        }.items():
            self.refuses("loader", loader.load_state_dict, {**state, name: value})
        self.refuses("loader option epoch", loader.load_state_dict, {**state, "epoch": 2**62})
        for epoch in (-1, "x", 1.5, None, 2**62):
            self.refuses("loader option epoch", loader.set_epoch, epoch)
        self.assertEqual(loader.state_dict(), state)
        self.assertEqual(len(list(loader)), 3)

    def test_a_table_of_texts_needs_its_column(self):
        self.refuses("expected the option column", sequences, self.folder / "a.csv")
        self.assertEqual(sequences(self.folder / "a.csv", column="seq").facts["texts"], 2)
        (self.folder / "b.txt").write_bytes(b"A\0C\n")
        with self.assertRaisesRegex(unidle.errors.InputError, "b.txt:1: holds a zero byte"):
            sequences(self.folder / "b.txt")


class PathsTest(InFolder):
    def test_paths_are_any_bytes(self):
        folder = os.fsencode(self.folder) + b"/caf\xe9"
        try:
            os.mkdir(folder)
        except OSError as error:
            self.skipTest(f"this file system takes no such name: {error}")
        with open(folder + b"/a.csv", "wb") as file:
            file.write(b"a,b\n1,2\n")
        np.save(os.fsdecode(folder + b"/x.npy"), ROWS)
        for path in (folder, os.fsdecode(folder), Path(os.fsdecode(folder))):
            self.assertEqual(len(npy(path, ["x"])), 10)
            self.assertEqual(len(npy(path)), 10)
            self.assertEqual(len(table(path, cache=os.fsdecode(folder))), 1)
            with self.assertRaisesRegex(unidle.errors.InputError, "caf"):
                images(path)

    def test_fields_are_found_the_largest_first(self):
        for number in range(2):
            np.save(self.folder / f"heat_{number}.npy", np.zeros((4, 2), np.float32))
            np.save(self.folder / f"image_{number}.npy", np.zeros((4, 8), np.float32))
        self.assertEqual([field.name for field in npy(self.folder).fields], ["image", "heat"])
        with self.assertRaisesRegex(unidle.errors.InputError, "holds no .npy"):
            npy(tempfile.mkdtemp(dir=self.folder))


class ArraysTest(unittest.TestCase):
    def test_bfloat16_stays_what_it_is(self):
        rows = torch.randn(10, 3).bfloat16()
        (batch,) = Loader(arrays(rows, torch.arange(10)), 10, shuffle=False)
        self.assertEqual(batch[0].dtype, torch.bfloat16)
        self.assertTrue(torch.equal(batch[0], rows))
        self.assertEqual(arrays(rows[::2]).fields[0].dtype, "bfloat16")
        lists = arrays([rows[:2], rows[2:5]])
        self.assertEqual(lists.fields[0].dtype, "bfloat16")
        ragged = next(iter(Loader(lists, 2, shuffle=False)))[0]
        self.assertTrue(torch.equal(ragged[1], rows[2:5]))
        with self.assertRaisesRegex(unidle.UsageError, "of one type"):
            arrays([rows[:2], torch.zeros(3, 3, dtype=torch.int16)])
        with self.assertRaisesRegex(unidle.UsageError, "numpy has no bfloat16"):
            next(iter(Loader(arrays(rows), 2, tensors="numpy")))
        (batch,) = Loader(windows(rows, 4), 6, shuffle=False)
        self.assertTrue(torch.equal(batch[0][0], rows[:4].float()))

    def test_values_that_are_not_there_are_refused(self):
        for array in (
            torch.zeros(3).to_sparse(),
            torch.zeros(3).to(torch.float8_e4m3fn),
            torch.zeros(3, device="meta"),
            np.ma.masked_array([1, 2, 3], [0, 1, 0]),
            [[1, 2], [3]],
            np.zeros(3, complex),
            None,
        ):
            with self.subTest(array=array), self.assertRaisesRegex(unidle.UsageError, "^array: "):
                arrays(array)
        with self.assertRaisesRegex(unidle.UsageError, "no samples"):
            Loader(arrays(np.zeros((0, 3))))


if __name__ == "__main__":
    unittest.main()
