"""`unidle diagnose` on real programs whose samples are easily misjudged: where the time goes, repeated work,
and what can be done."""

import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import run_case  # noqa: E402
from run_case import HAS_TORCH, HERE, UNIDLE  # noqa: E402

SHELF = """import zlib
import torch
from torch.utils.data import Dataset


def decode(number):
    return zlib.crc32(zlib.compress(bytes(range(256)) * 2500, 6)) % 97 + number


class Pictures(Dataset):
    def __len__(self):
        return 96

    def __getitem__(self, index):
        return torch.full((64,), float(decode(index)))
"""


@unittest.skipUnless(HAS_TORCH, "this Python has no torch")
@unittest.skipUnless(os.path.exists(UNIDLE), "UNIDLE_BIN is not set: there is no unidle to run")
class SamplesTest(run_case.DiagnosedCase):
    # -- where a sample is slow
    # --------------------------------------------------------------------------------------

    def test_the_place_of_a_slow_sample_is_not_the_loop_that_asks_for_it(self):
        site = os.path.join(self.folder, "site-packages")
        os.makedirs(site)
        with open(os.path.join(site, "shelf.py"), "w") as file:
            file.write(SHELF)
        for workers in ("0", "2"):
            with self.subTest(workers=workers):
                self.diagnosed("library.py", workers, PYTHONPATH=site)
                hot = [
                    (note["role"], note["where"], note["function"].split(".")[0])
                    for note in self.record.notes("hot")
                    if note["role"] == "worker" or note["phase"] == "input"
                ]
                self.assertEqual(set(hot), {("train" if workers == "0" else "worker", None, "shelf")})

    # -- what is no work on samples

    def test_a_sampler_that_takes_most_of_the_wait(self):
        found = self.diagnosed("waits.py", "sampler")
        self.assertTrue(found["slow-sampler"]["where"].endswith("waits.py:27"), found["slow-sampler"])
        self.assertNotIn("loader-per-row", found)

    def test_an_iterator_for_each_step(self):
        found = self.diagnosed("waits.py", "iterators")
        self.assertTrue(
            found["iterator-each-step"]["where"].endswith("waits.py:45"), found["iterator-each-step"]
        )
        self.assertFalse({"loader-per-row", "loader-no-workers"} & set(found))

    # -- rows
    # ------------------------------------------------------------------------------------------------------

    def test_rows_are_fetched_together_where_that_is_known_without_asking(self):
        for kind, gathers in (("tensors", True), ("table", None), ("counts", None)):
            with self.subTest(kind):
                self._rows(kind, gathers)
        self.same_as_bare(sys.executable, os.path.join(HERE, "programs", "rows.py"), "counts")

    def test_a_trial_tries_whether_they_can_be(self):
        for kind, gathers in (("table", True), ("single", None), ("digits", None)):
            with self.subTest(kind):
                self._rows(kind, gathers, UNIDLE_MUTED="1")

    def _rows(self, kind, gathers, **more):
        found = self.diagnosed("rows.py", kind, **more)["loader-per-row"]
        knobs = {fix["knob"] for fix in found["fixes"]}
        knobs.discard("loader.replace")  # a patch to review beside them, for data sets that it knows
        self.assertEqual(knobs, {"loader.gather"} if gathers else {"loader.workers"})
        self.assertIs(self.record.notes("loader")[-1].get("gathers"), gathers)

    def test_what_is_named_is_taken(self):
        for kind in ("table", "tensors"):
            self.observed(
                sys.executable,
                os.path.join(HERE, "programs", "rows.py"),
                kind,
                options=["--apply", "loader.gather=true"],
            )
            self.assertEqual({note["status"] for note in self.record.notes("apply")}, {"taken"}, kind)

    # -- samples that are made again
    # -------------------------------------------------------------------------------

    def test_results_were_there_before_where_samples_are_the_same(self):
        for workers in ("0", "2"):
            with self.subTest(workers=workers):
                found = self.diagnosed("again.py", "same", workers)
                repeated = found.get("recomputed-features") or found["dataset-slow-sample"]
                self.assertIn("spent in decode (", " ".join(repeated["evidence"]))
                if "recomputed-features" in found:
                    self.assertIn("repeated earlier results", found["recomputed-features"]["evidence"][0])
                self.assertEqual(self._again()[1], 0)

    def test_samples_that_differ_gave_no_results_that_were_there(self):
        found = self.diagnosed("again.py", "noise", "0")
        self.assertNotIn("recomputed-features", found)
        self.assertNotIn("cache.features", [fix["knob"] for each in found.values() for fix in each["fixes"]])
        self.assertEqual(self._again()[0], 0)

    def test_of_samples_that_differ_a_function_can_be_kept(self):
        found = self.diagnosed("again.py", "rolled", "0")["recomputed-features"]
        self.assertNotIn("repeated earlier results", " ".join(found["evidence"]))
        self.assertIn("made again differed", " ".join(found["evidence"]))
        self.assertIn("spent in decode (", " ".join(found["evidence"]))
        self.assertEqual([fix["knob"] for fix in found["fixes"]], ["cache.features"])

    def _again(self):
        """Comparisons within the processes: equal, different."""
        told = {note["id"]: note["again"] for note in self.record.notes("samples") if "again" in note}
        return tuple(sum(each[place] for one in told.values() for each in one.values()) for place in (1, 2))


if __name__ == "__main__":
    unittest.main()
