"""Loops of other kinds and of frameworks under `unidle run`, compared with the program's own counts."""

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

from run_case import HAS_TORCH, HERE, UNIDLE, Record, environment, started

PROGRAM = os.path.join(HERE, "programs", "loops.py")


EVALUATES = """
import torch
net = torch.nn.Sequential(*[torch.nn.Linear(64, 64) for _ in range(78)])
optimizer = torch.optim.Adam(net.parameters(), lr=0.001)
for epoch in range(3):
    for step in range(235):
        optimizer.zero_grad()
        loss = net(torch.randn(64, 64)).pow(2).mean()
        loss.backward()
        optimizer.step()
        loss.item()
    net.eval()  # and never train() again
    for _ in range(4):
        net(torch.randn(4096, 64)).mean().item()
"""
TRACED = """
import torch
class Net(torch.nn.Sequential):
    pass
net, rows = Net(torch.nn.Linear(3, 3), torch.nn.Linear(3, 1)), torch.randn(8, 3)
net.eval()  # as TensorBoard does for a model's graph
torch.jit.trace(net, rows)
net.train()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(20):
    optimizer.zero_grad()
    net(rows).pow(2).mean().backward()
    optimizer.step()
"""
OWN_STEP = """
import torch
class Own(torch.optim.SGD):
    def step(self, model):
        assert model is net, type(model)
        return super().step()
class Closing(torch.optim.SGD):
    def step(self, closure=None):
        assert closure is gradients, type(closure)
        return super().step(closure)
net, rows = torch.nn.Linear(3, 1), torch.randn(8, 3)
def gradients():
    loss = net(rows).pow(2).mean()
    loss.backward()
    return loss
for _ in range(20):
    gradients()
    Own(net.parameters(), lr=0.1).step(net)
    Closing(net.parameters(), lr=0.1).step(gradients)
    Closing(net.parameters(), lr=0.1).step(closure=gradients)
"""


def needs(package):
    return unittest.skipUnless(importlib.util.find_spec(package), "%s is not installed" % package)


@unittest.skipUnless(os.path.exists(UNIDLE) and HAS_TORCH, "UNIDLE_BIN is not set, or there is no torch")
class LoopsTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)

    def observe(self, *command):
        path = os.path.join(self.folder, "record")
        given = environment(OMP_NUM_THREADS="1", HF_HUB_OFFLINE="1")
        done = subprocess.run(
            [UNIDLE, "run", "-o", path, "--", *started([sys.executable, *command], given)],
            cwd=self.folder,
            env=given,
            capture_output=True,
            text=True,
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        self.record = Record(path)
        self.assertEqual(
            [note["reason"] for note in self.record.notes("shim") if note["status"] == "off"], []
        )
        return done

    def check(self, mode):
        told = os.path.join(self.folder, "told.json")
        self.observe(PROGRAM, mode, told)
        with open(told) as file:
            said = json.load(file)
        self.assertEqual(
            self.record.rows("select count(*), sum(samples) from steps")[0], (said["steps"], said["samples"])
        )
        self.assertEqual(
            self.record.one(
                "select count(*) from steps "
                "where forward_ns is null or backward_ns is null or optimizer_ns is null"
            ),
            0,
        )
        return said

    def test_a_gan(self):
        self.check("gan")
        self.assertEqual(self.record.rows("select distinct micro_batches from steps"), [(1,)])
        self.assertEqual([note["class"] for note in self.record.notes("optimizer")][-1], "Adam")

    def test_a_gan_with_two_loaders(self):
        self.check("two_loaders")
        self.assertEqual(self.record.rows("select distinct micro_batches from steps"), [(1,)])

    def test_two_losses_of_a_batch_are_one_micro_batch(self):
        self.check("two_losses")
        self.assertEqual(self.record.rows("select distinct micro_batches from steps"), [(1,)])

    def test_a_loader_whose_batches_no_model_gets(self):
        self.check("shows_samples")
        self.assertEqual(self.record.settings()["batch.size"], "16")
        used = {note["batch_size"]: note["use"] for note in self.record.notes("loader")}
        self.assertEqual(used, {16: "train", 1: "unknown"})

    def test_the_step_of_the_programs_own_optimiser_gets_what_it_is_given(self):
        self.observe("-c", OWN_STEP)

    def test_larger_batches_of_an_evaluation_are_not_those_of_marked_steps(self):
        self.observe("-c", EVALUATES)
        steps, usual = self.record.rows("select count(*), sum(samples = 64) from steps")[0]
        self.assertEqual(steps, 3 * 235)
        self.assertGreaterEqual(usual, steps - 6)

    def test_tracing_a_model_is_no_validation(self):
        self.observe("-c", TRACED)
        self.assertEqual(self.record.one("select count(*) from spans where kind = 'validate'"), 0)
        self.assertEqual(self.record.rows("select count(*), sum(samples) from steps"), [(20, 160)])

    def test_a_closure(self):
        said = self.check("closure")
        self.assertGreater(said["calls"], 2 * said["steps"])
        self.assertEqual(self.record.rows("select distinct micro_batches from steps"), [(1,)])

    def test_an_item_that_is_a_batch(self):
        for mode in ("items_are_batches", "first_item_is_the_batch"):
            with self.subTest(mode):
                shutil.rmtree(os.path.join(self.folder, "record"), ignore_errors=True)
                self.check(mode)
                self.assertEqual(self.record.settings()["batch.size"], "32")
                self.assertEqual(self.record.notes("data")[-1]["samples_per_epoch"], 640)
                made = [note["count"] for note in self.record.notes("samples")]
                self.assertEqual(sum(made) % 640, 0)

    def test_evaluating_the_training_set(self):
        said = self.check("evaluates_training_set")
        self.assertEqual(
            self.record.rows("select count(*), sum(samples) from spans where kind = 'validate'")[0],
            (said["calls"], 5 * 544 + 4 * 96),
        )
        self.assertEqual(self.record.settings()["validation.interval"], "14")  # one is before the first step

    @unittest.skipUnless(
        HAS_TORCH and __import__("torch").distributed.is_available(), "torch has no distributed package"
    )
    def test_of_ranks_only_the_outermost_class_is_patched(self):
        done = self.observe(
            "-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2", PROGRAM, "ranks"
        )
        patched = sorted(line for line in done.stdout.splitlines() if line[:1] in "01")
        self.assertEqual(patched, ['%d ["DistributedDataParallel"]' % rank for rank in (0, 1)])
        self.assertEqual(
            self.record.rows(
                "select count(*), sum(samples), sum(forward_ns is null) from steps group by process"
            ),
            [(40, 320, 0)] * 2,
        )

    @needs("lightning")
    def test_lightning(self):
        self.check("lightning")
        self.assertEqual(self.record.one("select count(*) from spans where kind = 'validate'"), 3)
        self.assertEqual(
            sorted(
                (note["id"], note["use"])
                for note in {note["id"]: note for note in self.record.notes("loader")}.values()
            ),
            [(0, "train"), (1, "validate")],
        )

    @needs("transformers")
    @needs("accelerate")
    def test_the_trainer_of_transformers(self):
        self.check("transformers")
        self.assertEqual(self.record.rows("select distinct micro_batches from steps"), [(2,)])
        self.assertEqual(self.record.one("select count(*) from spans where kind = 'validate'"), 2)


if __name__ == "__main__":
    unittest.main()
