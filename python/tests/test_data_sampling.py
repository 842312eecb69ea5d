"""unidle.data.Loader with weights or groups: how often samples occur, the contents of a batch, resuming and
ranks."""

import json
import tempfile
import unittest
from collections import Counter
from pathlib import Path

import package

import unidle
from unidle.data import Loader, arrays, images, sequences, wrap

np, torch = package.needs("numpy", "torch")

COUNT = 53
WEIGHTS = np.where(np.arange(COUNT) % 10 == 0, 9.0, np.where(np.arange(COUNT) % 7 == 0, 0.0, 1.0))
GROUPS = np.array(["small" if n % 5 else "large" for n in range(COUNT)])


def numbers():
    return arrays(np.arange(COUNT))


def taken(loader):
    return [batch[0].tolist() for batch in loader]


class WeightsTest(unittest.TestCase):
    def test_samples_come_as_often_as_they_weigh(self):
        counts = Counter()
        loader = Loader(numbers(), 8, weights=WEIGHTS)
        for _ in range(200):
            counts.update(sum(taken(loader), []))
        self.assertEqual(sum(counts.values()), 200 * COUNT)
        for sample, weight in enumerate(WEIGHTS):
            expected = 200 * COUNT * weight / WEIGHTS.sum()
            self.assertLessEqual(abs(counts[sample] - expected), 5 * expected**0.5, sample)

    def test_a_picture_that_comes_twice_shows_two_parts(self):
        try:
            from PIL import Image
        except ImportError:
            self.skipTest("needs Pillow")
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "a").mkdir()
            for number in range(2):
                Image.new("RGB", (90, 80)).save(Path(folder) / "a" / f"{number}.png")
            source = images(folder, 8, tell_crop=True)
            (batch,) = Loader(source.subset([0, 1, 1, 1]), 4, weights=[1, 0, 0, 0])
        self.assertEqual(len({tuple(crop) for crop in batch[2].tolist()}), 4)

    def test_what_makes_no_sense_is_refused(self):
        for options in (
            {"weights": WEIGHTS[:-1]},
            {"weights": -WEIGHTS},
            {"weights": WEIGHTS * 0},
            {"weights": ["x"] * COUNT},
            {"weights": WEIGHTS, "shuffle": False},
            {"weights": WEIGHTS, "groups": GROUPS},
            {"groups": GROUPS[1:]},
            {"groups": GROUPS, "on_error": "replace"},
            {"groups": GROUPS, "batch_size": 50, "drop_last": True},
        ):
            with self.subTest(options), self.assertRaisesRegex(unidle.UsageError, "loader option"):
                Loader(numbers(), **{"batch_size": 4, **options})
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "a.txt").write_text("ACD\nAC\n")
            with self.assertRaisesRegex(unidle.UsageError, "whole batches"):
                Loader(sequences(Path(folder) / "a.txt"), weights=[1, 1])


class GroupsTest(unittest.TestCase):
    def test_a_batch_is_of_one_group(self):
        for drop_last in (False, True):
            loader = Loader(numbers(), 4, groups=GROUPS, drop_last=drop_last)
            for epoch in range(3):
                batches = taken(loader)
                self.assertEqual(len(batches), len(loader))
                for batch in batches:
                    self.assertEqual((len(batch), len(set(GROUPS[batch]))), (4, 1))
                seen = Counter(sum(batches, []))
                if drop_last:
                    self.assertEqual(set(seen.values()), {1})
                else:
                    self.assertEqual(len(seen), COUNT)
        self.assertEqual(len(loader), sum(int((GROUPS == name).sum()) // 4 for name in set(GROUPS)))


class BothTest(unittest.TestCase):
    def loaders(self, **options):
        for sampling in ({"weights": WEIGHTS}, {"groups": GROUPS}):
            for source in (numbers(), wrap(torch.utils.data.TensorDataset(torch.arange(COUNT)))):
                yield lambda **more: Loader(
                    source, **{"batch_size": 4, "seed": 5, **sampling, **options, **more}
                )

    def test_the_order_is_the_same_for_any_workers_and_ranks(self):
        for make in self.loaders():
            expected = taken(make(workers=0))
            for workers in (1, 3):
                self.assertEqual(taken(make(workers=workers)), expected)
            for world in (2, 3):
                ranks = [taken(make(rank=rank, world=world)) for rank in range(world)]
                self.assertEqual(len({len(rank) for rank in ranks}), 1)
                together = Counter(sum(sum(ranks, []), []))
                missing = Counter(sum(expected, [])) - together
                self.assertFalse(missing)

    def test_goes_on_after_any_batch(self):
        for make in self.loaders():
            loader = make()
            list(loader)
            before = json.loads(json.dumps(loader.state_dict()))
            expected = taken(loader)
            for stop in range(1, len(expected)):
                loader = make()
                loader.load_state_dict(before)
                batches = iter(loader)
                for _ in range(stop):
                    next(batches)
                later = make(workers=1)
                later.load_state_dict(loader.state_dict())
                self.assertEqual(taken(later), expected[stop:])

    def test_a_state_of_other_weights_or_groups_is_refused(self):
        states = [make().state_dict() for make in self.loaders()] + [Loader(numbers(), 4).state_dict()]
        grouped = Loader(numbers(), 4, groups=GROUPS)
        others = [
            Loader(numbers(), 4, weights=WEIGHTS + 1),
            Loader(numbers(), 5, groups=GROUPS),
            Loader(numbers(), 4, groups=GROUPS[::-1]),
        ]
        for state in states:
            for other in others:
                with self.assertRaisesRegex(unidle.UsageError, "loader state"):
                    other.load_state_dict(state)
        grouped.load_state_dict(states[2])


if __name__ == "__main__":
    unittest.main()
