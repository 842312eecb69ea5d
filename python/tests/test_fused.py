"""optimizer.fused at run time: the same training, checkpoints as the program saves them, and no update that
the fused form does not support."""

import os
import sys
import textwrap
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import run_case  # noqa: E402

HEAD = """
import torch
torch.manual_seed(0)
%s
for step in range(3):
    optimizer.zero_grad()
    model(torch.arange(6)).abs().square().mean().backward()
    optimizer.step()
print(optimizer.state_dict()["param_groups"][0]["fused"], optimizer.param_groups[0]["fused"])
"""


@unittest.skipUnless(run_case.HAS_TORCH, "there is no torch")
class FusedTest(run_case.RunCase):
    def said(self, made):
        text = HEAD % textwrap.dedent(made)
        done = self.observed(sys.executable, "-c", text, options=["--apply", "optimizer.fused=true"])
        self.assertEqual(done.returncode, 0, done.stderr)
        note = self.record.notes("apply")[-1]
        return done.stdout.split(), note["status"], note["why"]

    def test_checkpoints_have_the_programs_own_choice(self):
        said = self.said("""
            model = torch.nn.Embedding(6, 4)
            optimizer = torch.optim.AdamW(model.parameters())
        """)
        self.assertEqual(said, (["None", "True"], "taken", None))

    def test_sparse_gradients_are_left_to_the_plain_form(self):
        words, status, why = self.said("""
            model = torch.nn.Embedding(6, 4, sparse=True)
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        """)
        self.assertEqual((words, status, why), (["None", "None"], "refused", "SGD has sparse gradients"))

    def test_of_several_optimisers_the_one_that_takes_most_time_is_told(self):
        program = """
import torch
one, two = torch.nn.Sequential(*[torch.nn.Linear(2, 2) for _ in range(40)]), torch.nn.Linear(2, 2)
replaced = torch.optim.SGD(one.parameters(), lr=0.1)
first = torch.optim.Adam(one.parameters())
replaced = torch.optim.RMSprop(two.parameters())
unused = torch.optim.SGD(one.parameters(), lr=0.1)
for step in range(40):
    first.zero_grad(), replaced.zero_grad()
    two(one(torch.ones(3, 2))).sum().backward()
    first.step(), replaced.step()
"""
        path = os.path.join(self.folder, "two.py")
        with open(path, "w") as file:
            file.write(program)
        self.observed(sys.executable, path)
        note = self.record.notes("optimizer")[-1]
        self.assertEqual((note["class"], note["where"][-8:], note["tensors"]), ("Adam", "two.py:5", 80))
        self.assertEqual([place[-8:] for place in note["also"].split(", ")], ["two.py:6", "two.py:7"])
        self.assertTrue(0.5 < note["part"] < 1, note["part"])  # RMSprop has no fused form

    def test_an_optimiser_that_is_gone_before_anybody_looks_has_its_line(self):
        path = os.path.join(self.folder, "short.py")
        with open(path, "w") as file:
            file.write(
                textwrap.dedent("""
                import torch
                def train():
                    model = torch.nn.Linear(2, 2)
                    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
                    for step in range(5):
                        model(torch.ones(3, 2)).sum().backward()
                        optimizer.step()
                train()
                """)
            )
        self.observed(sys.executable, path)
        self.assertEqual(self.record.notes("optimizer")[-1]["where"][-10:], "short.py:5")

    def test_complex_parameters_are_left_to_the_plain_form(self):
        _, status, why = self.said("""
            weight = torch.nn.Parameter(torch.ones(4, dtype=torch.complex64))
            model = lambda x: weight * x.sum()
            optimizer = torch.optim.AdamW([weight])
        """)
        self.assertEqual(status, "refused")
        self.assertIn("no fused form for parameters", why)


if __name__ == "__main__":
    unittest.main()
