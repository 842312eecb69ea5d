"""The line that starts a validation."""

import inspect
import os
import sys
import unittest

from run_case import HERE

sys.path.insert(0, os.path.join(HERE, "..", "shim"))

from _unidle_shim.facts import validation_call  # noqa: E402


def line_of(function, text):
    """The first line of the function that begins with the text, as "file:line"."""
    lines, first = inspect.getsourcelines(function)
    (index,) = [n for n, line in enumerate(lines) if line.strip().startswith(text)]
    return "%s:%d" % (os.path.basename(__file__), first + index)


class ValidationCallTest(unittest.TestCase):
    def setUp(self):
        self.calls = validation_call.ValidationCall()

    def where(self):
        note = self.calls.note()
        return note and os.path.basename(note["where"])

    def trains(self):
        self.calls.trains(sys._getframe())

    def validates(self, number=0):
        self.calls.validates(sys._getframe(), number)

    def test_two_calls_of_one_function(self):
        def epoch(train):
            (self.trains if train else self.validates)()

        def main():
            epoch(True)
            epoch(False)

        main()
        self.assertEqual(self.where(), line_of(main, "epoch(False)"))

    def test_within_the_function_that_trains(self):
        def evaluate(number):
            self.validates(number)

        def train():
            self.trains()
            for number in range(3):
                evaluate(number)

        train()
        self.assertEqual(self.where(), line_of(train, "evaluate(number)"))

    def test_one_line_that_calls_both(self):
        def main():
            for one in (self.trains, self.validates):
                one()

        main()
        self.assertEqual(self.where(), line_of(main, "one()"))

    def test_one_line_for_both_passes_says_nothing(self):
        note = [self.calls.trains, lambda frame: self.calls.validates(frame, 0)]
        for phase in range(2):
            note[phase](sys._getframe())
        self.assertIsNone(self.calls.note())

    def test_the_line_of_most_validations(self):
        def main():
            self.trains()
            self.validates(0)
            for number in (1, 2, 2, 3):
                self.validates(number)

        main()
        self.assertEqual(self.where(), line_of(main, "self.validates(number)"))

    def test_a_pass_that_only_prepares_is_not_the_way_to_training(self):
        def prepare():
            self.trains()

        def evaluate():
            self.validates()

        def fit():
            self.trains()
            evaluate()

        def main():
            prepare()
            fit()

        main()
        self.assertEqual(self.where(), line_of(fit, "evaluate()"))

    def test_before_training_there_is_none(self):
        self.validates()
        self.assertIsNone(self.calls.note())


if __name__ == "__main__":
    unittest.main()
