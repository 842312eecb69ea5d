"""Models that exchange gradients between processes, and tensors that are not plain ones: what a knob may
change there, and what is read from them. One process is enough: wrappers treat it in the same way."""

import sys
import textwrap
import unittest

import run_case

BEGIN = """
    import torch, torch.distributed as dist
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    torch.manual_seed(0)
"""
CONVOLUTIONS = "torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.Conv2d(8, 1, 3))"
TRAIN = """
    optimizer = torch.optim.SGD(net.parameters(), 0.01)
    for _ in range(10):
        loss = net({x}).pow(2).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
"""
PICTURES = TRAIN.format(x="torch.randn(4, 3, 8, 8)") + "    print(loss.item())\n"
ROWS = TRAIN.format(x="torch.randn(4, 8)")


class ExchangedTest(run_case.RunCase):
    def of(self, program, *options):
        """Its output when observed."""
        text = "import warnings; warnings.simplefilter('ignore')\n" + textwrap.dedent(program)
        done = self.observed(sys.executable, "-c", text, options=options)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([note for note in self.record.notes("shim") if note["status"] == "off"], [])
        return done.stdout

    def said(self, knob):
        return [(note["status"], note["why"]) for note in self.record.notes("apply") if note["knob"] == knob]

    def test_the_layout_of_a_wrapped_model_is_left_alone(self):
        wrapped = (
            BEGIN + "    net = torch.nn.parallel.DistributedDataParallel(%s)\n" % CONVOLUTIONS + PICTURES
        )
        alone = "\n    import torch; torch.manual_seed(0)\n    net = %s\n" % CONVOLUTIONS + PICTURES
        as_it_is = float(self.of(wrapped))
        self.assertAlmostEqual(float(self.of(alone, "--apply", "layout.channels_last=true")), as_it_is, 6)
        self.assertEqual(self.said("layout.channels_last"), [("taken", None)])
        self.assertEqual(float(self.of(wrapped, "--apply", "layout.channels_last=true")), as_it_is)
        ((status, why),) = self.said("layout.channels_last")
        self.assertEqual(status, "refused")
        self.assertIn("when the model was wrapped", why)
        before = wrapped.replace(CONVOLUTIONS, CONVOLUTIONS + ".to(memory_format=torch.channels_last)")
        self.assertAlmostEqual(float(self.of(before)), as_it_is, 6)

    def test_shards_are_not_scaled(self):
        program = (
            BEGIN
            + "    from torch.distributed.fsdp import fully_shard\n"
            + "    from torch.distributed.device_mesh import init_device_mesh\n"
            + "    net = torch.nn.Linear(8, 1)\n"
            + "    fully_shard(net, mesh=init_device_mesh('cpu', (1,)))\n"
            + ROWS
            + "    print(loss.item())\n"
        )
        bare = self.of(program)
        self.assertEqual(self.of(program, "--apply", "precision.amp=fp16"), bare)
        ((status, why),) = self.said("precision.amp")
        self.assertEqual(status, "refused")
        self.assertIn("shards", why)

    def test_losses_that_are_no_plain_tensors_are_not_read(self):
        distributed = (
            BEGIN
            + "    from torch.distributed.device_mesh import init_device_mesh\n"
            + "    from torch.distributed.tensor import Shard, distribute_module, distribute_tensor\n"
            + "    mesh = init_device_mesh('cpu', (1,))\n"
            + "    net = distribute_module(torch.nn.Linear(8, 1), mesh)\n"
            + TRAIN.format(x="distribute_tensor(torch.randn(4, 8), mesh, [Shard(0)])")
            + "    print(type(loss).__name__)\n"
        )
        fake = (
            "\n    import torch\n    from torch._subclasses.fake_tensor import FakeTensorMode\n"
            + "    mode = FakeTensorMode()\n    mode.__enter__()\n    net = torch.nn.Linear(8, 1)\n"
            + ROWS
            + "    print(type(loss).__name__)\n"
        )
        for program, kind in ((distributed, "DTensor"), (fake, "FakeTensor")):
            self.assertEqual(self.of(program), kind + "\n")
            self.assertEqual(self.record.one("select count(*) from steps"), 10)
            self.assertEqual(self.record.one("select count(loss) from steps"), 0)


if __name__ == "__main__":
    unittest.main()
