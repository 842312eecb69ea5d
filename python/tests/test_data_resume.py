"""unidle.data.Loader: where it continues after load_state_dict() and set_epoch()."""

import json
import sys
import types
import unittest
from unittest import mock

import package

import unidle
from unidle.data import Loader, arrays, wrap

np, torch = package.needs("numpy", "torch")


def numbers(count):
    """Rows that contain their number, and a label."""
    return arrays(np.zeros((count, 3), np.float32), np.arange(count), names=["row", "label"])


def labels(loader):
    return [batch[1].tolist() for batch in loader]


def flat(batches):
    return [value for batch in batches for value in batch]


class StateTest(unittest.TestCase):
    def test_goes_on_after_any_batch(self):
        """After the last batch of an epoch, nothing is left of it."""
        for drop_last in (False, True):
            make = lambda workers=1: Loader(numbers(23), 5, seed=3, drop_last=drop_last, workers=workers)
            whole = make()
            expected = [labels(whole) for _ in range(4)]
            for taken in range(1, 2 * len(whole) + 1):
                first = make()
                self.walk(first, taken)
                epoch, within = divmod(taken - 1, len(whole))
                self.assertEqual(first.epoch, epoch)
                second = make(workers=taken % 3)
                second.load_state_dict(first.state_dict())
                self.assertEqual(labels(second), expected[epoch][within + 1 :])
                self.assertEqual(labels(second), expected[epoch + 1])

    def test_after_the_loop_the_next_epoch_comes(self):
        loader, later, whole = (Loader(numbers(23), 5, seed=3) for _ in range(3))
        epochs = [labels(whole) for _ in range(3)]
        for epoch in (1, 2):
            labels(loader)
            later.load_state_dict(loader.state_dict())
            self.assertEqual(labels(later), epochs[epoch])

    @staticmethod
    def walk(loader, batches):
        while batches > 0:
            for _ in loader:
                batches -= 1
                if batches == 0:
                    break

    def test_the_state_is_json_and_of_one_size(self):
        loader = Loader(numbers(23), 5)
        self.walk(loader, 3)
        state = json.loads(json.dumps(loader.state_dict()))
        self.assertEqual((state["epoch"], state["sample"]), (0, 15))
        self.assertLess(len(json.dumps(state)), 200)

    def test_goes_on_with_another_batch_size_and_world(self):
        order = flat(labels(Loader(numbers(40), 4, seed=9)))
        loader = Loader(numbers(40), 4, seed=9)
        self.walk(loader, 3)
        for world in (1, 2, 5):
            ranks = []
            for rank in range(world):
                again = Loader(numbers(40), 3, seed=9, rank=rank, world=world)
                again.load_state_dict(loader.state_dict())
                ranks.append(flat(labels(again)))
            together = [value for several in zip(*ranks) for value in several]
            self.assertEqual(together[:28], order[12:])

    def test_the_seed_comes_with_the_state_and_another_source_is_refused(self):
        first = Loader(numbers(23), 5, seed=4)
        expected = labels(first)
        second = Loader(numbers(23), 5, seed=5, shuffle=False)
        second.load_state_dict(Loader(numbers(23), 5, seed=4).state_dict())
        self.assertEqual(labels(second), expected)
        with self.assertRaises(unidle.UsageError):
            Loader(numbers(24), 5).load_state_dict(first.state_dict())
        with self.assertRaises(unidle.UsageError):
            first.load_state_dict({"version": 99})


class EpochTest(unittest.TestCase):
    """set_epoch(), as in torch's samplers and called by frameworks."""

    def loader(self, **options):
        return Loader(numbers(23), 5, **{"seed": 3, **options})

    def state_behind(self, batches, **options):
        loader = self.loader(**options)
        StateTest.walk(loader, batches)
        return loader.state_dict()

    def test_of_the_epoch_that_a_state_names_keeps_its_place(self):
        for options in ({}, {"workers": 0}, {"drop_last": True}, {"shuffle": False}, {"rank": 1, "world": 2}):
            expected = self.loader(**options)
            epochs = [labels(expected) for _ in range(4)]
            for taken in range(1, 2 * len(expected)):
                state = self.state_behind(taken, **options)
                epoch, within = divmod(taken - 1, len(expected))
                for name in ("set_epoch", "sampler", "batch_sampler"):
                    loader = self.loader(**options)
                    loader.load_state_dict(state)
                    setter = loader if name == "set_epoch" else getattr(loader, name)
                    setter.set_epoch(np.int64(state["epoch"]))
                    self.assertEqual(loader.state_dict(), state)
                    self.assertEqual(labels(loader), epochs[epoch][within + 1 :])
                    self.assertEqual(labels(loader), epochs[epoch + 1])

    def test_of_another_epoch_begins_at_its_start(self):
        expected = self.loader()
        epochs = [labels(expected) for _ in range(3)]
        for epoch in (0, 2):
            loader = self.loader()
            loader.load_state_dict(self.state_behind(8))
            loader.set_epoch(epoch)
            self.assertEqual(labels(loader), epochs[epoch])
        loader.load_state_dict(self.state_behind(8))
        loader.set_epoch(0)
        loader.set_epoch(1)
        self.assertEqual(labels(loader), epochs[1])

    def test_after_the_loop_the_place_is_used_up(self):
        loader, expected = self.loader(), self.loader()
        loader.load_state_dict(self.state_behind(2))
        loader.set_epoch(0)
        next(iter(loader))
        loader.set_epoch(0)
        self.assertEqual(labels(loader), labels(expected))

    def test_holds_for_iterators_that_nothing_was_taken_of(self):
        expected = self.loader()
        epochs = [labels(expected) for _ in range(9)]
        for workers in (0, 2):
            loader = self.loader(workers=workers)
            batches = iter(loader)
            loader.set_epoch(7)
            self.assertEqual([batch[1].tolist() for batch in batches], epochs[7])
            batches = iter(loader)
            loader.load_state_dict(self.state_behind(3))
            self.assertEqual([batch[1].tolist() for batch in batches], epochs[0][3:])
            self.assertEqual(labels(loader), epochs[1])

    def test_of_a_wrapped_data_set(self):
        make = lambda: Loader(wrap(list(range(23))), 5, seed=3, workers=2)
        expected, first, second = make(), make(), make()
        rest = [batch.tolist() for batch in expected][2:]
        StateTest.walk(first, 2)
        second.load_state_dict(first.state_dict())
        second.set_epoch(0)
        self.assertEqual([batch.tolist() for batch in second], rest)


class FrameworksTest(unittest.TestCase):
    """What accelerate does with a loader, reproduced without it."""

    def test_a_data_loader_of_its_parts_gives_its_batches(self):
        class Skip:  # like accelerate.data_loader.SkipBatchSampler
            def __init__(self, batches, count):
                self.batches, self.count = batches, count

            def __iter__(self):
                return (one for number, one in enumerate(self.batches) if number >= self.count)

        for make in (lambda: numbers(23), lambda: wrap([(0, n) for n in range(23)])):
            for options in ({}, {"drop_last": True}, {"rank": 1, "world": 2, "workers": 0}):
                loader, expected = (Loader(make(), 5, seed=3, **options) for _ in range(2))
                epochs = [labels(expected) for _ in range(8)]
                for skipped in range(len(loader) + 1):
                    parts = torch.utils.data.DataLoader(
                        loader.dataset,
                        batch_sampler=Skip(loader.batch_sampler, skipped),
                        collate_fn=loader.collate_fn,
                        prefetch_factor=loader.prefetch_factor,
                    )
                    epoch = loader.epoch
                    self.assertEqual(labels(parts), epochs[epoch][skipped:])
                    self.assertEqual(loader.epoch, epoch + 1)
        loader, expected = Loader(numbers(23), 5, seed=3), Loader(numbers(23), 5, seed=3)
        StateTest.walk(expected, 3)
        loader.load_state_dict(expected.state_dict())
        expected.set_epoch(0)
        batches = iter(Skip(loader.batch_sampler, 3))  # batches skipped by a state are not skipped again
        self.assertEqual(loader.collate_fn(next(batches)())[1].tolist(), labels(expected)[3])

    def test_a_gradient_state_learns_where_epochs_end(self):
        class GradientState:  # like accelerate.state
            _shared_state = {"sync_gradients": True}
            dataloader_references = [None]

            def _add_dataloader(self, loader):
                self.dataloader_references.append(loader)

            def _remove_dataloader(self, loader):
                self.dataloader_references.remove(loader)

        module = types.SimpleNamespace(GradientState=GradientState)
        told = lambda: [
            (one.end_of_dataloader, one.remainder) for one in GradientState.dataloader_references[1:]
        ]
        with mock.patch.dict(sys.modules, {"accelerate.state": module}):
            for options, remainder in (
                ({}, 0),
                ({"rank": 1, "world": 2}, 5),
                ({"rank": 1, "world": 2, "drop_last": True}, 0),
                ({"rank": 1, "world": 2, "on_error": "skip"}, -1),
                ({"rank": 1, "world": 4, "batch_size": 6}, 23),
                ({"rank": 1, "world": 5}, -1),
                ({"rank": 1, "world": 2, "groups": np.arange(23) % 3}, -1),
            ):
                loader = Loader(numbers(23), **{"batch_size": 3, **options})
                for _ in range(2):
                    seen = [told() for _ in loader]
                    self.assertEqual(seen, [[(False, remainder)]] * (len(loader) - 1) + [[(True, remainder)]])
                    self.assertEqual(told(), [])
            outer, inner = Loader(numbers(6), 3), Loader(numbers(6), 3)
            for _ in outer:
                for _ in inner:
                    break
            self.assertEqual(told(), [])
            batches = iter(outer)
            next(batches)
            labels(outer)  # `batches` still exists
            self.assertEqual(told(), [])
            GradientState._shared_state = {}  # no Accelerator
            for _ in outer:
                self.assertEqual(told(), [])


if __name__ == "__main__":
    unittest.main()
