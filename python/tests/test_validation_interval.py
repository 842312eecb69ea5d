"""validation.every at run time: fewer validations, the same training, or a refusal with a reason."""

import contextlib
import functools
import os
import re
import subprocess
import sys
import unittest

import run_case

sys.path.insert(0, os.path.join(run_case.HERE, "..", "shim"))

from _unidle_shim.source import side_effects  # noqa: E402

PROGRAM = os.path.join(run_case.HERE, "programs", "validates.py")


@unittest.skipUnless(run_case.HAS_TORCH, "there is no torch")
class ValidatingTest(run_case.RunCase):
    fresh = True

    def losses_and_validations(self, how, interval=None):
        options = ["--apply", "validation.every=%d" % interval] if interval is not None else []
        done = self.observed(sys.executable, PROGRAM, how, options=options)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([note for note in self.record.notes("shim") if note["status"] == "off"], [])
        self.said = [(note["status"], note["why"] or "") for note in self.record.notes("apply")]
        return done.stdout, done.stderr.count("validated")

    def bare(self, *ways):
        done = subprocess.run([sys.executable, PROGRAM, *ways], capture_output=True, text=True, check=True)
        return by_way(done) if len(ways) > 1 else (done.stdout, done.stderr.count("validated"))

    def test_training_is_the_same_with_fewer_validations(self):
        bare = self.bare("function", "dropped", "method")
        # The first two are always made.
        for how, validations in (
            ("function", {4: 2 + 3}),
            ("dropped", {4: 2 + 3 + 1}),
            ("method", {1: 12, 4: 2 + 3, 0: 2}),
        ):
            with self.subTest(how):
                for interval, expected in validations.items():
                    self.assertEqual(
                        self.losses_and_validations(how, interval), (bare[how][0], expected), interval
                    )
                    self.assertEqual(self.said, [("taken", "")])

    def test_what_it_depends_on_is_left_alone(self):
        refused = (
            ("returns", "what Experiment.look returns"),
            ("chooses", "what Experiment.chooses returns"),
            ("trains", "trains as well"),
            ("saves", "saves a checkpoint"),
            ("pickles", "saves a checkpoint or results"),
            ("schedules", "changes an optimiser"),
            ("plateau", "steps a scheduler or an optimiser"),
            ("patient", "steps a scheduler or an optimiser"),
            ("listed", "changes its arguments"),
            ("stopper", "changes its arguments"),
            ("raises", "can end the training (EndOfTraining)"),
            ("stops", "changes done, which"),
            ("remembers", "changes history, which"),
            ("recalls", "changes recent, which"),
            ("tallies", "changes tally, which"),
            ("draws", "random numbers"),
            ("shuffles", "random numbers"),
            ("picks", "random numbers"),
            ("loop", "the training loop or a library validates"),
        )
        ways = [how for how, _ in refused]
        bare = self.bare(*ways)
        done = self.observed(sys.executable, PROGRAM, *ways, options=["--apply", "validation.every=4"])
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([note for note in self.record.notes("shim") if note["status"] == "off"], [])
        self.assertEqual(by_way(done), bare)
        for how, why in refused:
            with self.subTest(how):
                said = self.record.notes("apply", process=process_of(done, how))
                self.assertEqual([note["status"] for note in said], ["refused-in-part"])
                expected = why if sys.version_info >= (3, 11) else why.replace("Experiment.", "")
                self.assertIn(expected, said[0]["why"])

    def test_a_function_that_training_needs_is_not_said_to_be_optional(self):
        for how, why in (("saves", "saves a checkpoint"), ("stops", "changes done, which")):
            self.losses_and_validations(how)
            note = self.record.notes("validation")[-1]
            self.assertEqual((note["optional"], note["where"]), (False, None), how)
            self.assertIn(why, note["why"])
        self.losses_and_validations("method")
        self.assertTrue(self.record.notes("validation")[-1]["optional"])

    def test_the_same_in_the_process_that_was_started(self):
        self.assertEqual(self.losses_and_validations("raises", 4), self.bare("raises"))
        self.assertEqual([status for status, _ in self.said], ["refused-in-part"])

    def test_unasked_it_is_told_whether_it_could(self):
        for how, optional in (("method", True), ("returns", False), ("last", False)):
            self.losses_and_validations(how)
            note = self.record.notes("validation")[-1]
            self.assertEqual((note["optional"], bool(note["why"])), (optional, not optional))
        self.losses_and_validations("function")
        with open(PROGRAM) as file:
            line = next(number for number, text in enumerate(file, 1) if text.startswith("def function("))
        self.assertTrue(self.record.notes("validation")[-1]["where"].endswith("validates.py:%d" % line))


def by_way(done):
    """{way: (losses, number of validations)} of a run of several."""
    losses, told = (
        {part.split(" ", 1)[0]: part.split("\n", 1)[1] for part in text.split("== ")[1:]}
        for text in (done.stdout, done.stderr)
    )
    return {how: (losses[how], told[how].count("validated")) for how in losses}


def process_of(done, how):
    return int(re.search("^== %s ([0-9]+)$" % how, done.stdout, re.MULTILINE).group(1))


class Stopper:
    def __init__(self):
        self.stop = False

    def __call__(self, loss):
        if loss > 2:
            self.stop = True


class Subject:
    def __init__(self):
        self.stopper, self.best = Stopper(), 0

    def validate(self):
        self.stopper(total([1]))

    def keep(self):
        self.best = 1
        return self.best

    def fit(self):
        while not all(self.scores[key] > 3 for key in range(3)):
            self.later(lambda: self.patience)

    def later(self, task):
        def done():
            self.finished = self.save_results(task())

        done()


class Successor(Subject):
    def fit(self):
        return super().is_over()


@functools.wraps(len)
def wraps_a_builtin(values):
    return len(values)


def chooses(values):
    return values if values else None


def falls_back(values):
    return values or None


def finds_nothing(values):
    with contextlib.suppress(ValueError):
        for _ in values:
            return None
    return None


def around():
    def inside(value):
        return lambda: value.history

    return inside


MODULE = """
def never():
    return history
while not all(scores[key] for key in range(3)):
    pass
"""


def total(values):
    global COUNT
    COUNT = wraps_a_builtin(values)
    return sum(values)


class SideEffectsTest(unittest.TestCase):
    def test_what_a_function_may_set(self):
        subject = Subject()
        self.assertEqual(side_effects.stored(Subject.validate, (subject,)), {"stop", "COUNT"})
        self.assertEqual(side_effects.stored(Subject.keep, (subject,)), {"best"})
        self.assertEqual(side_effects.stored(total, ()), {"COUNT"})

    def test_what_returns_nothing(self):
        for function, expected in (
            *((Subject.validate, True), (finds_nothing, True), (Subject.keep, False), (total, False)),
            *((chooses, False), (falls_back, False)),
        ):
            self.assertEqual(side_effects.returns_nothing(function.__code__), expected, function)

    def test_what_the_code_inside_a_function_does(self):
        self.assertEqual(side_effects.stored(Subject.later, ()), {"finished"})
        self.assertIn("save_results", side_effects.used(Subject.later, ()))
        read = side_effects.names_of_loop({Subject.fit.__code__}, total)
        self.assertTrue({"scores", "patience", "save_results"} <= read, read)
        self.assertIn("is_over", side_effects.names_of_loop({Successor.fit.__code__}, total))

    def test_a_function_of_a_module_counts_only_where_it_is_called(self):
        read = side_effects.names_of_loop({compile(MODULE, __file__, "exec")}, total)
        self.assertIn("scores", read)
        self.assertNotIn("history", read)

    def test_the_function_itself_is_apart_inside_another_one(self):
        read = side_effects.names_of_loop({around.__code__}, around())
        self.assertNotIn("history", read)

    def test_whose_result_is_dropped(self):
        def called():
            seen.append(side_effects.result_is_dropped(sys._getframe(1)))
            return 1

        seen = []
        called()
        value = called()
        _ = [called(), value]
        self.assertEqual(seen, [True, False, False])

    def test_containers_are_compared_by_their_elements(self):
        values = {"a": [1], "b": {}, "c": 1.5, "d": object()}
        before = side_effects.contents(values)
        values["a"].append(2)
        after = side_effects.contents(values)
        self.assertEqual({name for name in after if before[name] != after[name]}, {"a"})


if __name__ == "__main__":
    unittest.main()
