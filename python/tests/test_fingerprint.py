"""The comparable form of an object: whether a call has changed it."""

import collections
import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "shim"))

from _unidle_shim.source import fingerprint  # noqa: E402


class Held:
    def __init__(self, value=None):
        self.value = value


class Slotted:
    __slots__ = ("missing", "value")

    def __init__(self, value):
        self.value = value


def nested(depth):
    value = Held(1)
    for _ in range(depth):
        value = Held([value])
    return value


class FingerprintTest(unittest.TestCase):
    def test_what_stays_the_same_has_one_form(self):
        for value in [nested(depth) for depth in range(6)] + [Slotted(Held()), collections.deque([Held()])]:
            kept = []  # so that a temporary of ours does not get the same address twice
            for _ in range(20):
                kept.append((fingerprint.of(value), {}, object()))
            self.assertEqual(len({repr(form) for form, _, _ in kept}), 1, value)

    def test_changes_are_seen(self):
        def append(value):
            value.append(2)

        def assign(value):
            value.value = 2

        for value, change in (
            ([1], append),
            (collections.deque([1, 1], maxlen=2), append),
            (Held(1), assign),
            (Slotted(1), assign),
            ({1, 2}, lambda value: (value.remove(2), value.add(3))),
            (set(range(1000)), lambda value: (value.remove(2), value.add(-3))),
        ):
            self.assert_seen(value, change)

    def assert_seen(self, value, change):
        before = fingerprint.of(value)
        self.assertEqual(before, fingerprint.of(value), value)
        change(value)
        self.assertNotEqual(before, fingerprint.of(value), value)


if __name__ == "__main__":
    unittest.main()
