"""Whether a call drew random numbers: from generators of the program's own, of torch, numpy and Python."""

import functools
import os
import random
import sys
import types
import unittest
from unittest import mock

import run_case

sys.path.insert(0, os.path.join(run_case.HERE, "..", "shim"))

from _unidle_shim.source import generators, purity  # noqa: E402

if run_case.HAS_TORCH:
    import numpy
    import torch

GLOBAL = random.Random(0)


class Held:
    numbers = random.Random(0)  # of the class

    def __init__(self, value):
        self.value = value


class Slotted:
    __slots__ = ("value",)

    def __init__(self, value):
        self.value = value


def named():
    return GLOBAL


def empty(value=None):
    """A function of a module without generators."""
    function = types.FunctionType(empty.__code__, {"__name__": "other"})
    function.__defaults__ = (value,)
    return function


@unittest.skipUnless(run_case.HAS_TORCH, "there is no torch")
class GeneratorsTest(unittest.TestCase):
    def assert_seen(self, holder, draw):
        before = generators.states(holder)
        self.assertFalse(generators.moved(before), holder)
        draw()
        self.assertTrue(generators.moved(before), holder)

    def test_each_kind(self):
        state = numpy.random.RandomState(0)
        own, new, bits = torch.Generator(), numpy.random.default_rng(0), numpy.random.MT19937(0)
        for held, draw in (
            (own, lambda: torch.rand(1, generator=own)),
            (new, new.random),
            (bits, bits.random_raw),
            (state, state.normal),
            (state, state.normal),  # the second number of a pair
        ):
            self.assert_seen([held], draw)
        self.assertFalse(generators.moved(generators.states([random.SystemRandom()])))

    def test_wherever_it_is(self):
        own, data = torch.Generator(), torch.utils.data.TensorDataset(torch.zeros(8, 1))
        sampler = torch.utils.data.RandomSampler(data, generator=own)
        for holder in (
            *([own], {"own": own}, Held(own), Slotted([own]), functools.partial(print, own), lambda: own),
            torch.utils.data.DataLoader(data, generator=own),
            torch.utils.data.DataLoader(data, batch_sampler=torch.utils.data.BatchSampler(sampler, 2, False)),
            torch.utils.data.DataLoader(torch.utils.data.Subset(Held(own), [0])),
            empty(own),
            empty(empty(Held((Held(own),)))),
        ):
            self.assert_seen(holder, lambda: torch.rand(1, generator=own))
        self.assert_seen(named, GLOBAL.random)
        self.assert_seen(Held.__init__, GLOBAL.random)
        self.assert_seen(Held(1), Held.numbers.random)

    def test_what_is_not_looked_through(self):
        self.assertEqual(generators.states(random, [1] * 1000, {"default": torch.default_generator}), [])
        self.assertEqual(generators.states([[index] for index in range(1_000_000)]), [])
        with mock.patch.object(generators, "_MOST", 100):
            self.assertIsNone(generators.states([[index] for index in range(200)]))

    def test_the_second_normal_number_of_numpy(self):
        numpy.random.normal()
        before = purity.random_states()
        drawn = numpy.random.normal()
        self.assertIn("numpy", purity.drew(before))
        self.assertIsNone(purity.draws(before, purity.random_states()))
        purity.restore(before)
        self.assertEqual(numpy.random.normal(), drawn)

    def test_generators_of_devices(self):
        device = torch.Generator()  # stands for one of a device
        with mock.patch.object(purity, "_of_devices", lambda: (device,)):
            before = purity.random_states()
            drawn = torch.rand(1, generator=device)
            self.assertIn("device", purity.drew(before))
            self.assertIsNone(purity.draws(before, purity.random_states()))
            purity.restore(before)
            self.assertEqual(torch.rand(1, generator=device), drawn)


if __name__ == "__main__":
    unittest.main()
