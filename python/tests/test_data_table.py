"""unidle.data.table: the values that pandas reads, and the batches of torch's TensorDataset."""

import csv
import os
import random
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import package

import unidle
from unidle.data import Loader, table

np = package.needs("numpy")


def rows(source, field=0, **options):
    options = {"shuffle": False, "tensors": "numpy", **options}
    return np.concatenate([batch[field] for batch in Loader(source, 7, **options)])


class InFolder(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = Path(temporary.name)

    def put(self, name, text):
        path = self.folder / name
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return path

    def table(self, *arguments, **options):
        return table(*arguments, cache=self.folder / "built", **options)


class TableTest(InFolder):
    def test_values_are_those_of_python(self):
        generator = random.Random(4)
        words = ["plain", "with, comma", 'with "quote"', "two\nlines", "", "Zürich", "NA"]
        path = self.folder / "a.csv"
        written = []
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(["whole", "real", "word", "y"])
            for _ in range(3000):
                whole = generator.randrange(-(10**6), 10**6)
                real = generator.choice([generator.gauss(0, 1), generator.random() * 10**-9, None])
                word = generator.choice(words)
                written.append((whole, float("nan") if real is None else real, word, generator.random()))
                writer.writerow([whole, "" if real is None else real, word, written[-1][3]])
        source = self.table(path, features=["real", "whole"], targets=["y"], categorical=["word"])
        self.assertEqual(source.facts["features"], ["real", "whole", "word"])
        features, targets = rows(source), rows(source, 1)
        self.assertEqual((features.dtype, features.shape), (np.float32, (3000, 3)))
        self.assertEqual((targets.dtype, targets.shape), (np.float32, (3000, 1)))
        expected = np.array([(real, whole) for whole, real, _, _ in written], np.float64).astype(np.float32)
        np.testing.assert_array_equal(features[:, :2], expected)
        np.testing.assert_array_equal(targets[:, 0], np.array([one[3] for one in written]).astype(np.float32))
        categories = source.facts["columns"][2]["categories"]
        self.assertEqual([categories[int(index)] for index in features[:, 2]], [one[2] for one in written])
        self.assertEqual(source.facts["columns"][0]["missing"], sum(one[1] != one[1] for one in written))
        self.assertEqual(
            [column["type"] for column in source.facts["columns"]], ["float", "integer", "text", "float"]
        )

    def test_one_name_stands_for_its_parts(self):
        for number in (1, 2, 10):
            self.put(f"log_part{number}.csv", f"a,b\n{number},0\n")
        source = self.table(self.folder / "log.csv", features=["a"])
        self.assertEqual(rows(source)[:, 0].tolist(), [1, 2, 10])
        self.assertEqual(len(source.fields), 1)

    def test_the_second_opening_reads_no_text(self):
        path = self.put("a.csv", "a,b\n1,2\n")
        self.assertTrue(self.table(path).facts["built"])
        self.assertFalse(self.table(path).facts["built"])
        self.put("a.csv", "a,b\n3,4\n")
        again = self.table(path)
        self.assertTrue(again.facts["built"])
        self.assertEqual(rows(again).tolist(), [[3, 4]])

    def test_split_statistics_and_fill(self):
        text = "x,user,y\n" + "".join(f"{i},u{i % 10},{i}\n" for i in range(100)) + ",u0,1\n"
        path = self.put("a.csv", text)
        options = {
            "features": ["x"],
            "targets": ["y"],
            "split_column": "user",
            "split_values": ["u1", "u2"],
            "standardize": True,
            "fill": "mean",
        }
        train = self.table(path, part="train", **options)
        validation = self.table(path, part="validation", **options)
        self.assertEqual((len(train), len(validation)), (81, 20))
        self.assertFalse(validation.facts["built"])
        values = rows(train)[:, 0]
        self.assertAlmostEqual(float(values[:-1].mean()), 0, places=5)
        self.assertAlmostEqual(float(values[:-1].std()), 1, places=5)
        self.assertEqual(values[-1], 0)
        self.assertEqual(rows(self.table(path, features=["x"], fill=-1))[-1, 0], -1)

    def test_side_tables_give_what_pandas_merges(self):
        pandas = package.needs("pandas")
        rng = np.random.default_rng(3)
        names = [f"n{number}, x" for number in range(40)]
        users = pandas.DataFrame(
            {"user_id": rng.permutation(40), "age": rng.integers(10, 90, 40), "name": names}
        )
        films = pandas.DataFrame(
            {"film": [f"f{number}" for number in range(30)], "year": rng.integers(1920, 2020, 30)}
        )
        films.loc[::4, "year"] = None
        log = pandas.DataFrame(
            {
                "user_id": rng.integers(0, 50, 5000),  # ten of them are not users
                "film": [f"f{number}" for number in rng.integers(0, 33, 5000)],
                "stars": rng.random(5000).astype(np.float32),
            }
        )
        log.iloc[:2000].to_csv(self.folder / "log_part1.csv", index=False)
        log.iloc[2000:].to_csv(self.folder / "log_part2.csv", index=False)
        users.to_csv(self.folder / "users.csv", index=False)
        films.to_csv(self.folder / "films.csv", index=False)
        options = {
            "features": ["year", "age"],
            "targets": ["stars"],
            "categorical": ["name", "user_id"],
            "joins": {"user_id": self.folder / "users.csv", "film": [self.folder / "films.csv"]},
        }
        source = self.table(self.folder / "log.csv", **options)
        features, targets = rows(source), rows(source, 1)
        merged = log.merge(users, "left", "user_id").merge(films, "left", "film")
        np.testing.assert_array_equal(features[:, :2], merged[["year", "age"]].to_numpy(np.float32))
        np.testing.assert_array_equal(targets[:, 0], merged["stars"].to_numpy(np.float32))
        categories = source.facts["columns"][2]["categories"]
        found = [categories[int(index)] for index in features[:, 2]]
        self.assertEqual(found, merged["name"].fillna("").tolist())
        self.assertEqual(
            [(one["key"], one["rows"], one["unmatched"]) for one in source.facts["joins"]],
            [
                ("user_id", 40, int((log["user_id"] >= 40).sum())),
                ("film", 30, int((~log["film"].isin(films["film"])).sum())),
            ],
        )
        self.assertFalse(self.table(self.folder / "log.csv", **options).facts["built"])
        self.put("users.csv", "user_id,age,name\n1,2,x\n")
        self.assertTrue(self.table(self.folder / "log.csv", **options).facts["built"])

    def test_two_side_tables_may_have_one_key(self):
        log = self.put("log.csv", "k,x\n1,5\n2,6\n")
        one, two = self.put("one.csv", "k,v\n1,10\n2,20\n"), self.put("two.csv", "k,w\n1,7\n")
        source = self.table(log, joins=[("k", one), ("k", [two])], fill=0)
        self.assertEqual(source.facts["features"], ["x", "v", "w"])
        self.assertEqual(rows(source).tolist(), [[5, 10, 7], [6, 20, 0]])
        name = os.fsdecode(b"b\xff.csv")
        self.put(name, "k,v\n1,3\n")
        self.assertEqual(
            rows(self.table(log, joins={"k": self.folder / name}, fill=0)).tolist(), [[5, 3], [6, 0]]
        )

    def test_says_what_is_wrong_with_a_side_table(self):
        log = self.put("log.csv", "k,x\n1,5\n")
        twice = self.put("twice.csv", "k,v\n1,10\n1,20\n")
        with self.assertRaisesRegex(
            unidle.errors.InputError, r'twice\.csv:3: column k: the key "1" comes a second'
        ):
            self.table(log, joins={"k": twice})
        with self.assertRaisesRegex(unidle.errors.InputError, r"has a column x, and so has .*log\.csv"):
            self.table(log, ["x"], joins={"k": self.put("both.csv", "k,x\n1,1\n")})
        for joins in ("k", {"k": []}, {"k": 1}, {1: twice}, [("k",)], {"": twice}):
            with self.subTest(joins), self.assertRaises(unidle.errors.UsageError):
                self.table(log, joins=joins)

    def test_says_what_parquet_needs(self):
        path = self.put("a.parquet", b"PAR1")
        with mock.patch.dict(sys.modules, {"pyarrow": None}):
            with self.assertRaisesRegex(unidle.errors.MissingError, "need pyarrow: pip install pyarrow"):
                self.table(path)

    def test_says_what_is_wrong(self):
        bad = self.put("bad.csv", "a,b\n1,2\n3,four\n")
        with self.assertRaisesRegex(
            unidle.errors.InputError, r'bad\.csv:3: column b: expected a number, found "four"'
        ):
            self.table(bad, features=["a", "b"])
        with self.assertRaisesRegex(unidle.errors.InputError, "has no column c; there are: a, b"):
            self.table(bad, features=["c"])
        for options in (
            {"features": "a"},
            {"features": [1]},
            {"validation": 2},
            {"validation": "much"},
            {"part": "test"},
            {"fill": "median"},
            {"delimiter": ",,"},
            {"split_column": "a"},
            {"threads": "two"},
            {"features": []},
            {"fill": 1e300},
        ):
            with self.subTest(options), self.assertRaises(unidle.errors.UsageError):
                self.table(bad, **options)
        with self.assertRaises(unidle.errors.InputError):
            self.table(self.folder / "none.csv")
        with self.assertRaises(unidle.errors.UsageError):
            self.table([])


if __name__ == "__main__":
    unittest.main()
