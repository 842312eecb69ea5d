"""The shim writes exactly the events that docs/probe-format.md lists."""

import ast
import os
import sys
import unittest

import event_types

_SHIM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "shim")
sys.path[:0] = [_SHIM, os.path.dirname(_SHIM)]

from _unidle_shim.host import event_kinds  # noqa: E402

from unidle import _observed  # noqa: E402


def _emits():
    """Each call `....ring.emit(event_kinds.KIND, ...)` or `ring.emit(KIND, ...)` of the shim: file:line,
    kind, its arguments."""
    for folder, _, files in os.walk(os.path.join(_SHIM, "_unidle_shim")):
        for name in files:
            if not name.endswith(".py"):
                continue
            path = os.path.join(folder, name)
            with open(path, encoding="utf-8") as file:
                tree = ast.parse(file.read())
            for node in ast.walk(tree):
                if (
                    isinstance(node, ast.Call)
                    and isinstance(node.func, ast.Attribute)
                    and node.func.attr == "emit"
                    and node.args
                ):
                    kind = node.args[0]
                    kind = kind.attr if isinstance(kind, ast.Attribute) else getattr(kind, "id", "")
                    if kind in event_types.KINDS:
                        yield "%s:%d" % (path, node.lineno), event_types.KINDS[kind], node.args


class EventTypes(unittest.TestCase):
    def test_kinds_have_their_numbers(self):
        named = {name: number for name, number in vars(event_kinds).items() if name.isupper()}
        self.assertEqual({name: named[name] for name in event_types.KINDS}, event_types.KINDS)

    def test_what_programs_tell_themselves_has_its_numbers(self):
        told = {"STARTUP": _observed._STARTUP}
        told.update((name.upper(), kind) for name, kind in _observed._SPANS.items())
        self.assertEqual(told, {name: event_types.KINDS[name] for name in told})
        seen = {"SEEN_" + name.upper(): bit for name, bit in _observed._PARTS.items() if bit}
        seen["SEEN_LOSS"] = _observed._LOSS_SEEN
        self.assertEqual(seen, {name: bit for name, bit in vars(event_kinds).items() if "SEEN" in name})
        self.assertEqual([name for name, _ in _observed._Step._fields_], list(event_types.Step._fields))

    def test_calls_say_nothing_that_their_kind_has_no_field_for(self):
        found = list(_emits())
        self.assertGreaterEqual(len(found), 6)
        for place, kind, arguments in found:
            said = [
                0 if isinstance(argument, ast.Constant) and argument.value == 0 else 1
                for argument in arguments[4:]
            ]
            with self.subTest(place):
                event_types.check(kind, *said)

    def test_the_check_can_fail(self):
        event_types.check(event_kinds.SAMPLE, 4, 1, 0.5)
        with self.assertRaises(AssertionError):
            event_types.check(event_kinds.VALIDATE, 4, 1)
        with self.assertRaises(AssertionError):
            event_types.check(event_kinds.CHECKPOINT, 1)


if __name__ == "__main__":
    unittest.main()
