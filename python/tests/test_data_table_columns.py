"""unidle.data.table: which columns are numbers, and the messages about the others."""

import json
import subprocess
import unittest
import warnings

import package
from test_data_table import InFolder, rows

import unidle

np = package.needs("numpy")

UNIDLE = package.BUILD / "bin" / "unidle"


def table_of(cells, header="a,b"):
    """A CSV with the row's number and one of the cells in each row."""
    return header + "\n" + "".join(f"{number},{cell}\n" for number, cell in enumerate(cells))


class ColumnsTest(InFolder):
    def opened(self, text, **options):
        """(the source, the warnings)."""
        path = self.put("a.csv", text)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            source = self.table(path, **options)
        return source, [str(one.message) for one in caught]

    def as_pandas_has_it(self, text, options, **of_pandas):
        try:
            import pandas
        except ImportError:
            return
        path = self.put("pandas.csv", text)
        source = self.table(path, **options)
        frame = pandas.read_csv(path, **of_pandas)[source.facts["features"]]
        self.assertEqual(set(frame.dtypes.map(lambda dtype: dtype.kind)) - set("iuf"), set())
        np.testing.assert_array_equal(rows(source), frame.to_numpy("float64").astype("float32"))
        missing = [column["missing"] for column in source.facts["columns"]]
        self.assertEqual(missing, frame.isna().sum().tolist())

    def test_marks_among_numbers_are_told_and_read(self):
        for mark in ("?", ".", "-", "unknown"):
            text = table_of(mark if number % 50 == 7 else number for number in range(300))
            source, said = self.opened(text)
            self.assertEqual((source.facts["features"], source.facts["left_out"]), (["a"], ["b"]))
            self.assertEqual(source.facts["doubtful"], ["b"])
            why = f'numbers in 294 of 300 cells, others in 6 ("{mark}"); missing=["{mark}"] reads them'
            self.assertEqual(source.facts["left_out_why"], {"b": why})
            self.assertEqual(len(said), 1)
            self.assertIn(f"the column b of a.csv is no feature: {why}", said[0])
            for missing in ([mark], mark):
                source, said = self.opened(text, missing=missing)
                self.assertEqual((source.facts["features"], said), (["a", "b"], []))
            self.as_pandas_has_it(text, {"missing": [mark]}, na_values=[mark])

    def test_who_names_the_features_is_not_warned(self):
        text = table_of("?" if number == 7 else number for number in range(50))
        self.assertEqual(self.opened(text, features=["a"])[1], [])
        with self.assertRaisesRegex(unidle.InputError, r'a.csv:9: .*found "\?".*; missing=\["\?"\] reads it'):
            self.opened(text, features=["b"])

    def test_a_few_marks_are_an_error_with_the_option(self):
        text = table_of("?" if number == 7 else number for number in range(500))
        with self.assertRaisesRegex(unidle.InputError, r'a.csv:9: column b: .*; missing=\["\?"\] reads it'):
            self.opened(text)

    def test_numbers_that_stand_for_nothing(self):
        for mark in ("-200", "-200.0"):
            text = table_of(mark if number % 3 == 0 else number for number in range(30))
            for missing in ([-200], ["-200"], -200.0, np.int64(-200), [np.float32(-200)]):
                source, _ = self.opened(text, missing=missing)
                self.assertEqual(np.flatnonzero(np.isnan(rows(source)[:, 1])).tolist(), list(range(0, 30, 3)))
                self.assertEqual(source.facts["columns"][1]["missing"], 10)
            self.as_pandas_has_it(text, {"missing": [-200]}, na_values=[-200])
        self.assertEqual(
            self.opened(text, missing=[-200], fill=0)[0].facts["columns"][1]["mean"], 14.5 + 0.75 * 0 + 0.5
        )

    def test_decimal_commas(self):
        text = "a;b;c\n" + "".join(f"{n};{n - 9},{n};1,5e{n % 3}\n" for n in range(50))
        source, said = self.opened(text)
        self.assertEqual((source.facts["features"], source.facts["doubtful"]), (["a"], ["b", "c"]))
        self.assertEqual(len(said), 2)
        self.assertIn(
            'decimal commas ("-9,0", "-8,1", "-7,2", "-6,3") in 50 of 50 cells; decimal=","', said[0]
        )
        source, said = self.opened(text, decimal=",")
        self.assertEqual((source.facts["features"], said), (["a", "b", "c"], []))
        self.assertEqual(
            [column["type"] for column in source.facts["columns"]], ["integer", "float", "float"]
        )
        self.as_pandas_has_it(text, {"decimal": ","}, sep=";", decimal=",")
        quoted = table_of(f'"{number},5"' for number in range(50))
        self.assertIn('decimal=","', self.opened(quoted)[1][0])
        self.as_pandas_has_it(quoted, {"decimal": ","}, decimal=",")
        marked = "\ufeffa;b\n1,5;2\n?;3\n"
        self.as_pandas_has_it(marked, {"decimal": ",", "missing": "?"}, sep=";", decimal=",", na_values=["?"])

    def test_a_point_is_no_decimal_point_where_commas_are(self):
        source, said = self.opened("a;b\n1,5;1.5\n2,5;2.5\n", decimal=",")
        self.assertEqual(source.facts["features"], ["a"])
        self.assertIn('numbers with decimal points ("1.5", "2.5") in 2 of 2 cells; decimal="."', said[0])
        with self.assertRaisesRegex(unidle.InputError, 'found "1.500"'):
            self.opened("a;b\n1,5;1.500\n", decimal=",", features=["b"])

    def test_groups_of_thousands_are_told_and_not_misread(self):
        for cells, word in [
            (["1,234", "56,789"], "groups of thousands are not read"),
            (["1,234,567", "8,901"], "groups of thousands with commas"),
        ]:
            source, said = self.opened(table_of(f'"{cell}"' for cell in cells))
            self.assertEqual(source.facts["features"], ["a"])
            self.assertIn(word, said[0])

    def test_columns_without_a_name(self):
        for header, unnamed in [
            ("v1,v2,,", ["Unnamed: 2", "Unnamed: 3"]),
            ("v1,v2,, ", ["Unnamed: 2", "Unnamed: 3"]),
            ("v1,v2,Unnamed: 3,", ["Unnamed: 3.1"]),
        ]:
            source, said = self.opened(header + "\n1,2,,7\n3,4,,8\n")
            self.assertEqual(source.facts["features"], ["v1", "v2"], header)
            self.assertEqual(source.facts["left_out"][-len(unnamed) :], unnamed)
            self.assertEqual(source.facts["left_out_why"][unnamed[-1]], "has no name; numbers in 2 cells")
            self.assertEqual(rows(source).tolist(), [[1, 2], [3, 4]])
            self.assertEqual(len(said), 2 - len(unnamed))  # for the one with a name and no value
            source, _ = self.opened(header + "\n1,2,,7\n3,4,,8\n", features=["v1", unnamed[-1]])
            self.assertEqual(rows(source).tolist(), [[1, 7], [3, 8]])
        self.put("b_part1.csv", ",a,\n1,2,3\n"), self.put("b_part2.csv", ",a,\n4,5,6\n")
        self.assertEqual(rows(self.table(self.folder / "b.csv")).tolist(), [[2], [5]])

    def test_columns_without_a_value_are_no_features(self):
        text = "a,b,c\n1,,  \n2,NA,\n"
        source, said = self.opened(text)
        self.assertEqual((source.facts["features"], len(said)), (["a"], 2))
        self.assertIn("the column b of a.csv is no feature: all cells are empty", said[0])
        self.assertEqual(source.facts["left_out_why"], dict.fromkeys("bc", "all cells are empty"))
        self.assertEqual(rows(self.opened(text, fill=0)[0]).tolist(), [[1, 0, 0], [2, 0, 0]])
        self.assertEqual(self.opened("a,b\n")[0].facts["features"], ["a", "b"])
        self.assertTrue(np.isnan(rows(self.opened(text, features=["b"])[0])).all())
        late = "a,b,c\n" + "1234567,,\n" * 200_000 + "1,5,x\n"  # beyond the part that is inspected first
        source, _ = self.opened(late)
        self.assertEqual(source.facts["features"], ["a", "b"])
        self.assertEqual(
            (source.facts["columns"][1]["missing"], rows(source)[-1].tolist()), (200_000, [1, 5])
        )
        self.assertEqual(source.facts["left_out_why"], {"c": 'texts ("x")'})

    def test_where_nothing_is_left_the_error_says_why(self):
        with self.assertRaisesRegex(
            unidle.UsageError, r'none holds numbers; a: texts \("x"\); b: numbers in 1 of 2'
        ):
            self.opened("a,b\nx,1\nx,?\n")

    def test_what_makes_no_sense_is_refused(self):
        for options in (
            {"decimal": ";"},
            {"decimal": ",,"},
            {"decimal": 1},
            {"missing": [None]},
            {"missing": [True]},
            {"missing": 1j},
        ):
            with self.assertRaises(unidle.UsageError, msg=str(options)):
                self.opened("a\n1\n", **options)

    def test_inspect_says_the_same(self):
        text = "a;b;c;d\n" + "".join(f"{n};{'?' if n % 50 == 7 else n};{n},5;ok\n" for n in range(300))
        command = [UNIDLE, "data", "inspect", self.put("a.csv", text), "--format", "json"]
        done = subprocess.run(command, capture_output=True, text=True)
        found = json.loads(done.stdout)
        self.assertEqual(done.returncode, 1)
        self.assertEqual(
            [column["type"] for column in found["columns"]], ["integer", "integer", "text", "text"]
        )
        self.assertEqual([problem["at"].rsplit(":", 1)[1] for problem in found["problems"]], ["9", "2"])
        self.assertIn(
            'column b: numbers in 294 of 300 cells, others in 6 ("?"); missing=["?"]',
            found["problems"][0]["what"],
        )
        self.assertIn('column c: numbers with decimal commas ("0,5", ', found["problems"][1]["what"])


if __name__ == "__main__":
    unittest.main()
