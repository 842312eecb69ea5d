"""unidle.data.Loader: samples that cannot be read, by each policy, on any number of ranks."""

import os
import signal
import sys
import tempfile
import threading
import time
import unittest
from pathlib import Path

import package

import unidle
from unidle.data import Loader, arrays, npy, wrap

np = package.needs("numpy")

ROWS = 60
LOST = set(range(20, 23)) | set(range(57, 60))  # in the third shard and in the last


class DamageTest(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        folder = Path(temporary.name)
        rows = np.repeat(np.arange(ROWS)[:, None], 100, 1)
        for number, (begin, end) in enumerate(((0, 10), (10, 20), (20, 23), (23, 57), (57, 60))):
            np.save(folder / f"x_{number}.npy", rows[begin:end])
        self.source = npy(folder, ["x"])
        for number in (2, 4):  # after the source was opened
            path = folder / f"x_{number}.npy"
            with open(path, "r+b") as file:
                file.truncate(path.stat().st_size - 800)
        self.whole = arrays(rows)

    def taken(self, source, **options):
        loader = Loader(source, 6, tensors="numpy", **options)
        return [batch[0][:, 0].tolist() for batch in loader], loader.skipped

    def each(self, check, **options):
        for world in (1, 2, 3):
            for drop_last in (False, True):
                ranks = []
                for rank in range(world):
                    place = {"rank": rank, "world": world, "drop_last": drop_last, **options}
                    clean, _ = self.taken(self.whole, rank=rank, world=world, drop_last=drop_last)
                    got = self.taken(self.source, workers=0, **place)
                    self.assertEqual(self.taken(self.source, workers=2, **place), got)
                    check(clean, *got)
                    ranks.append(len(got[0]))
                self.assertEqual(len(set(ranks)), 1)

    def test_skip_leaves_them_out(self):
        def check(clean, got, skipped):
            left = [[row for row in batch if row not in LOST] for batch in clean]
            self.assertEqual([rows if kept else [] for rows, kept in zip(got, left)], left)
            self.assertTrue(all(got))
            self.assertEqual(skipped, sum(row in LOST for batch in clean for row in batch))

        self.each(check, on_error="skip")

    def test_replace_keeps_the_sizes(self):
        def check(clean, got, skipped):
            self.assertEqual([len(batch) for batch in got], [len(batch) for batch in clean])
            pairs = [pair for batches in zip(clean, got) for pair in zip(*batches)]
            self.assertTrue(all(row not in LOST and (due in LOST or row == due) for due, row in pairs))
            self.assertEqual(skipped, sum(due in LOST for due, _ in pairs))

        self.each(check, on_error="replace")

    def test_ranks_end_together_where_one_has_all_the_damage(self):
        lost, sound = [20, 21, 22, 57, 58, 59], [0, 1, 2, 3, 4, 5]
        part = self.source.subset([row for pair in zip(sound, lost, sound) for row in pair])
        for options in ({"workers": 0}, {"workers": 2}):
            for policy in ("skip", "replace"):
                ranks = []
                for rank in range(3):  # the second one can read nothing of its own
                    loader = Loader(
                        part, 2, False, rank=rank, world=3, on_error=policy, tensors="numpy", **options
                    )
                    batches = [len(batch[0]) for batch in loader]
                    self.assertEqual(len(batches), len(loader))
                    self.assertEqual(loader.skipped, 6 if rank == 1 else 0)
                    ranks.append(batches)
                self.assertEqual(ranks, [[2, 2, 2], [1, 1, 1] if policy == "skip" else [2, 2, 2], [2, 2, 2]])

    def test_a_state_counts_what_was_left_out(self):
        loader = Loader(self.source, 6, on_error="skip", tensors="numpy")
        expected, _ = self.taken(self.source, on_error="skip")
        batches = iter(loader)
        for stop in range(1, len(expected)):
            next(batches)
            self.assertEqual(loader.state_dict()["sample"], 6 * stop)
            later = Loader(self.source, 6, on_error="skip", tensors="numpy")
            later.load_state_dict(loader.state_dict())
            self.assertEqual([batch[0][:, 0].tolist() for batch in later], expected[stop:])

    def test_a_batch_of_which_nothing_is_left_gets_the_next_one(self):
        part = self.source.subset([0, 1, 20, 21, 22, 5])
        loader = Loader(part, 2, shuffle=False, on_error="skip", tensors="numpy")
        self.assertEqual([batch[0][:, 0].tolist() for batch in loader], [[0, 1], [5], [5]])
        self.assertEqual(loader.skipped, 3)

    def test_a_source_of_which_nothing_can_be_read_fails(self):
        lost = self.source.subset([20, 21, 22])
        with self.assertRaisesRegex(unidle.InputError, "x_2.npy"):
            next(iter(Loader(lost, 3, on_error="skip")))
        with self.assertRaisesRegex(unidle.InputError, "x_2.npy"):
            next(iter(Loader(lost, 3, on_error="replace")))


class AfterAnErrorTest(unittest.TestCase):
    """The failed batch is skipped, as in torch's DataLoader; a state is still before it."""

    def asked(self, loader, calls):
        batches, told = iter(loader), []
        for _ in range(calls):
            try:
                told.append(self.rows(next(batches)))
            except StopIteration:
                told.append("end")
            except (unidle.InputError, ArithmeticError):
                told.append("error")
        return told

    @staticmethod
    def rows(batch):
        batch = batch[0] if isinstance(batch, tuple) else batch
        return (batch[:, 0] if batch.ndim > 1 else batch).tolist()

    def damaged(self, lost, **options):
        """Ten rows, some of them unreadable, for each way to make samples."""
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        for row in range(10):
            np.save(Path(temporary.name) / f"x_{row}.npy", np.full((1, 100), row))
        files = npy(temporary.name, ["x"])
        for row in lost:
            path = Path(temporary.name) / f"x_{row}.npy"
            with open(path, "r+b") as file:
                file.truncate(path.stat().st_size - 800)

        class Rows:
            def __len__(self):
                return 10

            def __getitem__(self, row):
                return row if row not in lost else 1 // 0

        class WholeBatches(Rows):
            def __getitems__(self, rows):
                return [self[row] for row in rows]

        def transform(batch):
            return batch if not lost & set(self.rows(batch)) else 1 // 0

        options = {"shuffle": False, "tensors": "numpy", **options}
        for workers in (0, 2, None):
            yield Loader(files, 2, workers=workers, **options)
            yield Loader(wrap(Rows()), 2, workers=workers, **options)
            yield Loader(wrap(WholeBatches()), 2, workers=workers, **options)
            yield Loader(arrays(np.arange(10)), 2, workers=workers, batch_transform=transform, **options)

    def test_the_next_batch_comes(self):
        for lost, expected in (
            ({5}, [[0, 1], [2, 3], "error", [6, 7], [8, 9], "end", "end"]),
            ({0, 2, 3}, ["error", "error", [4, 5], [6, 7], [8, 9], "end", "end"]),
            ({9}, [[0, 1], [2, 3], [4, 5], [6, 7], "error", "end", "end"]),
            (set(range(10)), ["error"] * 5 + ["end", "end"]),
        ):
            for loader in self.damaged(lost):
                self.assertEqual(self.asked(loader, 7), expected)
                self.assertEqual(self.asked(loader, 7), expected)  # the next epoch
                self.assertEqual((loader.epoch, loader.skipped), (2, 0))

    def test_ranks_stay_together(self):
        for rank, expected in enumerate(([[0, 2], [4, 6], [8], "end"], [[1, 3], "error", [9], "end"])):
            for loader in self.damaged({5}, rank=rank, world=2):
                self.assertEqual(self.asked(loader, 4), expected)

    def test_a_state_is_before_the_batch_until_another_one_has_come(self):
        for loader in self.damaged({4}):
            batches = iter(loader)
            places = []
            for _ in range(5):
                try:
                    next(batches)
                except (unidle.InputError, ArithmeticError):
                    pass
                places.append(loader.state_dict()["sample"])
            self.assertEqual(places, [2, 4, 4, 8, 10])

    def test_a_wait_that_a_signal_handler_breaks_off_costs_no_batch(self):
        class Rows:
            def __len__(self):
                return 6

            def __getitem__(self, row):
                if row == 0:
                    while sys._current_frames()[main].f_back.f_code.co_name != "exception":
                        time.sleep(0.001)  # until it waits for this sample
                    os.kill(os.getpid(), signal.SIGUSR1)
                    broken_off.wait()
                return row

        def handler(*_):
            broken_off.set()
            raise TimeoutError

        main, broken_off = threading.main_thread().ident, threading.Event()
        self.addCleanup(signal.signal, signal.SIGUSR1, signal.signal(signal.SIGUSR1, handler))
        batches = iter(Loader(wrap(Rows()), 2, shuffle=False, workers=2, tensors="numpy"))
        with self.assertRaises(TimeoutError):
            next(batches)
        self.assertEqual([batch.tolist() for batch in batches], [[0, 1], [2, 3], [4, 5]])

    def test_a_batch_that_a_signal_handler_loses_is_counted(self):
        """The handler raises when the library has handed out a batch that Python does not have yet."""

        class Library:
            def __init__(self, library, fails_at):
                self.library, self.calls, self.fails_at = library, 0, fails_at

            def __getattr__(self, name):
                return getattr(self.library, name)

            def unidle_loader_next(self, *arguments):
                done = self.library.unidle_loader_next(*arguments)
                self.calls += done > 0
                if done > 0 and self.calls == self.fails_at:
                    raise TimeoutError
                return done

        rows = np.arange(40)
        for source, fails_at in ((arrays(rows), 3), (wrap(list(range(40))), 1), (wrap(list(range(40))), 5)):
            loader = Loader(source, 4, shuffle=False, workers=1, tensors="numpy")
            batches = iter(loader)
            stream = loader._epochs.stream
            stream = getattr(stream, "_items", stream)
            stream._library = Library(stream._library, fails_at)
            got = []
            while True:
                try:
                    batch = next(batches, None)
                except TimeoutError:
                    continue
                if batch is None:
                    break
                got.append((batch[0] if isinstance(batch, tuple) else batch).tolist())
            wanted = rows.reshape(10, 4).tolist()
            del wanted[fails_at - 1]
            self.assertEqual(got, wanted)
            self.assertEqual(loader.state_dict()["epoch"], 1)
            self.assertEqual(len(list(loader)), 10)

    def test_a_loader_that_was_closed_says_so_again(self):
        for loader in self.damaged({5}):
            batches = iter(loader)
            next(batches)
            loader.close()
            for _ in range(2):
                with self.assertRaises(unidle.UsageError):
                    next(batches)


class RaggedTest(unittest.TestCase):
    """Samples of different lengths."""

    def test_a_batch_is_as_long_as_its_longest_and_tells_each_length(self):
        rng = np.random.default_rng(0)
        lengths = rng.integers(0, 9, 40)
        samples = [rng.normal(size=(length, 3)).astype(np.float32) for length in lengths]
        source = arrays(samples, np.arange(40), names=["path", "number"])
        longest = max(lengths)
        self.assertEqual(source.fields[0][2:], ((longest, 3), True))
        self.assertEqual(source.fields[1][2:], ((), False))
        for options in ({"workers": 0}, {"workers": 3}, {}):
            loader = Loader(source, 6, tensors="numpy", **options)
            self.assertEqual(loader.extents, (None, None))
            for paths, numbers in loader:
                self.assertEqual(loader.extents[0].tolist(), [lengths[number] for number in numbers])
                self.assertIsNone(loader.extents[1])
                self.assertEqual(paths.shape, (len(numbers), max(loader.extents[0]), 3))
                for path, number in zip(paths, numbers):
                    np.testing.assert_array_equal(path[: lengths[number]], samples[number])
                    self.assertFalse(path[lengths[number] :].any())

    def test_of_a_subset_and_of_ranks(self):
        samples = [np.full(length, length) for length in (3, 1, 4, 1, 5, 9, 2, 6)]
        part = arrays(samples).subset([5, 1, 2, 0])
        for rank in range(2):
            loader = Loader(part, 2, rank=rank, world=2, tensors="numpy")
            for (batch,) in loader:
                self.assertEqual(loader.extents[0].tolist(), batch.max(axis=1).tolist())

    def test_what_is_no_list_of_samples_is_refused(self):
        for samples in (
            [np.zeros((2, 3)), np.zeros((3, 4))],
            [np.zeros(2), np.zeros(3, np.int64)],
        ):
            with self.assertRaisesRegex(unidle.UsageError, "differ in their first axis alone"):
                arrays(samples)
        with self.assertRaisesRegex(unidle.UsageError, "has 3 rows; expected 2"):
            arrays([np.zeros(2), np.zeros(3)], np.arange(3))


if __name__ == "__main__":
    unittest.main()
