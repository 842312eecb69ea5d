"""The patterns that the background thread finds in lines of the program's source, without torch."""

import os
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "shim"))

from _unidle_shim.facts import stack_sampler  # noqa: E402


def least_s(line):
    """Processor time of one search, the minimum of a few."""
    times = []
    for _ in range(5):
        begin = time.process_time()
        stack_sampler._READS.search(line)
        times.append(time.process_time() - begin)
    return min(times)


class Reads(unittest.TestCase):
    def test_lines_that_read(self):
        for line in (
            "x, y = images[k], labels[k]",
            "x = rows[order[k]]",
            "x = np.load (name)",
            "i = torch.randint(9, (4,))",
        ):
            self.assertTrue(stack_sampler._READS.search(line), line)
        for line in ("loss.backward()", "x = []", "# already (done)", "x = a * b"):
            self.assertFalse(stack_sampler._READS.search(line), line)

    def test_long_lines_cost_what_each_character_costs(self):
        for part in ("[", "read", "read ", " "):
            few, many = (least_s(part * times) for times in (4000, 64000))
            self.assertLess(many, 100 * max(few, 1e-5), "{!r}: 16 is linear, 256 quadratic".format(part))


if __name__ == "__main__":
    unittest.main()
