"""unidle.data.wrap: a data set of the program's own, whose samples threads make."""

import hashlib
import os
import threading
import time
import unittest
import warnings
from typing import NamedTuple

import package
from unidle.data.threads import LockWatch, Work

import unidle
from unidle.data import Loader, wrap

np, torch = package.needs("numpy", "torch")


class Squares(torch.utils.data.Dataset):
    def __init__(self, count=23):
        self.count = count
        self.threads = set()
        self.asked = []

    def __len__(self):
        return self.count

    def __getitem__(self, item):
        self.threads.add(threading.current_thread().name)
        self.asked.append(item)
        return torch.full((3,), float(item)), item * item


class Point(NamedTuple):
    x: float
    y: int


def squares(batches):
    return [batch[1].tolist() for batch in batches]


class WrapTest(unittest.TestCase):
    def test_batches_are_those_of_a_data_loader(self):
        loader = Loader(wrap(Squares()), 5, shuffle=False, workers=3)
        expected = list(torch.utils.data.DataLoader(Squares(), 5))
        got = list(loader)
        self.assertEqual(len(loader), len(expected))
        for ours, theirs in zip(got, expected):
            self.assertIsInstance(ours, tuple)
            for one, other in zip(ours, theirs):
                self.assertTrue(torch.equal(one, other))
                self.assertEqual(one.dtype, other.dtype)

    def test_the_order_is_that_of_every_source_for_any_number_of_threads(self):
        orders = [squares(Loader(wrap(Squares()), 4, seed=7, workers=workers)) for workers in (0, 1, 4)]
        self.assertEqual(orders[0], orders[1])
        self.assertEqual(orders[0], orders[2])
        rows = Loader(unidle.data.arrays(np.arange(23) ** 2), 4, seed=7)
        self.assertEqual(orders[0], [batch[0].tolist() for batch in rows])

    def test_each_epoch_has_each_sample_once_and_nothing_of_the_next(self):
        data = Squares()
        loader = Loader(wrap(data), 5, workers=2)
        for epoch in range(3):
            list(loader)
            self.assertEqual(len(data.asked), 23 * (epoch + 1))
            self.assertEqual(sorted(data.asked[-23:]), list(range(23)))
        self.assertTrue(all(name.startswith("unidle") for name in data.threads))

    def test_goes_on_from_every_state(self):
        whole = squares(Loader(wrap(Squares()), 4, seed=3, workers=2))
        for stop in range(len(whole)):
            loader = Loader(wrap(Squares()), 4, seed=3, workers=2)
            iterator = iter(loader)
            for _ in range(stop):
                next(iterator)
            other = Loader(wrap(Squares()), 4, seed=3, workers=1)
            other.load_state_dict(loader.state_dict())
            self.assertEqual(squares(other), whole[stop:])

    def test_ranks_share_the_order(self):
        whole = [one for batch in squares(Loader(wrap(Squares(24)), 4, seed=3)) for one in batch]
        for rank in range(2):
            part = squares(Loader(wrap(Squares(24)), 2, seed=3, rank=rank, world=2))
            self.assertEqual([one for batch in part for one in batch], whole[rank::2])

    def test_subsets_and_other_samples(self):
        source = wrap([{"a": i, "name": str(i)} for i in range(6)]).subset([4, 2])
        (batch,) = Loader(source, 2, shuffle=False)
        self.assertEqual(batch["a"].tolist(), [4, 2])
        self.assertEqual(batch["name"], ["4", "2"])
        points = wrap([Point(i / 2, i) for i in range(4)])
        for tensors in ("torch", "numpy"):
            (batch,) = Loader(points, 4, shuffle=False, tensors=tensors)
            self.assertIsInstance(batch, Point)
            self.assertEqual(batch.y.tolist(), [0, 1, 2, 3])
        (batch,) = Loader(wrap([1, 2], collate=sum), 2)
        self.assertEqual(batch, 3)
        (batch,) = Loader(points, 4, shuffle=False, device="cpu")
        self.assertIsInstance(batch, Point)

    def test_takes_whole_batches_where_the_data_set_gives_them(self):
        class Whole(Squares):
            def __getitems__(self, items):
                self.asked.append(items)
                return [(item, -item) for item in items]

        data = Whole(8)
        got = [batch[1].tolist() for batch in Loader(wrap(data), 4, shuffle=False, workers=2)]
        self.assertEqual(got, [[0, -1, -2, -3], [-4, -5, -6, -7]])
        self.assertEqual(sorted(data.asked), [[0, 1, 2, 3], [4, 5, 6, 7]])

    def test_the_data_sets_own_error_comes_at_its_batch(self):
        class Broken(Squares):
            def __getitem__(self, item):
                if item == 9:
                    raise KeyError("nine")
                return super().__getitem__(item)

        iterator = iter(Loader(wrap(Broken()), 4, shuffle=False, workers=2))
        self.assertEqual(next(iterator)[1].tolist(), [0, 1, 4, 9])
        next(iterator)
        with self.assertRaisesRegex(KeyError, "nine"):
            next(iterator)

    def test_a_stop_iteration_of_the_programs_is_no_end_of_the_epoch(self):
        def stop(_):
            raise StopIteration

        class Ends(Squares):
            def __getitem__(self, item):
                return next(iter([])) if item == 7 else super().__getitem__(item)

        for workers in (0, 2):
            with self.assertRaisesRegex(RuntimeError, "raised StopIteration"):
                list(Loader(wrap(Ends()), 5, shuffle=False, workers=workers))
        with self.assertRaisesRegex(RuntimeError, "raised StopIteration"):
            list(Loader(wrap(Squares()), 5, batch_transform=stop))

    def test_whole_batches_have_a_sample_for_each_item(self):
        class Short(Squares):
            def __getitems__(self, items):
                return [self[item] for item in items[1:]]

        class Without(Squares):
            __getitems__ = None

        with self.assertRaisesRegex(unidle.UsageError, "Short.__getitems__: .* 5 items, found 4 samples"):
            next(iter(Loader(wrap(Short()), 5)))
        self.assertEqual(len(list(Loader(wrap(Without()), 5))), 5)

    def test_a_loader_that_another_thread_closes_says_so(self):
        asked, closed = threading.Event(), threading.Event()

        class Waits(Squares):
            def __getitem__(self, item):
                asked.set()
                closed.wait(30)
                return super().__getitem__(item)

        loader = Loader(wrap(Waits()), 5, workers=1)

        def close():
            asked.wait(30)
            loader.close()
            closed.set()

        closing = threading.Thread(target=close)
        closing.start()
        with self.assertRaisesRegex(unidle.UsageError, "it was closed"):
            list(loader)
        closing.join()

    def test_refuses_what_is_no_data_set(self):
        class Stream(torch.utils.data.IterableDataset):
            def __iter__(self):
                return iter(range(3))

        for wrong in (Stream(), 3, iter([1])):
            with self.assertRaises(unidle.UsageError):
                wrap(wrong)
        with self.assertRaises(unidle.UsageError):
            Loader(wrap([1, 2]), on_error="skip")
        with self.assertRaisesRegex(unidle.UsageError, "max_bytes"):
            Loader(wrap([1, 2]), max_bytes=1000)
        with self.assertRaises(unidle.UsageError):
            Loader(wrap([]))

    def test_queued_samples_are_not_made_when_the_loader_is_gone(self):
        made, gone = [], threading.Event()

        class Rows:
            def __len__(self):
                return 400

            def __getitem__(self, row):
                made.append(row)
                if row == 8:
                    gone.wait()
                return row

        def first():
            for batch in Loader(wrap(Rows()), 8, shuffle=False, workers=1, tensors="numpy"):
                return batch.tolist()

        before = set(threading.enumerate())
        self.assertEqual(first(), list(range(8)))
        threads = set(threading.enumerate()) - before
        gone.set()
        for thread in threads:
            thread.join()
        self.assertIn(made, (list(range(8)), list(range(9))))  # the ninth may have been begun

    def test_a_forked_process_is_told(self):
        loader = Loader(wrap(Squares()), 2, workers=2)
        iterator = iter(loader)
        next(iterator)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            child = os.fork()
        if child == 0:
            try:
                next(iterator)
            except unidle.ForkedError:
                os._exit(3)
            finally:
                os._exit(4)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 3)


class LockTest(unittest.TestCase):
    def test_judges_by_work_and_waiting(self):
        judge = LockWatch.judge
        self.assertIs(judge(4, 1.0, 4.0, 1.0, 0.1), True)  # all wait for each other
        self.assertIs(judge(4, 1.0, 4.0, 3.8, 0.1), False)  # in parallel
        self.assertIs(judge(4, 1.0, 4.0, 0.1, 0.1), False)  # files or sleep
        self.assertIs(judge(4, 1.0, 1.0, 0.9, 0.0), False)  # nothing to do for three of them
        self.assertIsNone(judge(4, 1.0, 4.0, 1.0, 2.9))  # other programs use the processors
        self.assertIsNone(judge(4, 1.0, 4.0, 0.5, 3.0))

    def run_through(self, make, count):
        class Made(Squares):
            def __getitem__(self, item):
                make()
                return item

        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            loader = Loader(wrap(Made(count)), 4, workers=2)
            list(loader)
        return loader._streams.watch, [one for one in caught if one.category is RuntimeWarning]

    def test_says_that_threads_cannot_help_and_only_then(self):
        def python():
            end = time.thread_time() + 0.01
            while time.thread_time() < end:
                sum(range(100))

        block = bytes(4 << 20)

        def released():
            hashlib.sha256(block).digest()

        for _ in range(5):  # undecidable while other programs use the processors
            watch, said = self.run_through(python, 120)
            if said:
                break
        self.assertTrue(watch.done)
        self.assertTrue(said or watch.verdict is None)
        for wait in (lambda: time.sleep(0.01), released):
            watch, said = self.run_through(wait, 200)
            self.assertFalse(said)


class WorkTest(unittest.TestCase):
    def test_samples_that_one_call_makes_share_its_time(self):
        work = Work()
        self.assertEqual(work.make(lambda items: sum(range(10**5)) and items, 4, "rows"), "rows")
        self.assertGreater(work.busy_ns, 0)
        self.assertEqual((work.samples, work.slowest_ns), (4, work.busy_ns // 4))


if __name__ == "__main__":
    unittest.main()
