"""What is found to draw random numbers in a data set; without torch."""

import os
import random
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "shim"))

from _unidle_shim.facts import random_draws  # noqa: E402


class Flip:
    def __call__(self, row):
        return row[::-1] if random.random() < 0.5 else row


class Scale:
    def __call__(self, row):
        return [2 * value for value in row]


class InPlace:
    def __call__(self, tensor):
        return tensor.uniform_(0, 1)


class Compose:
    def __init__(self, *transforms):
        self.transforms = list(transforms)

    def __call__(self, row):
        for transform in self.transforms:
            row = transform(row)
        return row


class Rows:
    def __init__(self, transform=None):
        self.rows, self.transform = [[1, 2]], transform

    def __getitem__(self, index):
        return self.transform(self.rows[index])


class Drawn(Rows):
    def __getitem__(self, index):
        return random.choice(self.rows)


class Draws(unittest.TestCase):
    def test_transforms_of_a_pipeline(self):
        for transform, name in (
            (None, None),
            (Scale(), None),
            (Compose(Scale(), Scale()), None),
            (Flip(), "Flip"),
            (Compose(Scale(), Compose(Flip())), "Flip"),
            (InPlace(), "InPlace"),
        ):
            self.assertEqual(random_draws.drawn_by(Rows(transform)), name)

    def test_the_dataset_itself(self):
        self.assertEqual(random_draws.drawn_by(Drawn(Scale())), "Drawn.__getitem__")

    def test_objects_that_hold_each_other(self):
        one, other = Scale(), Scale()
        one.other, other.other = other, one
        self.assertIsNone(random_draws.drawn_by(Rows(one)))


if __name__ == "__main__":
    unittest.main()
