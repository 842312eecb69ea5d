"""How patches call our code and the program's, and what ends the observation of a program."""

import os
import pickle
import sys
import tempfile
import types
import unittest
from unittest import mock

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "shim"))

from _unidle_shim.host import guard, imports, patching  # noqa: E402
from _unidle_shim.loop.step_parts import Parts  # noqa: E402
from _unidle_shim.patches import waits  # noqa: E402

try:
    import torch
except ImportError:
    torch = None


class WatchTest(unittest.TestCase):
    def test_a_module_that_is_being_imported_is_given_when_it_is_whole(self):
        """safetensors.torch imports torch, whose import watches safetensors.torch."""
        seen = []
        self.addCleanup(setattr, sys, "meta_path", sys.meta_path[:])
        self.addCleanup(sys.modules.pop, "early", None)
        with tempfile.TemporaryDirectory() as folder, mock.patch.object(sys, "path", [folder, *sys.path]):
            with open(os.path.join(folder, "early.py"), "w") as file:
                file.write(
                    "from _unidle_shim.host import imports\nimports.watch('early', imports.told)\nlater = 1\n"
                )
            with (
                mock.patch.object(imports, "_watched", {}),
                mock.patch.object(imports, "told", lambda module: seen.append(module.later), create=True),
            ):
                imports.watch("early", lambda module: self.fail("it has a newer callback"))
                import early  # noqa: F401
        self.assertEqual(seen, [1])


class FailureTest(unittest.TestCase):
    def setUp(self):
        self.lines = []
        for name, value in (("on", True), ("failed", False), ("write_line", self.lines.append)):
            self.addCleanup(setattr, guard, name, getattr(guard, name))
            setattr(guard, name, value)

    def test_a_failure_of_ours_ends_the_observation_and_is_told_once(self):
        for _ in range(2):
            try:
                raise ValueError("broken")
            except ValueError as failure:
                self.assertIsNone(guard.caught(failure))
        self.assertEqual((guard.on, guard.failed, len(self.lines)), (False, True, 1))
        self.assertIn("ValueError: broken (test_patching.py:", self.lines[0])

    def test_an_interrupt_that_arrives_in_our_code_reaches_the_program(self):
        with self.assertRaises(KeyboardInterrupt):
            try:
                raise KeyboardInterrupt
            except BaseException as failure:
                guard.caught(failure)
        self.assertEqual((guard.on, guard.failed, self.lines), (True, False, []))


class PatchTest(unittest.TestCase):
    def setUp(self):
        self.addCleanup(patching.in_place.__setitem__, slice(None), list(patching.in_place))

    def test_a_call_that_raises_is_over_too(self):
        class Owner:
            def double(self, number):
                if number < 0:
                    raise ValueError(number)
                return 2 * number

        seen = []
        answers = iter((None, [7], "begun", "begun"))
        patching.around(
            Owner,
            "double",
            lambda args, kwargs: next(answers),
            lambda it, args, kwargs, result: seen.append((it, args[1:], result)),
        )
        self.assertEqual([Owner().double(1), Owner().double(2), Owner().double(3)], [2, 7, 6])
        self.assertRaises(ValueError, Owner().double, -1)
        self.assertEqual(seen, [("begun", (3,), 6), ("begun", (-1,), None)])

    def test_a_patched_function_is_pickled_by_its_name(self):
        def function():
            pass

        home = types.ModuleType("home_of_a_patched_function")
        function.__module__, function.__qualname__ = home.__name__, "function"
        home.function = function
        self.addCleanup(sys.modules.pop, home.__name__)
        sys.modules[home.__name__] = home
        public = types.SimpleNamespace(function=function)  # the module that programs import it from
        patching.put(public, "function", lambda: function())
        self.assertIsNot(public.function, function)
        self.assertIs(pickle.loads(pickle.dumps(public.function)), public.function)


class WaitsTest(unittest.TestCase):
    def test_flushes_are_no_waits_of_the_step(self):
        parts = Parts(0)
        loop = types.SimpleNamespace(parts=parts, validation=None, steps=1, total=0)
        watched = waits.Waits(types.SimpleNamespace(loop=loop, torch=None))
        for call, ns in (("gc", 5), ("empty_cache", 7), ("item", 11)):
            watched.take(call, 100, 100 + ns, ns, True, sys._getframe())
        self.assertEqual((parts.flush, parts.sync, parts.syncs, loop.total), (12, 11, 1, 23))

    @unittest.skipUnless(torch, "this Python has no torch")
    def test_a_loss_that_was_changed_is_another_number(self):
        loss = torch.ones(1)
        watched = waits.WatchedLoss(torch, loss, 3)
        self.assertTrue(watched.is_read_by(loss) and watched.is_read_by(loss.detach()))
        self.assertFalse(watched.is_read_by(torch.ones(1)))
        loss.add_(1)
        self.assertFalse(watched.is_read_by(loss))


if __name__ == "__main__":
    unittest.main()
