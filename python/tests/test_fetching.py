"""cache.features and loader.gather at run time: the same batches to the byte, or a refusal with a reason."""

import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "shim"))

import run_case  # noqa: E402
from run_case import HAS_TORCH, HERE  # noqa: E402

SAMPLES = os.path.join(HERE, "programs", "samples.py")
CACHE, GATHER = "cache.features", "loader.gather"


@unittest.skipUnless(HAS_TORCH, "this Python has no torch")
class FetchingTest(run_case.RunCase):
    def applied(self, setting, *arguments):
        """The message about the knob; the output must be the same as without it."""
        command = (sys.executable, SAMPLES) + arguments
        bare = self.bare(*command)
        done = self.observed(*command, options=["--apply", setting])
        self.assertEqual((done.returncode, done.stdout), (0, bare.stdout), done.stderr)
        said = [note for note in self.record.notes("apply") if note["knob"] == setting.split("=")[0]]
        self.assertEqual([note for note in self.record.notes("shim") if note["status"] == "off"], [])
        return {note["status"] for note in said}, " ".join(note["why"] or "" for note in said)

    def test_pure_samples_are_kept(self):
        for workers in ("0", "2"):
            self.assertEqual(self.applied(CACHE + "=memory", "costly", "pure", workers)[0], {"taken"})
            self.assertEqual(self.record.settings()[CACHE], "memory")

    def test_kept_samples_are_not_made_again(self):
        self.applied(CACHE + "=memory", "costly", "pure", "0")
        kept = self.record.notes("samples")[-1]["p50"]  # two of three samples were
        self.observed(sys.executable, SAMPLES, "costly", "pure", "0")
        self.assertLess(kept, self.record.notes("samples")[-1]["p50"] / 2)

    def test_samples_that_draw_are_refused(self):
        status, why = self.applied(CACHE + "=memory", "costly", "draws", "0")
        self.assertNotIn("taken", status)
        self.assertIn("python's random", why)

    def test_samples_that_hold_what_cannot_be_copied_are_refused(self):
        status, why = self.applied(CACHE + "=memory", "costly", "object", "0")
        self.assertNotIn("taken", status)
        self.assertIn("frozenset", why)

    def test_cheap_samples_are_refused(self):
        status, why = self.applied(CACHE + "=memory", "table", "plain", "0")
        self.assertNotIn("taken", status)
        self.assertIn("looking it up", why)

    def test_a_dataset_that_is_changed_between_epochs_is_refused(self):
        status, why = self.applied(CACHE + "=memory", "costly", "epochs", "0")
        self.assertIn("refused", status)
        self.assertIn("changed between epochs", why)

    def test_samples_that_differ_each_time_are_refused(self):
        done = self.observed(
            sys.executable, SAMPLES, "costly", "differs", "0", options=["--apply", CACHE + "=memory"]
        )
        self.assertEqual(done.returncode, 0)
        said = self.record.notes("apply")
        self.assertIn("the same index gives another sample", said[0]["why"])

    def test_results_within_samples_that_differ_are_kept(self):
        for kind, workers in (("plain", "0"), ("plain", "2"), ("inner", "0")):
            with self.subTest(kind, workers=workers):
                status, why = self.applied(CACHE + "=memory", "cropped", kind, workers)
                self.assertIn("taken", status, why)
                self.assertNotIn("refused", status, why)
                if workers == "0":
                    self.assertEqual(self.record.settings()[CACHE], "memory")
                    kept = self.record.notes("samples")[-1]["p50"]
                    self.observed(sys.executable, SAMPLES, "cropped", kind, workers)
                    self.assertLess(kept, self.record.notes("samples")[-1]["p50"] / 2)

    def test_functions_within_samples_that_remember_or_follow_the_epoch(self):
        for kind in ("epochs", "remembers", "appends"):
            with self.subTest(kind):
                self.applied(CACHE + "=memory", "cropped", kind, "0")  # the output must be the same

    def test_functions_within_samples_that_write_into_a_buffer_of_the_dataset_or_read_it(self):
        for kind, writes in (("fills", "fill"), ("aliases", "fill_another")):
            with self.subTest(kind):
                _, why = self.applied(CACHE + "=memory", "cropped", kind, "0")
                self.assertIn("%s: it leaves something behind" % writes, why)
                self.assertIn("part: it has to do with buffer, which the dataset changes", why)

    def test_rows_of_a_table_are_gathered(self):
        for workers in ("0", "1"):
            self.assertEqual(self.applied(GATHER + "=true", "table", "plain", workers)[0], {"taken"})

    def test_rows_of_a_part_of_a_table_are_gathered(self):
        for workers in ("0", "1"):
            self.assertEqual(self.applied(GATHER + "=true", "table", "split", workers)[0], {"taken"})
            self.assertEqual([note["batched_getitem"] for note in self.record.notes("loader")], [False])

    def test_a_part_of_a_table_that_gives_whole_batches_is_refused(self):
        status, why = self.applied(GATHER + "=true", "table", "batches", "0")
        self.assertEqual(status, {"refused-in-part"})
        self.assertIn("fetches whole batches already", why)

    def test_rows_that_are_not_independent_are_refused(self):
        for kind, reason in (
            ("noisy", "self.x[i] + np.random.rand()"),
            ("branches", "i % 2"),
            ("mixes", "self.x[i] - self.x[i].mean()"),
        ):
            status, why = self.applied(GATHER + "=true", "table", kind, "0")
            self.assertNotIn("taken", status, kind)
            self.assertIn(reason, why)


@unittest.skipUnless(HAS_TORCH, "this Python has no torch")
class PackingTest(unittest.TestCase):
    def test_what_comes_back_is_the_same(self):
        import numpy as np
        import torch
        from _unidle_shim.samples import packing

        sample = {
            "picture": torch.arange(24.0).reshape(2, 3, 4).permute(2, 0, 1),
            "half": torch.ones(3).bfloat16(),
            "empty": torch.zeros(0, 2),
            "array": np.asfortranarray(np.arange(6).reshape(2, 3)),
            "flag": np.bool_(True),
            3: [1, (2.5, None), "text", b"raw", float("nan")],
        }
        back = packing.unpacked(memoryview(packing.packed(sample)))
        self.assertEqual(packing.packed(back), packing.packed(sample))
        self.assertEqual(back["picture"].stride(), sample["picture"].stride())
        self.assertTrue(torch.equal(back["picture"], sample["picture"]))
        self.assertEqual(back["half"].dtype, torch.bfloat16)
        self.assertEqual(back["array"].flags.f_contiguous, True)
        self.assertIs(type(back["flag"]), np.bool_)
        back["picture"][0] = 7  # a copy, and writable
        self.assertFalse(torch.equal(back["picture"], sample["picture"]))

    def test_what_cannot_be_kept_is_named(self):
        import torch
        from _unidle_shim.samples import packing

        for value, name in (
            (object(), "object"),
            (torch.ones(1, requires_grad=True), "gradients"),
            ({(1, 2): 3}, "dict"),
        ):
            with self.assertRaisesRegex(TypeError, name):
                packing.packed(value)


@unittest.skipUnless(HAS_TORCH, "this Python has no torch")
class StoreTest(unittest.TestCase):
    def test_samples_of_any_length_lie_apart(self):
        from _unidle_shim.knobs.kept_samples import Store

        samples = [bytes([1 + index]) * (index % 40) for index in range(200)]
        store = Store(len(samples) + 1, 2)
        for index, sample in enumerate(samples):
            store.put(index, index % 2, sample)
        self.assertEqual([bytes(store.get(index)) for index in range(len(samples))], samples)
        self.assertIsNone(store.get(len(samples)))


@unittest.skipUnless(HAS_TORCH, "this Python has no torch")
class RepeatsTest(unittest.TestCase):
    def test_samples_that_were_equal_and_those_that_differed_are_counted_apart(self):
        import torch
        from _unidle_shim.samples import repeats

        again = repeats.Again()
        for value in (1.0, 1.0, 2.0, 1.0):
            again.look(5, torch.full((2,), value))
        self.assertEqual(again.note()["5"][1:], [2, 1])


if __name__ == "__main__":
    unittest.main()
