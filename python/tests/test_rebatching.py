"""batch.size and batch.accumulation at run time: what the program does is what it would do with other constants."""

import copy
import json
import os
import pickle
import sys
import unittest

import test_run

sys.path.insert(0, os.path.join(os.path.dirname(test_run.HERE), "shim"))

from _unidle_shim import variables  # noqa: E402

PROGRAM = os.path.join(test_run.HERE, "programs", "accumulates.py")
SIZE, COUNT = "batch.size", "batch.accumulation"


@unittest.skipUnless(os.path.exists(test_run.UNIDLE), "UNIDLE_BIN is not set: there is no unidle to run")
@unittest.skipUnless(test_run.HAS_TORCH, "there is no torch")
class RebatchingTest(unittest.TestCase):
    setUp, bare, observed = test_run.RunTest.setUp, test_run.RunTest.bare, test_run.RunTest.observed

    def run_with(self, how, *words, **asked):
        """As a program of 4 batches of 16, with other ones asked for."""
        options = [word for knob, value in asked.items() for word in ("--apply", "batch.%s=%s" % (knob, value))]
        done = self.observed(sys.executable, PROGRAM, how, "16", "4", *words, options=options)
        self.assertEqual(done.returncode, 0, done.stderr)
        notes = self.record.notes("apply")
        self.statuses, self.whys = {note["status"] for note in notes}, [note["why"] for note in notes if note["why"]]
        return done.stdout

    def by_hand(self, how, size, count, *words):
        done = self.bare(sys.executable, PROGRAM, how, str(size), str(count), *words)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def changed(self, how, wanted, *words, **asked):
        """The program does, to the bit, what it does with other numbers in it."""
        out = self.run_with(how, *words, **asked)
        self.assertEqual(self.statuses, {"taken"}, (how, self.whys))
        self.assertEqual(out, self.by_hand(how, *wanted, *words), how)
        settings = self.record.settings()
        self.assertEqual((settings[SIZE], settings[COUNT]), tuple(map(str, wanted)), how)

    def left(self, how, why, *words, **asked):
        out = self.run_with(how, *words, **asked)
        self.assertIn("refused", self.statuses, how)
        self.assertRegex(" ".join(self.whys), why)
        self.assertEqual(out, self.by_hand(how, 16, 4, *words), how)

    def test_where_the_count_stands(self):
        for how in ("module", "top", "argument", "local", "flushed"):
            with self.subTest(how):
                self.changed(how, (64, 1), size=64)

    def test_either_of_the_two_is_enough(self):
        self.changed("module", (32, 2), accumulation=2)
        self.changed("module", (8, 8), size=8)
        self.changed("local", (64, 1), size=64, accumulation=1)

    def test_the_effective_batch_is_held(self):
        self.left("module", "48 does not divide the effective batch, 16 x 4", size=48)
        self.left("module", "the effective batch would be 32 x 1 instead of 16 x 4", size=32, accumulation=1)

    def test_an_epoch_keeps_its_steps(self):
        self.left("module", "200 samples of an epoch are no multiple of the effective batch, 16 x 4", "200", size=64)
        self.left("flushed", "what is left is not thrown away: its step would be another", "200", size=64)

    def test_what_is_thrown_away_is_not_made(self):
        for how, sizes in (("zeroed", (64, 32, 8)), ("kept", (64,))):
            before = self.by_hand(how, 16, 4, "200").splitlines()
            for size in sizes:
                out = self.run_with(how, "200", size=size).splitlines()
                self.assertEqual((self.statuses, len(out)), ({"taken"}, 12), self.whys)
                for one, other in zip(out, before):
                    self.assertAlmostEqual(float.fromhex(one), float.fromhex(other), places=5)

    def test_each_loader_and_call_by_itself(self):
        out = self.run_with("two", size=64).splitlines()
        self.assertEqual(len(out), len(self.by_hand("two", 16, 4).splitlines()))
        self.assertRegex(" ".join(self.whys), "64 does not divide the effective batch, 16 x 1")

    def test_another_loop_over_the_same_loader_gets_what_it_had(self):
        out = self.run_with("shared", size=64)
        self.assertEqual(self.statuses, {"taken"})
        self.assertEqual([line for line in out.splitlines() if "seen" in line], ["seen 16"] * 36)
        self.assertEqual(len(out.splitlines()), 36 + 9)

    def test_what_cannot_be_changed(self):
        self.left("cell", "more with the number of batches of a step than count to it", size=64)
        self.left("attribute", "self.accumulated, which the loop counts to, is no name of its own", size=64)
        self.left("outer", "count belongs to another function", size=64)
        self.left("sampler", "batch sampler of the program's own", size=64)

    def test_a_program_that_changes_its_batch_size(self):
        for how in ("grows", "grows_module"):
            out = self.run_with(how, "384", size=64).splitlines()
            self.assertEqual(self.statuses, {"taken"})  # 48 x 4 is 64 x 3
            self.assertEqual(len(out), len(self.by_hand(how, 16, 4, "384").splitlines()), how)

    def test_no_such_loop(self):
        done = self.observed(sys.executable, test_run.TRAIN, "many", options=["--steps", "20", "--apply", "batch.size=64"])
        self.assertEqual(done.returncode, 0)
        self.assertRegex(self.record.notes("apply")[0]["why"], "no loop of the program")

    def test_what_is_saved_is_the_programs_own(self):
        count = variables.count(1, 4)
        self.assertEqual((type(pickle.loads(pickle.dumps(count))), pickle.loads(pickle.dumps({"a": count}))), (int, {"a": 4}))
        self.assertIs(copy.deepcopy([count])[0], count)
        self.assertEqual(("%d %s %r" % (count, count, count), count + 1, json.dumps(count)), ("1 1 1", 2, "1"))

    def test_a_search_is_told(self):
        for how, why in (("local", None), ("sampler", "batch sampler")):
            self.observed(sys.executable, PROGRAM, how, "16", "4", options=["--steps", "3"])
            note, = self.record.notes("accumulation")
            self.assertEqual(note["changeable"], why is None)
            if how == "local":
                self.assertEqual((note["size"], note["count"]), (16, 4))
            else:
                self.assertIn(why, note["why"])
        self.observed(sys.executable, PROGRAM, "module", "16", "4", "200", options=["--steps", "3"])
        self.assertRegex(self.record.notes("accumulation")[0]["why"], "no multiple of the effective batch")
        self.observed(sys.executable, PROGRAM, "local", "16", "4")
        self.assertEqual(self.record.notes("accumulation"), [])


if __name__ == "__main__":
    unittest.main()
