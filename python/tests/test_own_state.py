"""Data sets with their own random generator or counter, which making a sample again would change."""

import os
import random
import sys
import textwrap
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import run_case  # noqa: E402
from run_case import HAS_TORCH, HERE  # noqa: E402

sys.path.insert(0, os.path.join(HERE, "..", "shim"))

from _unidle_shim.samples import own_state  # noqa: E402


class Holder:
    def __init__(self, **attributes):
        self.__dict__.update(attributes)


class FoundTest(unittest.TestCase):
    def test_wherever_it_is(self):
        mine = random.Random(0)
        self.assertIn("random generator", own_state.why(Holder(rng=mine)))
        self.assertIn("random generator", own_state.why(Holder(dataset=Holder(transform=Holder(rng=mine)))))
        self.assertIn("random generator", own_state.why(Holder(transforms=[Holder(), Holder(rng=mine)])))

    def test_none(self):
        circle = Holder(rows=list(range(10_000)), name="x")
        circle.itself = circle
        self.assertIsNone(own_state.why(circle))
        self.assertIsNone(own_state.why([1, 2, 3]))


@unittest.skipUnless(HAS_TORCH, "this Python has no torch")
class AppliedTest(run_case.RunCase):
    def test_training_is_that_without_us(self):
        program = """
            import multiprocessing, random, time, numpy, torch
            from torch.utils.data import DataLoader, Dataset
            class Data(Dataset):
                def __init__(self):
                    self.x = torch.arange(256.0).reshape(64, 4) / 256
                    self.epoch, %s = multiprocessing.Value("i", 0) if %s else 0, %s
                def __len__(self):
                    return 64
                def __getitem__(self, i):
                    end = time.perf_counter() + 3e-4
                    while time.perf_counter() < end:
                        pass
                    return self.x[i] + self.changes()
                def changes(self):
                    %s
            torch.manual_seed(0)
            net, data = torch.nn.Linear(4, 1), Data()
            optimizer = torch.optim.SGD(net.parameters(), 0.05)
            loader = DataLoader(data, 8)
            for epoch in range(3):
                if data.epoch != 0:
                    data.epoch.value = epoch
                for x in loader:
                    loss = (net(x) - 1).square().mean()
                    optimizer.zero_grad()
                    loss.backward()
                    optimizer.step()
                print(repr(loss.item()))
        """
        for held, shared, value, changes, why in (
            ("self.rng", False, "random.Random(0)", "return self.rng.random()", "random generator"),
            (
                "self.count",
                False,
                "numpy.zeros(2)",
                "self.count[0] += 1; return self.count[0] % 7",
                "the dataset changes: count",
            ),
            ("self.other", True, "0", "return self.epoch.value", "processes share"),
        ):
            text = textwrap.dedent(program) % (held, shared, value, changes)
            bare = self.bare(sys.executable, "-c", text)
            for change in ("cache.features=memory", "loader.gather=true"):
                with self.subTest(why, change=change):
                    done = self.observed(sys.executable, "-c", text, options=("--apply", change))
                    self.assertEqual((done.returncode, done.stdout), (0, bare.stdout), done.stderr)
                    said = [
                        note for note in self.record.notes("apply") if note["status"].startswith("refused")
                    ]
                    self.assertTrue(said)
                    if change == "cache.features=memory":
                        self.assertIn(why, said[0]["why"])


if __name__ == "__main__":
    unittest.main()
