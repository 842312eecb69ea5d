"""The first batch of a trial that requests the longest samples."""

import os
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from run_case import HAS_TORCH, HERE  # noqa: E402

PROGRAM = """
import sys, torch
sys.path.insert(0, %r)
from torch.utils.data import DataLoader, IterableDataset, Dataset, SubsetRandomSampler
from _unidle_shim.trial import longest_batch
notes = []
longest_batch.write_line = notes.append
longest_batch.install()
class Texts(Dataset):
    def __len__(self):
        return 50
    def __getitem__(self, i):
        return {"words": torch.zeros(i * 7 %% 50), "label": 1}
class Stream(IterableDataset):
    def __iter__(self):
        return iter(range(8))
def lengths(**options):
    return [[len(one["words"]) for one in batch] for batch in DataLoader(Texts(), collate_fn=list, **options)]
%s
"""


@unittest.skipUnless(HAS_TORCH, "this Python has no torch")
class LongestTest(unittest.TestCase):
    def holds(self, text):
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM % (os.path.join(HERE, "..", "shim"), text)],
            capture_output=True,
            text=True,
            timeout=120,
        )
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_the_first_batch_has_them(self):
        self.holds("""
found = lengths(batch_size=4)
assert found[0] == [49, 48, 47, 46], found
assert len(found) == 13 and found[1] == [28, 35, 42, 49], found
assert notes == ['"type":"longest","samples":50,"batch":4,"longest":50,"usual":25'], notes
assert lengths(batch_size=4, shuffle=True, num_workers=2)[0] == [49, 48, 47, 46]
""")

    def test_only_of_those_that_the_sampler_draws(self):
        self.holds("""
found = lengths(batch_size=2, sampler=SubsetRandomSampler([1, 2, 3, 4]))
assert found[0] == [28, 21], found
""")

    def test_where_there_is_no_choice_nothing_changes(self):
        self.holds("""
assert [batch.tolist() for batch in DataLoader(Stream(), batch_size=4)] == [[0, 1, 2, 3], [4, 5, 6, 7]]
tensors = torch.utils.data.TensorDataset(torch.arange(6))
assert [batch[0].tolist() for batch in DataLoader(tensors, batch_size=3)] == [[0, 1, 2], [3, 4, 5]]
assert next(iter(DataLoader(Texts(), batch_size=None)))["label"] == 1
assert notes == [], notes
""")


if __name__ == "__main__":
    unittest.main()
