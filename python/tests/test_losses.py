"""Losses that are no modules: which lines compute them, and to which part of a step they belong."""

import os
import sys
import tempfile
import textwrap
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.path.insert(0, os.path.join(HERE, "..", "shim"))

import run_case  # noqa: E402
from _unidle_shim.facts import losses  # noqa: E402


class Lines(unittest.TestCase):
    def test_lines_that_compute_a_loss(self):
        for text in (
            "loss = F.cross_entropy(out, y)",
            "    cost = norm * binary_cross_entropy(preds, labels)",
            "loss += criterion(out, y)",
            "loss_G, loss_D = compute(x)",
            "total = self.loss_fn(out, y)  # print it later",
            "obj = elbo(x)",
        ):
            self.assertTrue(losses._judged(text)[0], text)

    def test_operations_on_tensors_count_after_a_forward_pass(self):
        for text in ("recon = ((x - y) ** 2).mean()", "z = torch.log(p)", "kept = out.clamp(0, 1)"):
            self.assertEqual(losses._judged(text), (False, True), text)

    def test_what_reads_or_tells_results_is_none(self):
        for text in (
            "total += loss.item()",
            "losses.append(loss)",
            "acc = (out.argmax(1) == y).float().mean()",
            "print(loss)",
            "self.log('loss', loss)",
            "score = f1_score(y, out.cpu().numpy())",
            "state, reward, done, _ = env.step(action)",
            "R = r + gamma * R",
            "if loss == best:",
        ):
            self.assertEqual(losses._judged(text), (False, False), text)


class Stacks(unittest.TestCase):
    def depth(self, inner, called, line, follows_forward=False):
        """Of a function `inner` that the loop calls in `line`, with code of its own in `called`."""
        text = textwrap.dedent(
            """\
            def {inner}(x):
                return {called}
            def loop(x):
                {line}
            """
        ).format(inner=inner, called=called, line=line)
        with tempfile.NamedTemporaryFile("w", suffix=".py") as file:
            file.write(text)
            file.flush()
            found = {}
            exec(compile(text, file.name, "exec"), found)
            function, loop = found[inner].__code__, found["loop"].__code__
            stack = [(function, 2), (loop, 4)]
            return losses.Losses().depth(stack, [{loop: 4}], follows_forward)

    def test_a_function_by_its_name(self):
        self.assertEqual(self.depth("loss_function", "x + 1", "cost = loss_function(x)"), 1)
        self.assertEqual(self.depth("weighted", "x + 1", "loss = weighted(x)"), 1)

    def test_other_functions(self):
        self.assertIsNone(self.depth("play", "x + 1", "rows = play(x)"))
        self.assertIsNone(self.depth("accuracy", "x + 1", "acc = accuracy(x)"))

    def test_outside_of_the_loop_nothing_is_known(self):
        code = self.test_other_functions.__code__
        self.assertIsNone(losses.Losses().depth([(code, 1)], [], True))


PROGRAM = """
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

for step in range(400):
    out = net(x)
    loss = contrastive_loss(out, y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    {metric}
print(loss.item().hex())
"""


@unittest.skipUnless(run_case.HAS_TORCH, "this Python has no torch")
class Programs(run_case.RunCase):
    def lines(self, metric):
        """By phase of the training process: functions with their stack samples."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "train.py")
            with open(path, "w", encoding="utf-8") as file:
                file.write(PROGRAM.format(metric=metric))
            done = self.observed(sys.executable, path)
        self.assertEqual(done.returncode, 0, done.stderr)
        found = {}
        for note in self.record.notes("hot"):
            if note["role"] == "train":
                found.setdefault(note["phase"], {})[note["function"]] = note["hits"]
        return found

    def test_a_loss_function_is_compute_and_a_metric_is_not(self):
        found = self.lines("metric(out.detach())")
        of_loss = sum(hits for name, hits in found["train"].items() if "contrastive_loss" in name)
        self.assertGreater(of_loss, 10, found)
        between = found.get("between", {})
        self.assertGreater(sum(hits for name, hits in between.items() if "metric" in name), 10, found)
        self.assertEqual([name for name in between if "contrastive_loss" in name], [], found)


if __name__ == "__main__":
    unittest.main()
