"""Our own computations are not seen by torch's modes, and a default device, which is a mode, does not move
them; no handler of the shim keeps an exception of the program's."""

import ast
import os
import random
import signal
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
SHIM = os.path.join(HERE, "..", "shim")
sys.path.insert(0, HERE)
sys.path.insert(0, SHIM)

from _unidle_shim.host import exception_origin  # noqa: E402
from run_case import HAS_TORCH  # noqa: E402

BROAD = ("Exception", "BaseException")
# No code of the program's runs there yet, or ever raises there.
ALONE = ("sitecustomize.py", "facts/stack_sampler.py", "host/startup.py")


def broad_handlers():
    """(place, names that it calls) of each `except` clause that catches every exception."""
    for folder, _, names in os.walk(SHIM):
        for name in names:
            path = os.path.join(folder, name)
            if name.endswith(".py") and not path.endswith(ALONE):
                with open(path) as file:
                    tree = ast.parse(file.read())
                for node in ast.walk(tree):
                    kind = getattr(node, "type", None)
                    if isinstance(node, ast.ExceptHandler) and (
                        kind is None or getattr(kind, "id", "") in BROAD
                    ):
                        calls = {
                            getattr(one.func, "id", getattr(one.func, "attr", ""))
                            for one in ast.walk(node)
                            if isinstance(one, ast.Call)
                        }
                        raises = any(isinstance(one, ast.Raise) for one in ast.walk(node))
                        yield "%s:%d" % (os.path.relpath(path, SHIM), node.lineno), calls, raises


class HandlersTest(unittest.TestCase):
    def test_every_broad_handler_hands_on_what_is_the_programs(self):
        handlers = list(broad_handlers())
        self.assertGreater(len(handlers), 60)
        hands_on = {"caught", "pass_on", "_fail"}  # the last calls pass_on
        self.assertEqual(
            [place for place, calls, raises in handlers if not raises and not calls & hands_on], []
        )

    def test_what_a_signal_handler_raises_is_the_programs(self):
        def handler(number, frame):
            raise ValueError("a late signal")

        def interrupted():
            signal.raise_signal(signal.SIGUSR1)

        self.addCleanup(signal.signal, signal.SIGUSR1, signal.signal(signal.SIGUSR1, handler))
        try:
            interrupted()
        except ValueError as failure:
            raised, trace = failure, failure.__traceback__
        while trace.tb_frame.f_code is not handler.__code__:
            trace = trace.tb_next  # imports remove the interrupted frames, too
        self.assertTrue(exception_origin.is_programs(raised.with_traceback(trace)))
        self.assertEqual(exception_origin.signal_of(raised), signal.SIGUSR1)


@unittest.skipUnless(HAS_TORCH, "there is no torch")
class ModesTest(unittest.TestCase):
    def work(self):
        import torch
        from _unidle_shim.host import shapes
        from _unidle_shim.samples import packing, whole_batches
        from _unidle_shim.source import purity

        before = purity.random_states()
        torch.random.default_generator.seed()
        random.random()
        purity.restore(before)
        self.assertEqual(purity.random_states(), before)
        purity.draw(2)
        self.assertEqual(purity.draws(before, purity.random_states()), 2)
        purity.restore(before)
        sample = {"x": self.tensor, "y": [1, 2.5]}
        again = packing.unpacked(packing.packed(sample))
        self.assertEqual(packing.packed(again), packing.packed(sample))
        with shapes.hidden_queries(torch):
            self.assertEqual(again["x"].device.type, "cpu")
        whole_batches.rows_of(whole_batches.tensors([self.tensor], 4), [0, 2])

    def setUp(self):
        if HAS_TORCH:
            import numpy  # noqa: F401
            import torch

            self.tensor = torch.arange(12.0).reshape(4, 3)

    def test_modes_see_nothing(self):
        import torch
        from torch.overrides import TorchFunctionMode
        from torch.utils._python_dispatch import TorchDispatchMode

        seen = []

        class Functions(TorchFunctionMode):
            def __torch_function__(self, function, types, args=(), kwargs=None):
                seen.append(function)
                return function(*args, **(kwargs or {}))

        class Operations(TorchDispatchMode):
            def __torch_dispatch__(self, function, types, args=(), kwargs=None):
                seen.append(function)
                return function(*args, **(kwargs or {}))

        with Functions(), Operations():
            self.work()
            ours = list(seen)
            torch.ones(1).add(1)
        self.assertEqual([str(one) for one in ours if "seed" not in str(one)], [])
        self.assertGreater(len(seen), len(ours))

    @unittest.skipUnless(HAS_TORCH and hasattr(__import__("torch"), "set_default_device"), "torch before 2.0")
    def test_a_default_device_moves_nothing(self):
        import torch

        with torch.device("meta"):
            self.assertEqual(torch.empty(1).device.type, "meta")
            self.work()


if __name__ == "__main__":
    unittest.main()
