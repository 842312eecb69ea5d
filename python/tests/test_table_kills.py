"""A short version of table_kills.py; the long one is tools/attack.sh table."""

import unittest

import killing
import package

package.needs("numpy")


class TableKillsTest(unittest.TestCase):
    def test_no_kill_makes_a_wrong_table(self):
        killing.check_shortly(self, "table_kills.py")


if __name__ == "__main__":
    unittest.main()
