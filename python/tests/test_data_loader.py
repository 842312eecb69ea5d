"""unidle.data.Loader: its batches and their order, resuming, and its memory."""

import copy
import gc
import os
import pickle
import signal
import subprocess
import sys
import threading
import unittest
from unittest import mock

import package

import unidle
from unidle.data import Loader, arrays

np, torch = package.needs("numpy", "torch")


def numbers(count, width=3):
    """Rows that contain their number, and a label."""
    rows = np.arange(count * width, dtype=np.float32).reshape(count, width)
    return arrays(rows, np.arange(count), names=["row", "label"])


def labels(loader):
    return [batch[1].tolist() for batch in loader]


def flat(batches):
    return [value for batch in batches for value in batch]


class OrderTest(unittest.TestCase):
    def test_an_epoch_has_every_sample_once_and_ends_with_a_short_batch(self):
        loader = Loader(numbers(23), batch_size=5, workers=2)
        for _ in range(3):
            batches = labels(loader)
            self.assertEqual([len(batch) for batch in batches], [5, 5, 5, 5, 3])
            self.assertEqual(len(batches), len(loader))
            self.assertEqual(sorted(flat(batches)), list(range(23)))

    def test_drop_last_leaves_the_short_batch_out(self):
        loader = Loader(numbers(23), batch_size=5, drop_last=True, workers=1)
        self.assertEqual([len(batch) for batch in labels(loader)], [5] * 4)
        self.assertEqual(len(loader), 4)
        self.assertEqual(len(labels(loader)), 4)

    def test_without_shuffle_samples_come_in_their_order(self):
        loader = Loader(numbers(23), batch_size=5, shuffle=False, workers=2)
        self.assertEqual(flat(labels(loader)), list(range(23)))
        self.assertEqual(flat(labels(loader)), list(range(23)))

    def test_every_epoch_has_an_order_of_its_own_that_the_seed_decides(self):
        first, second = labels(Loader(numbers(50), 7, seed=1)), labels(Loader(numbers(50), 7, seed=1))
        self.assertEqual(first, second)
        self.assertNotEqual(first, labels(Loader(numbers(50), 7, seed=2)))
        loader = Loader(numbers(50), 7, seed=1)
        epochs = [labels(loader) for _ in range(3)]
        self.assertEqual(epochs[0], first)
        self.assertNotEqual(epochs[0], epochs[1])

    def test_any_number_of_workers_delivers_the_same(self):
        expected = [labels(Loader(numbers(101), 8, workers=0)) for _ in range(2)]
        for workers in (1, 2, 5, None):
            self.assertEqual([labels(Loader(numbers(101), 8, workers=workers)) for _ in range(2)], expected)

    def test_set_epoch_names_the_next_one(self):
        plain = Loader(numbers(30), 4)
        epochs = [labels(plain) for _ in range(4)]
        named = Loader(numbers(30), 4)
        for epoch in (2, 0, 3, 3):
            named.set_epoch(epoch)
            self.assertEqual(labels(named), epochs[epoch])
        self.assertEqual(named.epoch, 4)

    def test_an_iteration_that_nothing_was_taken_of_does_not_count(self):
        loader, expected = Loader(numbers(20), 5, seed=1), Loader(numbers(20), 5, seed=1)
        for _ in range(2):
            for _ in range(3):
                iter(loader)
            self.assertEqual(labels(loader), labels(expected))

    def test_an_iteration_that_was_left_is_followed_by_the_next_epoch(self):
        plain = Loader(numbers(30), 4)
        epochs = [labels(plain) for _ in range(3)]
        left = Loader(numbers(30), 4)
        for _ in left:
            break
        self.assertEqual(labels(left), epochs[1])
        old = iter(left)
        next(old)
        labels(left)
        with self.assertRaises(unidle.UsageError):
            next(old)

    def test_ranks_share_one_order_for_any_world(self):
        whole = flat(labels(Loader(numbers(23), 1, rank=0, world=1)))
        for world in (2, 3, 4):
            ranks = [flat(labels(Loader(numbers(23), 4, rank=rank, world=world))) for rank in range(world)]
            together = [value for several in zip(*ranks) for value in several]
            self.assertEqual(together[:23], whole)
            self.assertEqual(together[23:], whole[: len(together) - 23])
            self.assertEqual(len({len(rank) for rank in ranks}), 1)
            dropped = [
                flat(labels(Loader(numbers(23), 1, drop_last=True, rank=rank, world=world)))
                for rank in range(world)
            ]
            together = [value for several in zip(*dropped) for value in several]
            self.assertEqual(together, whole[: 23 // world * world])

    def test_numbers_of_numpy_are_numbers(self):
        loader = Loader(numbers(20), np.int64(5), seed=np.uint8(3))
        self.assertEqual(labels(loader), labels(Loader(numbers(20), 5, seed=3)))

    def test_ranks_are_those_of_the_environment(self):
        os.environ.update(RANK="1", WORLD_SIZE="3")
        try:
            loader = Loader(numbers(30), 5)
        finally:
            del os.environ["RANK"], os.environ["WORLD_SIZE"]
        self.assertEqual((loader.rank, loader.world, len(loader)), (1, 3, 2))

    def test_a_subset_is_a_source(self):
        even = numbers(20).subset(range(0, 20, 2))
        self.assertEqual(len(even), 10)
        self.assertEqual(sorted(flat(labels(Loader(even, 3)))), list(range(0, 20, 2)))
        twice = even.subset([9, 9, 0])
        self.assertEqual(flat(labels(Loader(twice, 2, shuffle=False))), [18, 18, 0])
        with self.assertRaises(unidle.UsageError):
            numbers(20).subset([20])


class MemoryTest(unittest.TestCase):
    def test_is_given_back_once_when_a_signal_comes_after_torch_has_it(self):
        from torch.utils import dlpack

        taken = dlpack.from_dlpack

        def interrupted(capsule):
            taken(capsule)
            raise KeyboardInterrupt

        for workers in (0, 2):
            with mock.patch.object(dlpack, "from_dlpack", interrupted):
                with self.assertRaises(KeyboardInterrupt):
                    next(iter(Loader(numbers(10), 2, workers=workers)))

    def test_kept_batches_keep_their_values(self):
        for kind in ("torch", "numpy"):
            loader = Loader(numbers(100), 5, shuffle=False, workers=2, tensors=kind)
            kept = [batch for _ in range(4) for batch in loader]
            loader.close()
            del loader
            gc.collect()
            for number, batch in enumerate(kept):
                first = number % 20 * 5
                self.assertEqual(batch[1].tolist(), list(range(first, first + 5)))

    def test_batches_are_the_users_to_change(self):
        loader = Loader(numbers(20), 5, shuffle=False)
        for batch in loader:
            batch[0].mul_(0)
        self.assertEqual(flat(labels(loader)), list(range(20)))
        for batch in Loader(numbers(20), 5, tensors="numpy"):
            batch[0][:] = 0

    def test_memory_goes_round(self):
        loader = Loader(numbers(1000, 64), 10, workers=2)
        places = {batch[0].data_ptr() for _ in range(5) for batch in loader}
        self.assertLess(len(places), 20)

    def test_memory_is_given_back_from_any_thread(self):
        loader = Loader(numbers(100), 5)
        kept = list(loader)
        thread = threading.Thread(target=kept.clear)
        thread.start()
        thread.join()
        self.assertEqual(len(list(loader)), 20)

    def test_types_and_shapes_are_those_of_the_arrays(self):
        columns = [
            np.arange(12).reshape(6, 2).astype(kind)
            for kind in "bool int8 uint8 int16 int32 int64 float16 float32 float64".split()
        ]
        batch = next(iter(Loader(arrays(*columns), 6, shuffle=False)))
        for tensor, column in zip(batch, columns):
            self.assertTrue(torch.equal(tensor, torch.from_numpy(column)))
        scalars = next(iter(Loader(arrays(torch.arange(5)), 5, shuffle=False)))[0]
        self.assertEqual(tuple(scalars.shape), (5,))

    def test_rows_of_views_are_taken_where_they_lie(self):
        table = np.arange(60, dtype=np.float32).reshape(10, 6)
        swapped = table.astype(">f4")
        for view in (
            table[::2],
            table[::-1],
            table[:, :3],
            table.T,
            table[:, ::2],
            swapped,
            torch.from_numpy(table),
        ):
            got = np.concatenate([b[0] for b in Loader(arrays(view), 3, shuffle=False, tensors="numpy")])
            np.testing.assert_array_equal(got, np.asarray(view))


class ErrorTest(unittest.TestCase):
    def test_options_that_make_no_sense_are_refused_at_once(self):
        source = numbers(10)
        for options in (
            {"batch_size": 0},
            {"workers": -2, "batch_size": 0},
            {"rank": 3, "world": 2},
            {"rank": 1},
            {"on_error": "ignore"},
            {"tensors": "jax"},
            {"prefetch": 0},
        ):
            with self.assertRaises(unidle.UsageError, msg=str(options)):
                Loader(source, **options)
        with self.assertRaises(ValueError):
            Loader([1, 2, 3])
        with self.assertRaises(unidle.UsageError):
            arrays(np.arange(3), np.arange(4))
        with self.assertRaises(unidle.UsageError):
            arrays(np.array(["text"]))

    @unittest.skipUnless(hasattr(os, "fork"), "needs fork")
    def test_a_forked_process_is_told_and_does_not_hang(self):
        program = f"""
import sys; sys.path.insert(0, {str(package.BUILD / "share" / "unidle" / "python")!r})
import os, numpy as np, unidle
from unidle.data import Loader, arrays
loader = Loader(arrays(np.arange(1000)), 5, workers=2)
batches = iter(loader)
held = next(batches)
child = os.fork()
if child == 0:
    try:
        next(batches)
    except unidle.ForkedError as error:
        assert "forked" in str(error)
        del held, batches, loader
        own = Loader(arrays(np.arange(10)), 5, workers=1)
        assert len(list(own)) == 2
        sys.exit(7)
    sys.exit(1)
status = os.waitpid(child, 0)[1]
assert os.waitstatus_to_exitcode(status) == 7, status
assert len(list(batches)) == 199
"""
        subprocess.run([sys.executable, "-W", "ignore", "-c", program], check=True, timeout=60)

    @unittest.skipUnless(hasattr(os, "fork"), "needs fork")
    def test_a_forked_process_is_told_whatever_it_does_with_loader_and_source(self):
        program = f"""
import sys; sys.path.insert(0, {str(package.BUILD / "share" / "unidle" / "python")!r})
import os, numpy as np, unidle
from unidle.data import Loader, arrays
def refuses(call):
    try:
        call()
    except unidle.ForkedError as error:
        return "forked" in str(error)
source, idle = arrays(np.arange(1000)), arrays(np.arange(10))
part = source.subset(range(500))
loader = Loader(part, 5, workers=2)
closed = Loader(idle, 5, workers=2)
closed.close()
before = len(loader)
child = os.fork()
if child == 0:
    told = refuses(lambda: iter(loader).__next__()) and refuses(lambda: Loader(source, 5, workers=1))
    told = told and refuses(lambda: Loader(source.subset([1]), 1, workers=0)) and len(loader) == before
    del loader
    told = told and refuses(lambda: Loader(part, 5, workers=1))
    assert len(list(Loader(idle, 5, workers=1))) == 2  # nobody read it meanwhile
    sys.exit(7 if told else 1)
status = os.waitpid(child, 0)[1]
assert os.waitstatus_to_exitcode(status) == 7, status
assert len(list(loader)) == before
"""
        subprocess.run([sys.executable, "-W", "ignore", "-c", program], check=True, timeout=60)

    def test_a_loader_is_closed_by_its_context(self):
        with Loader(numbers(20), 5, workers=2) as loader:
            batches = iter(loader)
            next(batches)
        with self.assertRaises(unidle.UsageError):
            next(batches)
        self.assertEqual(len(labels(loader)), 4)


class MisuseTest(unittest.TestCase):
    def test_neither_sources_nor_loaders_are_copied(self):
        source = numbers(20)
        for what in (source, Loader(source, 5)):
            for copied in (pickle.dumps, copy.copy, copy.deepcopy):
                with self.assertRaisesRegex(TypeError, "again in the other"):
                    copied(what)

    def test_a_signal_handler_may_close_it_while_a_batch_is_awaited(self):
        loader = Loader(numbers(100_000), 5, workers=2)
        stopped = []

        def handler(*_):
            stopped.append(True)
            loader.close()

        before = signal.signal(signal.SIGALRM, handler)
        try:
            for _ in range(20):
                stopped.clear()
                signal.setitimer(signal.ITIMER_REAL, 0.005)
                with self.assertRaises(unidle.UsageError):
                    while True:
                        for _batch in loader:
                            if stopped:
                                next(iter(loader))
                                raise unidle.UsageError("closed between two batches")
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)

    def test_threads_that_share_a_loader_get_batches_or_an_error(self):
        loader = Loader(numbers(2000), 5, workers=2)
        ends = []

        def run():
            try:
                for _ in range(20):
                    list(loader)
                ends.append(None)
            except unidle.UsageError as error:
                ends.append(error)

        threads = [threading.Thread(target=run) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(len(ends), 3)


class TransformTest(unittest.TestCase):
    def test_what_the_batch_transform_returns_is_delivered(self):
        loader = Loader(numbers(20), 5, batch_transform=lambda batch: {"x": batch[0], "y": batch[1]})
        for batch in loader:
            self.assertEqual(set(batch), {"x", "y"})

    def test_the_device_is_where_batches_are(self):
        for batch in Loader(numbers(20), 5, device="cpu"):
            self.assertEqual(batch[0].device.type, "cpu")


if __name__ == "__main__":
    unittest.main()
