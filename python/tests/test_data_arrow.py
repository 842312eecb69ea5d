"""unidle.data.table of Parquet and Arrow files: the values that pyarrow itself reads."""

import os
import tempfile
import unittest
from pathlib import Path

import package

import unidle
from unidle.data import Loader, table

np, pyarrow, parquet, ipc = package.needs("numpy", "pyarrow", "pyarrow.parquet", "pyarrow.ipc")


def rows(source, field=0):
    options = {"shuffle": False, "tensors": "numpy"}
    return np.concatenate([batch[field] for batch in Loader(source, 4096, **options)])


def example(count=20_000, seed=1):
    rng = np.random.default_rng(seed)
    words = np.array(["plain", "with, comma", 'with "quote"', "two\nlines", "Zürich", ""])
    floats = rng.integers(0, 2**32, count, dtype=np.uint32).view(np.float32)  # any bits at all
    return pyarrow.table(
        {
            "any": pyarrow.array(np.where(np.isfinite(floats), floats, 0), pyarrow.float32()),
            "real": pyarrow.array(rng.normal(size=count), mask=rng.random(count) < 0.1),
            "whole": pyarrow.array(rng.integers(-(2**24), 2**24, count)),
            "half": pyarrow.array(rng.normal(size=count).astype(np.float16)),
            "truth": pyarrow.array(rng.random(count) < 0.5),
            "word": pyarrow.array(words[rng.integers(0, len(words), count)]),
            "kind": pyarrow.array(words[rng.integers(0, 3, count)]).dictionary_encode(),
            "day": pyarrow.array(rng.integers(0, 20000, count).astype("datetime64[D]")),
            "list": pyarrow.array([[1, 2]] * count),
        }
    )


class ArrowTest(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = Path(temporary.name)

    def write(self, name, data):
        path = self.folder / name
        if path.suffix == ".parquet":
            parquet.write_table(data, path, row_group_size=3000)
        else:
            new = ipc.new_stream if path.suffix == ".ipc" else ipc.new_file
            with new(str(path), data.schema) as writer:
                writer.write_table(data, 3000)
        return path

    def table(self, *arguments, **options):
        return table(*arguments, cache=self.folder / "built", **options)

    def check(self, source, data):
        numbers = ["any", "real", "whole", "half", "truth"]
        self.assertEqual(source.facts["features"][:5], numbers)
        found = rows(source)
        for column, name in enumerate(numbers):
            expected = data[name].to_pandas().to_numpy(np.float32, na_value=np.nan)
            np.testing.assert_array_equal(found[:, column], expected, name)
        for column, name in ((5, "word"), (6, "kind"), (7, "day")):
            texts = source.facts["columns"][column]["categories"]
            self.assertEqual(
                [texts[int(index)] for index in found[:, column]],
                [str(cell) for cell in data[name].to_pylist()],
            )

    def test_values_are_those_of_pyarrow(self):
        data = example()
        for name in ("a.parquet", "a.arrow", "a.ipc"):
            with self.subTest(name):
                source = self.table(self.write(name, data), categorical=["word", "kind", "day"])
                self.check(source, data)

    def test_parts_and_side_tables_may_be_of_several_kinds(self):
        self.write("a.parquet", pyarrow.table({"k": [1, 2], "x": [5, 6]}))
        (self.folder / "b.csv").write_text("k,x\n3,7\n")
        side = self.write("side.arrow", pyarrow.table({"k": [3, 1], "v": [30.5, None]}))
        source = self.table([self.folder / "a.parquet", self.folder / "b.csv"], joins={"k": side}, fill=-1)
        self.assertEqual(rows(source).tolist(), [[5, -1], [6, -1], [7, 30.5]])

    def test_text_is_made_once_and_anew_when_the_file_changes(self):
        path = self.write("a.parquet", pyarrow.table({"x": [1.0, 2.0]}))
        self.assertTrue(self.table(path).facts["built"])
        (text,) = (self.folder / "built").glob("*.csv")
        made = text.stat()
        self.assertFalse(self.table(path).facts["built"])
        self.assertEqual(text.stat().st_mtime_ns, made.st_mtime_ns)
        self.write("a.parquet", pyarrow.table({"x": [3.0, 4.0]}))
        self.assertEqual(rows(self.table(path)).tolist(), [[3], [4]])
        (other,) = (self.folder / "built").glob("*.csv")  # the old one is gone
        self.assertNotEqual(other, text)

    def test_says_what_is_wrong(self):
        path = self.write("a.parquet", example(10))
        with self.assertRaisesRegex(unidle.errors.InputError, "has no column list"):
            self.table(path, ["list"])
        path.write_bytes(path.read_bytes()[:-100])
        with self.assertRaisesRegex(unidle.errors.InputError, r"a\.parquet: "):
            self.table(path)
        self.assertEqual([name for name in os.listdir(self.folder / "built") if name.endswith(".part")], [])
        broken = self.folder / "b.arrow"
        broken.write_bytes(b"no Arrow file")
        with self.assertRaisesRegex(unidle.errors.InputError, r"b\.arrow: "):
            self.table(broken)
        with self.assertRaisesRegex(unidle.errors.InputError, r"none\.parquet: does not exist"):
            self.table(self.folder / "none.parquet")


if __name__ == "__main__":
    unittest.main()
