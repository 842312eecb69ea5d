"""A short version of cache_kills.py; the long one is tools/attack.sh cache."""

import unittest

import killing
import package

package.needs("numpy")


class CacheKillsTest(unittest.TestCase):
    def test_a_cache_outlives_any_kill(self):
        killing.check_shortly(self, "cache_kills.py")


if __name__ == "__main__":
    unittest.main()
