"""Which classes are patched: the policy alone, and programs that use another model late."""

import os
import pickle
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "shim"))

import run_case  # noqa: E402
from _unidle_shim.patches import module_classes  # noqa: E402
from run_case import HAS_TORCH, HERE, UNIDLE  # noqa: E402

MODELS = os.path.join(HERE, "programs", "models.py")


class Module:
    training = True

    def __call__(self):
        return "bare"


BARE = Module.__call__


class PolicyTest(unittest.TestCase):
    def setUp(self):
        self.calls = []

        def general(module):
            if self.classes.watching:
                self.classes.seen(module, self.step)
            return BARE(module)

        def narrow(module):
            self.calls.append(type(module))
            return Module.__call__(module)

        self.addCleanup(setattr, Module, "__call__", BARE)
        self.classes, self.general, self.step = (
            module_classes.ModuleClasses(Module, general, narrow, False),
            general,
            0,
        )
        Module.__call__ = general

    def steps(self, count, *modules):
        for _ in range(count):
            for module in modules:
                self.assertEqual(module(), "bare")
            self.step += 1

    def test_after_some_steps_only_the_class_is_patched(self):
        class Net(Module):
            pass

        self.steps(20, Net())
        self.assertIs(vars(Module)["__call__"], BARE)
        self.assertEqual(self.calls, [Net] * 11)

    def test_the_class_seems_to_have_no_call_of_its_own(self):
        class Net(Module):
            pass

        self.steps(20, Net())
        self.assertEqual(self.classes.patched, [Net])
        self.assertIs(Net.__call__, Module.__call__)

    def test_a_base_class_is_patched_once(self):
        class Net(Module):
            pass

        class Derived(Net):
            pass

        self.steps(10, Derived(), Net())
        self.assertEqual(self.classes.patched, [Net])
        self.calls.clear()
        self.steps(1, Derived(), Net())
        self.assertEqual(self.calls, [Derived, Net])

    def test_another_class_is_found_when_one_looks_again(self):
        class Net(Module):
            pass

        class Late(Module):
            pass

        net, late = Net(), Late()
        self.steps(20, net)
        self.steps(20, late)
        self.assertNotIn(Late, self.calls)
        self.classes.watch_all(self.step)
        self.assertNotIn("__call__", vars(Net))
        self.assertIs(vars(Module)["__call__"], self.general)
        self.steps(20, net, late)
        self.assertEqual(self.classes.patched, [Net, Late])

    def test_a_class_is_asked_for_once_when_it_is_switched(self):
        class Net(Module):
            pass

        class Loss(Module):
            pass

        net = Net()
        self.steps(20, net)
        self.classes.switched(net, self.step, True)
        self.assertFalse(self.classes.watching)
        self.classes.switched(Loss(), self.step, True)
        self.assertTrue(self.classes.watching)
        self.steps(20, net)
        self.classes.switched(Loss(), self.step, True)
        self.assertFalse(self.classes.watching)

    def test_all_are_watched_in_evaluation_until_a_model_was_called_there(self):
        class Net(Module):
            pass

        class Layer(Module):
            __module__ = "torch.nn.modules.linear"
            training = False

        net = Net()
        for _ in range(2):
            self.steps(20, net)
            self.assertFalse(self.classes.watching)
            self.classes.switched(net, self.step, False)
            self.assertTrue(self.classes.watching)
            self.steps(1, Layer())
        net.training = False
        self.steps(1, net)
        net.training = True
        self.steps(20, net)
        self.classes.switched(net, self.step, False)
        self.assertFalse(self.classes.watching)
        self.assertEqual(self.classes.patched, [Net])

    def test_changes_are_bounded(self):
        class Net(Module):
            pass

        net = Net()
        for _ in range(100000):
            self.steps(1, net)
            self.classes.watch_all(self.step)
        self.assertLess(self.classes.times, 30)

    def test_a_call_of_its_own_is_left_alone(self):
        class Own(Module):
            def __call__(self):
                return super().__call__()

        own = Own.__call__
        self.steps(20, Own())
        self.assertIs(Own.__call__, own)
        self.assertIs(vars(Module)["__call__"], self.general)

    def test_somebody_elses_patch_stays(self):
        class Net(Module):
            pass

        def theirs(module):
            return "bare"

        self.steps(20, Net())
        Module.__call__ = theirs
        self.classes.watch_all(self.step)
        self.assertIs(vars(Module)["__call__"], theirs)
        self.steps(2, Net())

    def test_pickled_by_value_it_is_the_bare_call(self):
        class Net(Module):
            pass

        self.steps(20, Net())
        self.assertIs(pickle.loads(pickle.dumps(vars(Net)["__call__"])), BARE)


@unittest.skipUnless(HAS_TORCH, "there is no torch")
@unittest.skipUnless(os.path.exists(UNIDLE), "UNIDLE_BIN is not set: there is no unidle to run")
class LateModelTest(run_case.RunCase):
    def run_mode(self, mode, steps):
        self.same_as_bare(sys.executable, MODELS, mode)
        self.assertEqual([note for note in self.record.notes("shim") if note["status"] == "off"], [])
        self.assertEqual(self.record.rows("select count(*), sum(samples) from steps"), [(steps, 32 * steps)])
        self.assertEqual(
            self.record.one(
                "select count(*) from steps "
                "where duration_ns < input_ns + forward_ns + backward_ns + optimizer_ns"
            ),
            0,
        )

    def without_forward(self):
        return self.record.one("select count(*) from steps where forward_ns is null")

    def test_trained_late(self):
        self.run_mode("trained_late", 96)
        self.assertLessEqual(self.without_forward(), 2)  # found by such a step

    def test_validated_late(self):
        self.run_mode("validated_late", 48)
        self.assertEqual(self.without_forward(), 0)
        self.assertEqual(
            self.record.rows("select count(*), sum(samples) from spans where kind='validate'"), [(6, 6 * 256)]
        )

    def test_evaluated_late(self):
        self.run_mode("evaluated_late", 96)
        self.assertEqual(self.without_forward(), 0)
        self.assertEqual(self.record.one("select count(*) from spans where kind='validate'"), 3)

    def test_nested_derived_and_own(self):
        for mode, steps in (("nested", 48), ("derived", 80), ("own_call", 32)):
            with self.subTest(mode):
                self.run_mode(mode, steps)
                self.assertEqual(self.without_forward(), 0)

    def test_handed_on_to_compilers_and_pickles(self):
        self.fresh = True  # torch.export keeps torch's state from its import
        self.same_as_bare(sys.executable, MODELS, "handed_on")
        self.assertEqual([note for note in self.record.notes("shim") if note["status"] == "off"], [])


if __name__ == "__main__":
    unittest.main()
