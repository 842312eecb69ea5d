"""batch.size and batch.accumulation at run time: what the program does is what it would do with other constants."""

import os
import sys
import unittest

import test_run

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
        for how in ("module", "top", "argument", "local", "cell", "attribute", "item", "steps"):
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
        self.changed("steps", (64, 1), "200", size=64)
        out = self.run_with("attribute", "200", size=64)  # what is left makes a step of its own either way
        self.assertEqual((self.statuses, len(out.splitlines())), ({"taken"}, len(self.by_hand("attribute", 16, 4, "200").splitlines())))

    def test_what_is_thrown_away_is_not_made(self):
        before = self.by_hand("zeroed", 16, 4, "200").splitlines()
        for size in (64, 32, 8):
            out = self.run_with("zeroed", "200", size=size).splitlines()
            self.assertEqual((self.statuses, len(out)), ({"taken"}, 12), self.whys)
            for one, other in zip(out, before):
                self.assertAlmostEqual(float.fromhex(one), float.fromhex(other), places=5)

    def test_what_cannot_be_changed(self):
        self.left("outer", "count belongs to another function", size=64)
        self.left("sampler", "batch sampler of the program's own", size=64)

    def test_a_program_that_changes_it_itself_gets_it_back(self):
        for how in ("grows", "grows_module"):
            out = self.run_with(how, "384", size=64).splitlines()
            self.assertRegex(" ".join(self.whys), "changes its batch size")
            self.assertEqual(len(out), len(self.by_hand(how, 16, 4, "384").splitlines()), how)

    def test_no_such_loop(self):
        done = self.observed(sys.executable, test_run.TRAIN, "many", options=["--steps", "20", "--apply", "batch.size=64"])
        self.assertEqual(done.returncode, 0)
        self.assertRegex(self.record.notes("apply")[0]["why"], "no loop of the program")

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
