"""Which calls get arguments that are drawn at random."""

import os
import random
import sys
import unittest

from run_case import HERE

sys.path.insert(0, os.path.join(HERE, "..", "shim"))

from _unidle_shim.facts import drawn_arguments, loading  # noqa: E402


def smooth(field):
    return field


def load(path):
    return path


class Samples:
    paths = ["a", "b"]

    def field(self, rng):
        alpha = rng.uniform(1, 2)
        return smooth(rng.normal(size=3)) * alpha

    def through_variables(self):
        noise = random.random()
        shift = noise * 2 + 1
        return smooth(shift)

    def one_of_few(self):
        index = random.randint(0, 1)
        return load(self.paths[index]), load(random.choice(self.paths))

    def beside_a_draw(self, index):
        image = load(self.paths[index])
        if random.random() < 0.5:
            image = smooth(image)
        return image


class DrawnArguments(unittest.TestCase):
    def test_of_the_call_itself_and_through_variables(self):
        self.assertIn("smooth", drawn_arguments.called_with_drawn(Samples.field))
        self.assertIn("smooth", drawn_arguments.called_with_drawn(Samples.through_variables))

    def test_what_comes_again(self):
        for function in (Samples.one_of_few, Samples.beside_a_draw):
            self.assertFalse(drawn_arguments.called_with_drawn(function) & {"smooth", "load"})

    def test_without_text(self):
        self.assertEqual(drawn_arguments.called_with_drawn(len), frozenset())
        self.assertEqual(drawn_arguments.called_with_drawn(eval("lambda x: x")), frozenset())


class Fields:
    paths = ["a", "b"]

    def __getitem__(self, index):
        return load(self.paths[index]), smooth(random.gauss(0, 1))


class Keepable(unittest.TestCase):
    def test_what_never_comes_again_is_not_worth_keeping(self):
        self.assertEqual(loading.keepable(Fields()), [load])


if __name__ == "__main__":
    unittest.main()
