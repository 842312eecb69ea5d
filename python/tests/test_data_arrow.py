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
    floats = rng.integers(0, 2**32, count, dtype=np.uint32).view(np.float32)  # arbitrary bits
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

    def test_a_lone_column_keeps_the_rows_without_a_value(self):
        lists = pyarrow.array([[1], [2], [3]])
        for name, column, expected in (
            ("whole", pyarrow.array([1, None, 3]), [1, np.nan, 3]),
            ("real", pyarrow.array([0.1, None, 1e300]), [np.float32(0.1), np.nan, np.inf]),
            ("truth", pyarrow.array([True, None, False]), [1, np.nan, 0]),
            ("time", pyarrow.array([5, None, 7], pyarrow.duration("s")), [5, np.nan, 7]),
            ("nothing", pyarrow.nulls(3), [np.nan] * 3),
        ):
            for suffix in ("parquet", "arrow"):
                with self.subTest(name, suffix=suffix):
                    path = self.write(f"{name}.{suffix}", pyarrow.table({name: column, "list": lists}))
                    np.testing.assert_array_equal(rows(self.table(path, [name]))[:, 0], expected)
        words = pyarrow.table({"word": pyarrow.array(["b", None, "a"])})
        source = self.table(self.write("words.parquet", words), categorical=["word"])
        self.assertEqual(source.facts["columns"][0]["categories"], ["b", "", "a"])
        self.assertEqual(len(source), 3)

    def test_texts_of_polars_are_there(self):
        if not hasattr(pyarrow, "string_view"):
            self.skipTest("pyarrow has no string_view")
        words = pyarrow.array(["b", None, "a, with comma"], pyarrow.string_view())
        path = self.write("a.arrow", pyarrow.table({"x": [1, 2, 3], "word": words}))
        source = self.table(path, ["x"], categorical=["word"])
        self.assertEqual(source.facts["columns"][1]["categories"], ["b", "", "a, with comma"])

    def test_columns_that_no_cell_holds_do_not_keep_the_others_back(self):
        spans = pyarrow.array([pyarrow.MonthDayNano([1, 2, 3])] * 2)
        lists = pyarrow.array([[1], [2]])
        path = self.write("a.arrow", pyarrow.table({"x": [1, 2], "y": [3, 4], "span": spans, "list": lists}))
        self.assertEqual(rows(self.table(path)).tolist(), [[1, 3], [2, 4]])
        alone = self.write("b.arrow", pyarrow.table({"list": lists}))
        with self.assertRaisesRegex(unidle.errors.InputError, r"b\.arrow: has no column of numbers"):
            self.table(alone)

    def test_a_column_of_an_unknown_time_zone_is_left_out_alone(self):
        when = pyarrow.array([0, 1], pyarrow.timestamp("us"))
        data = {
            "x": pyarrow.array([1, 2]),
            "here": when.cast(pyarrow.timestamp("us", "UTC")),
            "there": when.cast(pyarrow.timestamp("us", "Mars/Base")),
            "list": pyarrow.array([[1], [2]]),
        }
        path = self.write("a.arrow", pyarrow.table(data))
        source = self.table(path)
        self.assertEqual(source.facts["features"], ["x"])
        self.assertEqual(source.facts["left_out"], ["here", "there", "list"])
        self.assertEqual(
            self.table(path).facts["left_out"], ["here", "there", "list"]
        )  # of the text in that place
        why = r"left out: there \(timestamp\[us, tz=Mars/Base\]\), list"
        with self.assertRaisesRegex(
            unidle.errors.InputError, r"a\.arrow: has no column there; there are: x, here; " + why
        ):
            self.table(path, ["x"], categorical=["there"])
        self.assertEqual(self.table(path, ["x"], categorical=["here"]).facts["left_out"], [])

    def test_errors_name_the_file_and_the_row(self):
        words = pyarrow.array(["1", "2\n2", "3", "four"])
        path = self.write("a.parquet", pyarrow.table({"text": words, "x": [1, 2, 3, 4]}))
        side = self.write("side.arrow", pyarrow.table({"x": [1, 2, 2], "v": [1, 2, 3]}))
        other = self.write("b.parquet", pyarrow.table({"y": [1], "z": [2]}))
        for arguments, options, text in (
            ((path, ["text"]), {}, r'a\.parquet: row 2: column text: expected a number, found "2'),
            (
                (path, ["x"]),
                {"joins": {"x": side}},
                r'side\.arrow: row 3: column x: the key "2" comes a second',
            ),
            ((path, ["none"]), {}, r"a\.parquet: has no column none"),
            (
                ([path, other],),
                {},
                r"b\.parquet: has the columns y, z; expected text, x, as .*a\.parquet has",
            ),
        ):
            with self.assertRaisesRegex(unidle.errors.InputError, text) as caught:
                self.table(*arguments, **options)
            self.assertNotIn(".csv", str(caught.exception))

    def test_parts_come_in_the_order_of_their_numbers(self):
        parts = [self.write(f"a_part{n}.parquet", pyarrow.table({"x": [n]})) for n in (10, 9, 1)]
        self.assertEqual(rows(self.table(parts)).tolist(), [[1], [9], [10]])

    def test_a_damaged_file_is_told_as_damage(self):
        path = self.write("a.parquet", example())
        sound = path.read_bytes()
        told = 0
        for place in range(4, len(sound) // 2, len(sound) // 40):
            path.write_bytes(
                sound[:place] + bytes(b ^ 255 for b in sound[place : place + 64]) + sound[place + 64 :]
            )
            try:
                self.table(path, categorical=["word", "kind", "day"])
            except unidle.errors.InputError as error:
                self.assertIn("a.parquet", str(error))
                told += 1
        self.assertGreater(told, 0)

    def test_a_delimiter_of_several_bytes_is_refused(self):
        path = self.write("a.parquet", pyarrow.table({"x": [1, 2]}))
        for delimiter in ("||", '"', "é", 5):
            with self.assertRaisesRegex(unidle.errors.UsageError, "option delimiter"):
                self.table(path, delimiter=delimiter)

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
        parts = self.folder / "parts.parquet"
        parts.mkdir()
        with self.assertRaisesRegex(unidle.errors.InputError, r"parts\.parquet: is a folder"):
            self.table(parts)


if __name__ == "__main__":
    unittest.main()
