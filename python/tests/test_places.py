"""The place that a finding names: a line of the program, never one of a package that the program calls."""

import os
import re
import shutil
import sys
import sysconfig
import tempfile
import types
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "shim")]

import run_case  # noqa: E402
from _unidle_shim.host import places  # noqa: E402

WORK = os.path.join(os.getcwd(), "job")
SITE = os.path.join(WORK, "venv", "lib", "python3.11", "site-packages")

WRAPPER = """
from torch.utils.data import DataLoader

def prepare(loader):
    return DataLoader(loader.dataset, batch_size=loader.batch_size)
"""
AGAIN = """
import torch, wrapper
from torch.utils.data import DataLoader
rows = [torch.ones(4) for _ in range(64)]
model = torch.nn.Linear(4, 1)
loader = DataLoader(rows, batch_size=4)
loader = wrapper.prepare(loader)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
for x in loader:
    opt.zero_grad()
    model(x).sum().backward()
    opt.step()
"""


def code_in(name, function="run"):
    """A function's code, compiled as if it were in that file."""
    space = {}
    exec(compile("def %s():\n    pass\n" % function, name, "exec"), space)
    return space[function].__code__


class Own(unittest.TestCase):
    def test_what_is_the_program(self):
        for own in (
            os.path.join(WORK, "train.py"),
            os.path.join(WORK, "src", "mine", "model.py"),  # also where an editable install points to
            "/somewhere/else/site-packages-of-mine/train.py",
            "train.py",
        ):
            self.assertTrue(places.is_own(code_in(own)), own)
        for foreign in (
            os.path.join(SITE, "lightning", "fit.py"),
            "/usr/lib/python3/dist-packages/numpy/core.py",
            os.path.join(sysconfig.get_paths()["stdlib"], "json", "decoder.py"),
            os.path.join(HERE, "..", "unidle", "data", "threads.py").replace(
                "tests" + os.sep + "..", "tests/.."
            ),
            "<frozen importlib._bootstrap>",
            "<string>",  # what a dataclass generates, for example
        ):
            foreign = foreign if foreign.startswith("<") else os.path.abspath(foreign)
            self.assertFalse(places.is_own(code_in(foreign)), foreign)

    def test_the_program_of_the_command_line(self):
        before = sys.argv
        self.addCleanup(setattr, sys, "argv", before)
        sys.argv = ["-c"]
        self.assertTrue(places.is_own_file("<string>"))

    def test_of_a_package_no_function_has_a_place(self):
        inside = types.FunctionType(code_in(os.path.join(SITE, "shelf.py")), {})
        self.assertIsNone(places.of_function(inside))
        self.assertEqual(places.of_function(types.FunctionType(code_in("train.py"), {})), "train.py:1")

    def test_a_decorated_function_is_where_its_def_stands(self):
        text = "@staticmethod\ndef collate(rows):\n    return rows\n"
        with tempfile.NamedTemporaryFile("w", suffix=".py") as file:
            file.write(text)
            file.flush()
            found = {}
            exec(compile(text, file.name, "exec"), found)
            self.assertTrue(places.of_function(found["collate"]).endswith(":2"))


class Stacks(unittest.TestCase):
    def setUp(self):
        self.own = (code_in(os.path.join(WORK, "train.py"), "main"), 41)
        self.fit = (code_in(os.path.join(SITE, "lightning", "__init__.py"), "fit"), 7)
        self.loop = (code_in(os.path.join(SITE, "lightning", "loop.py"), "advance"), 9)
        self.passes_on = (code_in(os.path.join(SITE, "lightning", "fit.py"), "wrapper"), 3)
        self.torch = (code_in(os.path.join(SITE, "torch", "optim", "sgd.py"), "step"), 5)
        self.fetch = (code_in(os.path.join(SITE, places._FETCH), "fetch"), 52)

    def test_the_line_that_called_a_package_and_its_function(self):
        for stack in (
            [self.loop, self.fit, self.own],
            [self.torch, self.loop, self.fit, self.passes_on, self.own],
        ):
            self.assertEqual(places.of_stack(stack), (self.own, "lightning.fit"))
        where = places.text(*self.own)
        self.assertIn(
            {"type": "called", "where": where, "function": "lightning.fit"},
            dict(places.called_notes()).values(),
        )

    def test_torch_and_the_program_itself_are_no_call_of_a_package(self):
        self.assertEqual(places.of_stack([self.torch, self.own]), (self.own, None))
        self.assertEqual(places.of_stack([self.fit, self.torch, self.own]), (self.own, None))
        passes_on = (code_in(self.torch[0].co_filename, "decorate_context"), 5)
        self.assertEqual(places.of_stack([self.fit, passes_on, self.own]), (self.own, "lightning.fit"))
        self.assertEqual(places.of_stack([self.own, self.fit]), (self.own, None))

    def test_a_sample_is_made_by_the_program_or_by_a_package(self):
        self.assertEqual(
            places.of_sample([self.loop, self.fit, self.fetch, self.own]), (None, "lightning.fit")
        )
        sample = (code_in(os.path.join(WORK, "data.py"), "__getitem__"), 12)
        self.assertEqual(
            places.of_sample([self.loop, sample, self.fetch, self.own]), (sample, "lightning.loop.advance")
        )
        self.assertEqual(places.of_sample([self.torch, self.own]), (None, None))

    def test_indices_come_from_the_programs_sampler(self):
        loader, sampler = (
            os.path.join(SITE, "torch", "utils", "data", one) for one in ("dataloader.py", "sampler.py")
        )
        asks, makes = (code_in(loader, "_next_index"), 700), (code_in(loader, "__init__"), 600)
        batches, order = (
            (code_in(sampler, "__iter__"), 300),
            (code_in(os.path.join(WORK, "data.py"), "order"), 17),
        )
        of_sampler = places.of_sampler
        self.assertEqual(of_sampler([order, asks, self.own]), order)
        self.assertEqual(of_sampler([self.torch, order, batches, asks, self.own]), order)
        self.assertEqual(of_sampler([order, makes, self.own]), order)
        self.assertIsNone(of_sampler([batches, asks, self.own]))  # torch's
        self.assertIsNone(of_sampler([order, self.fetch, asks, self.own]))  # a sample
        self.assertIsNone(of_sampler([self.own]))
        starts = (
            code_in(os.path.join(os.path.dirname(os.__file__), "multiprocessing", "process.py"), "start"),
            1,
        )
        self.assertIsNone(of_sampler([order, starts, makes, self.own]))  # pickles the data set
        self.assertEqual(of_sampler([order, asks, starts, makes, self.own]), order)


@unittest.skipUnless(run_case.HAS_TORCH, "this Python has no torch")
@unittest.skipUnless(os.path.exists(run_case.UNIDLE), "UNIDLE_BIN is not set: there is no unidle to run")
class CalledTest(run_case.DiagnosedCase):
    """framework.py trains by a package that owns the loop, the data set and the saving of checkpoints."""

    def setUp(self):
        super().setUp()
        site = os.path.join(self.folder, "venv", "lib", "python3.11", "site-packages")
        shutil.copytree(os.path.join(HERE, "programs", "packages", "fitter"), os.path.join(site, "fitter"))
        self.path = site
        with open(os.path.join(HERE, "programs", "framework.py")) as file:
            self.lines = file.read().splitlines()

    def line_with(self, text):
        (line,) = [number for number, each in enumerate(self.lines, 1) if text in each]
        return "framework.py:%d" % line

    def found_at(self, *words):
        found = self.diagnosed("framework.py", *words, PYTHONPATH=self.path)
        for finding in found.values():
            self.assertNotIn("site-packages", finding["where"] or "")
            self.assertTrue(
                (finding["where"] or "framework.py").split(":")[0].endswith("framework.py"), finding
            )
        return found

    def test_a_loop_that_a_package_owns(self):
        finding = self.found_at("between")["python-between-steps"]
        self.assertTrue(finding["where"].endswith(self.line_with("trainer.fit(")), finding)
        self.assertTrue(any("fitter.Trainer.fit" in line for line in finding["evidence"]), finding)

    def test_a_data_set_that_a_package_owns(self):
        finding = self.found_at("samples")["recomputed-features"]
        self.assertTrue(finding["where"].endswith(self.line_with("DataLoader(fitter.Rows")), finding)
        self.assertTrue(any("fitter.Rows.__getitem__" in line for line in finding["evidence"]), finding)

    def test_checkpoints_that_a_package_saves(self):
        finding = self.found_at("saves")["checkpoint-dominates"]
        self.assertTrue(finding["where"].endswith(self.line_with("trainer.fit(")), finding)
        self.assertTrue(any("fitter.Trainer.fit" in line for line in finding["evidence"]), finding)
        self.assertTrue(any(re.search(r"every 7 steps", line) for line in finding["evidence"]), finding)

    def test_checkpoints_of_each_epoch(self):
        finding = self.found_at("epochs")["checkpoint-dominates"]
        self.assertTrue(finding["where"].endswith(self.line_with("torch.save(")), finding)
        self.assertTrue(
            any("after each epoch, every 16 steps" in line for line in finding["evidence"]), finding
        )

    def test_a_loader_that_a_package_makes_again(self):
        with open(os.path.join(self.path, "wrapper.py"), "w") as file:
            file.write(WRAPPER)
        program = os.path.join(self.folder, "again.py")
        with open(program, "w") as file:
            file.write(AGAIN)
        done = self.observed(sys.executable, program, PYTHONPATH=self.path)
        self.assertEqual(done.returncode, 0, done.stderr)
        used = [note for note in self.record.notes("loader") if note["use"] == "train"]
        self.assertEqual({note["where"].rsplit(":", 1)[1] for note in used}, {"6"}, used)


if __name__ == "__main__":
    unittest.main()
