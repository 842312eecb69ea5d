"""The shim's memory does not grow with steps, batches, epochs or samples: object counts and tracemalloc,
without torch."""

import gc
import os
import shutil
import sys
import tempfile
import tracemalloc
import unittest
import weakref

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "shim"))

from _unidle_shim.facts import in_effect
from _unidle_shim.host import probe
from _unidle_shim.loop import step_events
from _unidle_shim.loop.step_parts import Parts
from _unidle_shim.patches import loaders
from test_loop import Loader, Module, Optimizer, Program  # noqa: E402


class Silent(probe.Writer):
    """A ring that is always full."""

    def room(self):
        return None


def grown(work, before, more):
    """Bytes that Python uses more after `more` rounds than after `before`. Both are beyond the point at which
    bounded structures are full."""
    gc.collect()
    tracemalloc.start()
    try:
        for _ in range(before):
            work()
        gc.collect()
        then = tracemalloc.get_traced_memory()[0]
        for _ in range(more):
            work()
        gc.collect()
        return tracemalloc.get_traced_memory()[0] - then
    finally:
        tracemalloc.stop()


class Plain:
    """Supports weak references."""


class MemoryTest(unittest.TestCase):
    # Variation of the allocator itself; a tuple or a number kept for each round would be a hundred times as
    # much.
    BYTES = 20_000

    def program(self):
        program = Program()
        program.loop.ring = Silent()
        return program

    def test_batches_that_feed_no_step(self):
        program, loader = self.program(), Loader()
        self.assertLess(grown(lambda: program.fetch(loader), 10_000, 40_000), self.BYTES)
        self.assertLess(len(program.loop.ahead), 10_000)

    def test_steps_are_told_rightly_after_such_batches(self):
        program, loader, model, optimizer = Program(), Loader(), Module(), Optimizer()
        for _ in range(10_000):
            program.fetch(loader)
        for _ in range(5):
            program.fetch(loader)
            program.forward(model)
            program.backward()
            program.step(optimizer)
        program.loop.finish()
        self.assertEqual([step.samples for step in program.steps()[1:]], [4] * 4)

    def test_steps(self):
        program, loader, model, optimizer = self.program(), Loader(), Module(), Optimizer()

        def iteration():
            program.fetch(loader)
            program.forward(model)
            program.backward()
            program.step(optimizer)

        self.assertLess(grown(iteration, 5_000, 20_000), self.BYTES)

    def test_modules_and_optimisers_of_their_own_in_every_step(self):
        program, loader, alive = self.program(), Loader(), []

        def iteration():
            alive.append((Module(), Optimizer()))
            del alive[:-50]
            program.fetch(loader)
            program.forward(alive[-1][0])
            program.backward()
            program.step(alive[-1][1])

        for _ in range(12_000):
            iteration()
        self.assertLessEqual(len(program.loop.models), 5_000)

    def test_a_real_ring(self):
        folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, folder)
        os.environ["UNIDLE_PROBE_DIR"] = folder
        self.addCleanup(os.environ.pop, "UNIDLE_PROBE_DIR")
        ring = probe.Ring("worker")
        parts = Parts(1)
        self.assertLess(grown(lambda: step_events.write(ring, parts, 1, 2, 3, 4), 2_000, 20_000), self.BYTES)

    def test_optimisers_that_are_gone(self):
        book = in_effect.Facts.__new__(in_effect.Facts)
        book.optimizers, book.made_at = [], {}
        for _ in range(5_000):
            made = Plain()
            made.param_groups = [{"params": []}]
            book.optimizer_made(made, "train.py:3")
        self.assertLess(len(book.optimizers), 200)
        self.assertEqual(book.living_optimizers(), [made])

    def test_loaders_that_are_gone(self):
        class State:
            all_loaders = []

        for number in range(3_000):
            real = Plain()
            found = loaders._successor(
                State, "train.py:%d" % number, ("Dataset", number, 0, "Sampler"), of_package=False
            )
            found.real = weakref.ref(real)
            del real
        self.assertLess(len(State.all_loaders), 1_000)


if __name__ == "__main__":
    unittest.main()
