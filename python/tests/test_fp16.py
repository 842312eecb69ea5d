"""fp16 without a gradient scaler in the program: gradients are the program's own, small ones do not vanish,
bad steps are skipped."""

import os
import subprocess
import sys
import textwrap
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import run_case  # noqa: E402
from run_case import HAS_TORCH, HERE  # noqa: E402

SHIM = os.path.join(HERE, "..", "shim")
HEAD = (
    """
import sys, torch
sys.path.insert(0, %r)
from _unidle_shim.knobs import fp16
torch.manual_seed(0)
a, b = torch.nn.Linear(3, 4), torch.nn.Linear(4, 1)
first, second = torch.optim.SGD(a.parameters(), lr=0.1, momentum=0.9), torch.optim.Adam(b.parameters())
def loss():
    return b(torch.tanh(a(torch.ones(2, 3)))).square().mean()
def gradients():
    return [None if p.grad is None else p.grad.clone() for p in (*a.parameters(), *b.parameters())]
def same(left, right):
    return all(torch.equal(x, y) for x, y in zip(left, right))
"""
    % SHIM
)


def can_scale():
    """Whether this torch has hooks for all optimisers."""
    if not HAS_TORCH:
        return False
    import torch  # noqa: F401

    return hasattr(sys.modules["torch.optim.optimizer"], "register_optimizer_step_pre_hook")


@unittest.skipUnless(can_scale(), "this Python has no torch, or one before 2.0")
class ScalingTest(unittest.TestCase):
    def holds(self, text):
        """In a separate process: the patches last as long as it does."""
        command = run_case.started([sys.executable, "-c", HEAD + textwrap.dedent(text)], os.environ)
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_gradients_are_those_without_it(self):
        self.holds("""
            loss().backward()
            plain = gradients()
            (2 * loss()).backward()
            both = gradients()
            first.zero_grad(), second.zero_grad()
            scaling = fp16.install(torch, lambda: [first, second, first])
            scaling.used = True
            seen = []
            b.weight.register_hook(lambda gradient: seen.append(gradient.abs().max().item()))
            loss().backward()
            assert same(gradients(), plain)
            assert seen[0] == plain[2].abs().max().item() * 2 ** 16, seen  # on the way they were scaled
            (2 * loss()).backward()
            assert same(gradients(), both)                                 # and what was there already stays
        """)

    def test_a_step_with_an_overflow_is_left_out(self):
        self.holds("""
            scaling = fp16.install(torch, lambda: [first, second])
            scaling.used = True
            loss().backward()
            first.step(), second.step()
            before = [p.detach().clone() for p in (*a.parameters(), *b.parameters())]
            state = second.state[b.weight]["step"].item()
            loss().backward()
            b.weight.grad[0, 0] = float("inf")
            first.step(), second.step()
            after = list(a.parameters()) + list(b.parameters())
            assert not same(before[:2], after[:2])  # the other optimiser had good ones
            assert same(before[2:], after[2:]) and second.state[b.weight]["step"].item() == state
            assert (scaling.scale, scaling.left_out) == (2.0 ** 15, 1)
        """)

    def test_what_is_not_finite_without_scaling_is_the_programs_own(self):
        self.holds("""
            scaling = fp16.install(torch, lambda: [first, second])
            scaling.used = True
            for step in range(18):
                second.zero_grad()
                loss().backward()
                b.bias.grad.fill_(float("nan"))
                second.step()
            assert (scaling.scale, scaling.left_out) == (1.0, 16)
            assert b.bias.isnan().all()
        """)

    def test_the_scale_grows_after_many_good_steps(self):
        self.holds("""
            scaling = fp16.install(torch, lambda: [first])
            scaling.used, scaling.good = True, 1999
            loss().backward()
            first.step()
            assert (scaling.scale, scaling.good) == (2.0 ** 17, 0)
        """)

    def test_scaling_ends_where_it_cannot_be(self):
        self.holds("""
            optimizer = torch.optim.LBFGS([*a.parameters(), *b.parameters()], max_iter=3)
            ended = []
            scaling = fp16.install(torch, lambda: [optimizer], ended.append)
            scaling.used = True
            def closure():
                optimizer.zero_grad()
                value = loss()
                value.backward()
                return value
            begin = optimizer.step(closure).item()
            assert loss().item() < begin and scaling.left_out == 0
            assert not scaling.used and "closure" in ended[0]

            scaling.used = True
            b.weight.register_post_accumulate_grad_hook(lambda parameter: second.step())
            second.zero_grad()
            before = b.weight.detach().clone()
            loss().backward()
            assert torch.equal(b.weight, before)  # its scaled gradients were not used
            assert not scaling.used and "within the backward pass" in ended[1]
            loss().backward()
            assert not torch.equal(b.weight, before)
        """)

    def test_gradients_that_stay_scaled_are_dropped(self):
        self.holds("""
            from _unidle_shim.host import guard
            scaling = fp16.install(torch, lambda: [first, second])
            scaling.used = True
            def fails(tensors, factor, foreach=torch._foreach_mul_):
                if factor < 1:
                    raise MemoryError("here")
                foreach(tensors, factor)
            torch._foreach_mul_ = fails
            loss().backward()
            assert guard.failed and all(gradient is None for gradient in gradients())
        """)


@unittest.skipUnless(can_scale(), "this Python has no torch, or one before 2.0")
class AppliedTest(run_case.RunCase):
    """A program whose gradients are too small for fp16."""

    def losses(self, *options):
        done = self.observed(
            sys.executable, os.path.join(HERE, "programs", "small_gradients.py"), options=list(options)
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([note for note in self.record.notes("shim") if note["status"] == "off"], [])
        told = [row[0] for row in self.record.rows("select loss from steps order by t_ns")]
        said = [float(word) for word in done.stdout.split()]
        self.assertEqual(len(told), len(said))
        for one, other in zip(told, said):
            self.assertAlmostEqual(one, other, delta=1e-6 * abs(other))  # the recorded loss is not scaled
        return said

    def test_it_learns_as_in_32_bits(self):
        plain = self.losses()
        scaled = self.losses("--apply", "precision.amp=fp16")
        note = [note for note in self.record.notes("apply")]
        self.assertEqual(
            [(one["knob"], one["status"], one["value"]) for one in note], [("precision.amp", "taken", "fp16")]
        )
        self.assertLess(plain[-1], 0.5 * plain[0])
        for one, other in zip(plain, scaled):
            self.assertAlmostEqual(one, other, delta=0.02 * plain[0])

    def test_it_is_refused_where_the_program_would_see_it(self):
        program = """
            import torch
            torch.manual_seed(0)
            net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
            x = torch.ones(8, 4)
            optimizer = torch.optim.SGD(net.parameters(), 0.1)
            %s
            for step in range(6):
                def closure():
                    loss = (net(x) - 3).square().mean()
                    optimizer.zero_grad()
                    loss.backward()
                    return loss
                print(repr((optimizer.step(closure) if closes else [closure(), optimizer.step()][0]).item()))
                print(x.grad is not None and repr(x.grad.sum().item()))
        """
        for what, why in (
            ("net[0].weight.register_hook(lambda grad: grad.clamp(-1, 1))", "hooks of the program"),
            ("net[2].register_full_backward_hook(lambda module, into, out: None)", "hooks of the program"),
            ("optimizer = torch.optim.LBFGS(net.parameters())", "LBFGS"),
            ("x.requires_grad_()", "gradients of inputs"),
        ):
            text = textwrap.dedent(program) % ("closes = %s\n%s" % ("LBFGS" in what, what))
            bare = self.bare(sys.executable, "-c", text)
            done = self.observed(sys.executable, "-c", text, options=("--apply", "precision.amp=fp16"))
            self.assertEqual((done.returncode, done.stdout), (0, bare.stdout), what)
            note = self.record.notes("apply")[-1]
            self.assertEqual(note["status"], "refused")
            self.assertIn(why, note["why"])


if __name__ == "__main__":
    unittest.main()
