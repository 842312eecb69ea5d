"""Data sets with a random generator of their own: a sample that is made again would advance it."""

import os
import random
import subprocess
import sys
import textwrap
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import test_run  # noqa: E402
from test_run import HAS_TORCH, HERE  # noqa: E402

sys.path.insert(0, os.path.join(HERE, "..", "shim"))

from _unidle_shim.samples import own_generator  # noqa: E402


class Holder:
    def __init__(self, **attributes):
        self.__dict__.update(attributes)


class FoundTest(unittest.TestCase):
    def test_wherever_it_is(self):
        mine = random.Random(0)
        self.assertTrue(own_generator.found_in(Holder(rng=mine)))
        self.assertTrue(own_generator.found_in(Holder(dataset=Holder(transform=Holder(rng=mine)))))
        self.assertTrue(own_generator.found_in(Holder(transforms=[Holder(), Holder(rng=mine)])))

    def test_none(self):
        circle = Holder(rows=list(range(10_000)), name="x")
        circle.itself = circle
        self.assertFalse(own_generator.found_in(circle))
        self.assertFalse(own_generator.found_in([1, 2, 3]))


@unittest.skipUnless(HAS_TORCH, "this Python has no torch")
class AppliedTest(unittest.TestCase):
    setUp, observed = test_run.RunTest.setUp, test_run.RunTest.observed

    def test_training_is_that_without_us(self):
        program = textwrap.dedent("""
            import random, time, torch
            from torch.utils.data import DataLoader, Dataset
            class Data(Dataset):
                def __init__(self):
                    self.x, self.rng = torch.arange(256.0).reshape(64, 4) / 256, random.Random(0)
                def __len__(self):
                    return 64
                def __getitem__(self, i):
                    end = time.perf_counter() + 3e-4
                    while time.perf_counter() < end:
                        pass
                    return self.x[i] + self.rng.random()
            torch.manual_seed(0)
            net = torch.nn.Linear(4, 1)
            optimizer = torch.optim.SGD(net.parameters(), 0.05)
            for epoch in range(3):
                for x in DataLoader(data, 8, shuffle=True) if epoch else DataLoader(data := Data(), 8):
                    loss = (net(x) - 1).square().mean()
                    optimizer.zero_grad()
                    loss.backward()
                    optimizer.step()
                print(repr(loss.item()))
        """)
        bare = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, env=test_run.environment()
        )
        for change in ("cache.features=memory", "loader.gather=true"):
            done = self.observed(sys.executable, "-c", program, options=("--apply", change))
            self.assertEqual((done.returncode, done.stdout), (0, bare.stdout), change)
            note = self.record.notes("apply")[-1]
            self.assertEqual((note["status"][:7], note["why"]), ("refused", own_generator.WHY))


if __name__ == "__main__":
    unittest.main()
