"""Losses that are no modules: which lines compute them, and to which part of a step they belong."""

import os
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.path.insert(0, os.path.join(HERE, "..", "shim"))

import run_case  # noqa: E402
from _unidle_shim.facts import losses  # noqa: E402


class Lines(unittest.TestCase):
    def test_lines_that_assign_or_call_a_loss(self):
        for text in (
            "loss = F.cross_entropy(out, y)",
            "loss += weighted(out, y)",
            "loss, parts = compute(x)",
            "lossG = -scores.mean()",
            "total = self.loss_fn(out, y)  # print it later",
            "obj = elbo(x)",
            "total = ContrastiveLoss()(x)",
            "err = criterion(out, labels.cpu())",
            "err = scorer_loss(out)",
            "loss = -(dist.log_prob(action) * advantage)",
        ):
            line = losses.judged(text)
            self.assertTrue((line.assigns or line.calls) and not line.tells, text)

    def test_operations_on_tensors_count_after_a_forward_pass(self):
        for text in ("recon = ((x - y) ** 2).mean()", "z = torch.log(p)", "kept = out.clamp(0, 1)"):
            self.assertEqual(losses.judged(text), (False, False, False, True), text)

    def test_what_tells_or_keeps_losses_is_none(self):
        for text in (
            "total += loss.item()",
            "losses.append(loss)",
            "print(loss)",
            "self.log('loss', loss)",
            "plot_losses(history)",
            "save_loss_curve(path)",
            "update_losses(loss)",
            "state, reward, done, _ = env.step(action)",
        ):
            self.assertTrue(losses.judged(text).tells, text)

    def test_other_lines(self):
        for text in ("R = r + gamma * R", "if loss == best:", "cost = simulator(x)", "x = lossless(x)"):
            self.assertEqual(losses.judged(text), (False, False, False, False), text)


class Stacks(unittest.TestCase):
    def depth(self, inner, called, line, follows_forward=True):
        """Of a function `inner`, with the line `called`, that the loop calls in `line`."""
        text = "def %s(x):\n    return %s\ndef loop(x):\n    %s\n" % (inner, called, line)
        with tempfile.NamedTemporaryFile("w", suffix=".py") as file:
            file.write(text)
            file.flush()
            found = {}
            exec(compile(text, file.name, "exec"), found)
            function, loop = found[inner].__code__, found["loop"].__code__
            return losses.Losses().depth([(function, 2), (loop, 4)], [{loop: 4}], follows_forward)

    def test_a_function_by_its_name(self):
        self.assertEqual(self.depth("loss_function", "x + 1", "cost = loss_function(x)"), 1)
        self.assertEqual(self.depth("loss_function", "x + 1", "cost = loss_function(x)", None), 1)
        self.assertIsNone(self.depth("loss_function", "x + 1", "cost = loss_function(x)", False))

    def test_other_functions(self):
        self.assertIsNone(self.depth("play", "x + 1", "rows = play(x)"))
        self.assertIsNone(self.depth("augment", "x.sum()", "loss = train_step(x)"))
        self.assertIsNone(self.depth("simulate", "x + 1", "state = torch.tensor(simulate(x))"))
        self.assertIsNone(self.depth("plot_losses", "x + 1", "plot_losses(x)"))
        self.assertIsNone(self.depth("accuracy", "x + 1", "acc = accuracy(x)"))

    def test_outside_of_the_loop_nothing_is_known(self):
        code = self.test_other_functions.__code__
        self.assertIsNone(losses.Losses().depth([(code, 1)], [], True))


PROGRAM = """
import time

import torch
from torch import nn
torch.manual_seed(0)
torch.set_num_threads(1)
x, y = torch.randn(64, 32), torch.randn(64, 32)
net = nn.Linear(32, 32)
optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)

def contrastive_loss(out, y):
    return sum(torch.cdist(out, y).logsumexp(1).mean() for _ in range(60))

def metric(out):
    return sum(torch.cdist(out, y).logsumexp(1).mean() for _ in range(60))

begin = time.monotonic()
while time.monotonic() < begin + 6:
    out = net(x)
    {metric}
    loss = contrastive_loss(out, y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("ended")
"""


@unittest.skipUnless(run_case.HAS_TORCH, "this Python has no torch")
class Programs(run_case.RunCase):
    def lines(self, metric):
        """By phase of the training process: functions with their stack samples."""
        self.observed_text(PROGRAM.format(metric=metric))
        found = {}
        for note in self.record.notes("hot"):
            if note["role"] == "train":
                found.setdefault(note["phase"], {})[note["function"]] = note["hits"]
        return found

    def test_a_loss_function_is_compute_and_a_metric_is_not(self):
        found = self.lines("metric(out.detach())")
        between = found.get("between", {})
        hits = {
            name: sum(each for function, each in found.get(phase, {}).items() if name in function)
            for name, phase in (("contrastive_loss", "train"), ("metric", "between"))
        }
        self.assertGreater(min(hits.values()), 5, found)
        self.assertEqual([name for name in between if "contrastive_loss" in name], [], found)


if __name__ == "__main__":
    unittest.main()
