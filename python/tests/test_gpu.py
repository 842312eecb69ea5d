"""Programs on a GPU that computes nothing and keeps time (gpu_case.py): forbidden effects, the device in use,
and settings."""

import os
import sys
import textwrap
import unittest

import gpu_case

TWO_FORWARDS = """
import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(8, 8)

    def forward(self, x):
        return self.inner(x) * 2

model = Net().cuda()
model.compile(backend="cudagraphs")
optimizer = torch.optim.SGD(model.parameters(), 0.1)
x, y = torch.randn(4, 8, device="cuda"), torch.randn(4, 8, device="cuda")

def both():
    for _ in range(6):
        optimizer.zero_grad()
        a, b = model(x), model(y)
        (a.sum() + b.sum()).backward()
        optimizer.step()
    return len(set(map(id, (a, b))))

def without():
    with torch.no_grad():
        for _ in range(6):
            a, b = model(x), model(y)
            (a + b).sum().item()

def kept():
    results = []
    for _ in range(6):
        optimizer.zero_grad()
        results.append(model(x))
        results[-1].sum().backward()
        optimizer.step()
    return results[0].sum().item()

for name, work in (("both", both), ("without gradients", without), ("kept", kept)):
    try:
        print("%s: %s" % (name, work()))
    except RuntimeError as error:
        print("%s: %s: %s" % (name, type(error).__name__, str(error).partition(" by a ")[0]))
"""


class GpuTest(gpu_case.GpuCase):
    # -- what must not happen --

    def test_forked_workers_meet_no_call_of_ours(self):
        self.same_as_without_us("fork")
        self.assertEqual(self.said, ["context: 0"])

    def test_nothing_of_ours_is_in_a_graph_or_breaks_it(self):
        self.same_as_without_us("capture")
        self.assertEqual(self.said, ["context: 0"])

    def test_no_context_is_made_on_another_device(self):
        self.same_as_without_us("second_device")
        self.assertEqual(self.said, ["context: 1"])
        self.assertEqual(self.record.settings()["device"], "cuda:1")
        self.assertGreater(len(self.device_times()), 5)

    def test_a_buffer_that_is_filled_again_is_copied_as_before(self):
        program = """
            import ctypes, torch
            net = torch.nn.Linear(8, 1).cuda()
            optimizer = torch.optim.SGD(net.parameters(), 0.01)
            buffer = torch.zeros(4, 8).pin_memory()
            ring = [torch.zeros(4, 8).pin_memory() for _ in range(3)]
            for step in range(20):
                batch = %s
                x = batch.to("cuda")
                net(x).sum().backward()
                optimizer.step()
                optimizer.zero_grad()
        """
        for batch, blocking in (
            ("buffer.copy_(torch.randn(4, 8))", True),
            ("torch.randn(4, 8).pin_memory()", False),
            # Changes that torch does not see: through NumPy, beside the count of changes, by its address,
            # alternately.
            ("[buffer, buffer.numpy().__setitem__(..., step)][0]", True),
            ("[buffer, buffer.data.fill_(step)][0]", True),
            ("[buffer, ctypes.memset(buffer.data_ptr(), step, 128)][0]", True),
            ("[ring[step % 3], ring[step % 3].numpy().__setitem__(..., step)][0]", True),
            ("[buffer[: 1 + step % 4], buffer.numpy().__setitem__(..., step)][0]", True),
        ):
            self.inline(program % batch, "--apply", "transfer.non_blocking=true")
            self.assertEqual(
                self.record.settings()["transfer.non_blocking"], str(not blocking).lower(), batch
            )
            said = [note["status"] for note in self.record.notes("apply")]
            self.assertEqual("taken" in said, not blocking, (batch, said))

    def test_graphs_of_a_compiled_model_are_never_silently_wrong(self):
        """How torch.compile(mode="reduce-overhead") treats results, with the backend that has the same graphs
        without Triton kernels. Two forward passes before one backward pass are right; a result kept beyond
        the next pass, and one of two passes without gradients, is PyTorch's own error."""
        program = os.path.join(self.folder, "two.py")
        with open(program, "w") as file:
            file.write(TWO_FORWARDS)
        bare = self.run_bare(sys.executable, program)
        done = self.run_on_gpu(program)
        self.assertEqual(done.stdout, bare.stdout)
        said = "RuntimeError: Error: accessing tensor output of CUDAGraphs that has been overwritten"
        self.assertEqual(done.stdout.splitlines(), ["both: 2", "without gradients: " + said, "kept: " + said])

    # -- copies --

    def test_copies_in_the_stream_that_computes_are_told_from_launches(self):
        self.visible = "0"
        self.driver(
            "memory 80000000000:2000000000",
            "utilisation busy:" + os.path.join(self.folder, "busy"),
            "pcie 4:16:4:16",  # 25 GB/s, like the fake device's copies
        )
        program = """
            import torch
            model = torch.nn.Sequential(*[torch.nn.Linear(4096, 4096, device="cuda") for _ in range(2)])
            optimizer = torch.optim.SGD(model.parameters(), 1e-9)
            host = torch.zeros(8192, 4096).pin_memory()  # 134 MB: 5.4 ms
            ahead = torch.cuda.Stream()
            current = torch.cuda.current_stream()

            def fetch():
                with torch.cuda.stream(%s):
                    return host.to("cuda", non_blocking=True)

            coming = fetch()
            for _ in range(150):
                current.wait_stream(ahead)
                x = coming
                if %s:
                    coming = fetch()
                optimizer.zero_grad()
                model(x[:3072]).square().mean().backward()
                optimizer.step()
                if not %s:
                    coming = fetch()
            """
        self.inline(program % ("current", False, False))
        told = self.diagnosis()
        loud = {one["id"]: one for one in told["findings"] if one["severity"] != "info"}
        self.assertEqual(told["verdict"], "transfer-bound", told)
        self.assertEqual(told["findings"][0]["id"], "transfer-not-overlapped")
        training = told["time"]["train"] / sum(
            told["time"].values()
        )  # the rest is start-up, long on a busy machine
        self.assertAlmostEqual(loud["transfer-not-overlapped"]["share"] / training, 0.45, delta=0.12)
        self.assertNotIn("launch-bound", loud)
        self.assertIn("device=", told["findings"][0]["fixes"][0]["how"])

        self.inline(program % ("ahead", True, True))
        loud = {one["id"] for one in self.diagnosis()["findings"] if one["severity"] != "info"}
        self.assertNotIn("transfer-not-overlapped", loud)
        self.assertNotIn("launch-bound", loud)

    def test_rates_are_of_the_steps_before_a_profilers_window(self):
        self.inline(
            """
            import torch
            model = torch.nn.Linear(4096, 4096, device="cuda")
            optimizer = torch.optim.SGD(model.parameters(), 1e-9)
            x = torch.randn(8192, 4096, device="cuda")
            for _ in range(200):
                optimizer.zero_grad()
                model(x).sum().backward()
                optimizer.step()
                torch.cuda.synchronize()
            """,
            "--trace",
            "3",
        )
        (note,) = self.record.notes("trace")
        self.assertEqual(note["status"], "recorded")
        self.assertLess(note["attached_ns"], note["begin_ns"])
        first = self.record.one("select min(t_ns) from steps")
        self.assertGreater(note["attached_ns"] - first, 0.9e9)  # there are steps from which to take rates
        told = self.diagnosis()["throughput"]
        self.assertIn("before the profiler's window", told["note"])
        before = "where t_ns + duration_ns <= %d and idx > 3" % note["attached_ns"]
        step_s = self.record.one("select avg(duration_ns) * 1e-9 from steps " + before)
        self.assertAlmostEqual(told["steps_per_s"] * step_s, 1, delta=0.2)

    # -- which device --

    def test_a_dry_run_on_the_cpu_does_not_decide_where_the_model_is(self):
        self.inline("""
            import torch
            model = torch.nn.Linear(8, 8)
            model(torch.randn(4, 8)).sum().backward()
            model.cuda()
            optimizer = torch.optim.SGD(model.parameters(), 0.1)
            for _ in range(40):
                optimizer.zero_grad()
                model(torch.randn(4, 8).cuda()).sum().backward()
                optimizer.step()
            """)
        self.assertEqual(self.record.settings()["device"], "cuda:0")
        self.assertGreater(len(self.device_times()), 5)

    def test_autocast_is_for_the_device_of_the_model(self):
        moves = """
            import torch
            class Moves(torch.nn.Module):
                def __init__(self):
                    super().__init__()
                    self.inner = torch.nn.Linear(8, 8)
                def forward(self, x):
                    y = self.inner(x.to(self.inner.weight.device))
                    kinds.add(str(y.dtype))
                    return y
            kinds = set()
            model = Moves().cuda()
            optimizer = torch.optim.SGD(model.parameters(), 0.1)
            for _ in range(40):
                optimizer.zero_grad()
                with torch.autocast("cuda", torch.bfloat16, enabled=%s):
                    model(torch.randn(4, 8)).sum().backward()
                optimizer.step()
            print(sorted(kinds))
            """
        done = self.inline(moves % False, "--apply", "precision.amp=bf16")
        self.assertEqual(done.stdout, "['torch.bfloat16']\n")
        self.inline(moves % True)
        self.assertEqual(self.record.settings()["precision.amp"], "bf16")

    def test_the_device_is_told_by_its_uuid_and_place(self):
        environment = self.environment()
        self.environment = lambda: dict(environment, CUDA_VISIBLE_DEVICES="1")
        self.run_on_gpu(self.program("gan"))
        note = self.record.notes("device")[-1]
        self.assertEqual(
            (note["uuid"], note["pci"]), ("GPU-00000002-0000-4000-8000-000000000000", "0000:11:00.0")
        )

    def test_a_slice_is_known_by_what_the_program_is_shown(self):
        self.visible = "MIG-00000007-0000-4000-8000-000000000000"
        self.driver(
            "memory 80000000000:70000000000",
            "mig 1",
            "mig_count 7",
            "0/0.name 1g.10gb",
            "0/0.uuid MIG-00000006-0000-4000-8000-000000000000",
            "0/0.memory 10000000000:9900000000",
            "0/3.name 1g.10gb",
            "0/3.uuid " + self.visible,
            "0/3.memory 10000000000:2000000000",
            "processes 4242:60000000000",
        )
        self.run_on_gpu(self.program("gan"))
        self.assertEqual(self.record.notes("device")[-1]["uuid"], self.visible)
        told = self.diagnosis()
        self.assertIn("events", told["device"]["how"])  # NVML has no utilisation of it
        self.assertGreater(told["device"]["busy"], 0.3)
        found = {finding["id"]: finding["evidence"] for finding in told["findings"]}
        self.assertNotIn("memory-nearly-full", found)  # the whole device's and the other slice's memory is
        self.assertNotIn("device-shared", found)
        abstained = {one["id"] for one in told["abstained"]}
        self.assertIn("device-shared", abstained)
        self.assertNotIn("memory-nearly-full", abstained)

    def test_gpus_that_are_hidden_on_purpose_are_a_hint(self):
        self.visible = "-1"
        self.driver("memory 80000000000:0", "utilisation 0")
        program = """
            import torch
            model = torch.nn.Linear(8, 8)
            optimizer = torch.optim.SGD(model.parameters(), 0.1)
            for _ in range(40):
                optimizer.zero_grad()
                model(torch.randn(4, 8)).sum().backward()
                optimizer.step()
            """
        program = textwrap.dedent(program)
        hide = "import os; os.environ['CUDA_VISIBLE_DEVICES'] = ''\n"
        for visible, text, options, severity in (
            ("0", program, (), "critical"),
            ("-1", program, (), "info"),
            ("", program, (), "info"),
            ("NoDevFiles", program, (), "info"),  # Slurm's word for a job without a GPU
            ("0", hide + program, (), "info"),
            ("0", program, ("--device", "cpu"), "info"),
            ("-1", program, ("--device", "cuda"), "critical"),
        ):
            self.visible = visible
            self.observed(sys.executable, "-c", text, *options, **self.environment())
            told = {one["id"]: one["severity"] for one in self.diagnosis()["findings"]}
            self.assertEqual(told.get("device-unused"), severity, (visible, options))

    def test_fp16_is_refused_where_each_rank_has_a_shard(self):
        done = self.inline(
            """
            import torch
            class FullyShardedDataParallel(torch.nn.Linear):
                def forward(self, x):
                    y = super().forward(x)
                    kinds.add(str(y.dtype))
                    return y
            kinds = set()
            model = FullyShardedDataParallel(8, 8).cuda()
            optimizer = torch.optim.SGD(model.parameters(), 0.1)
            for _ in range(20):
                optimizer.zero_grad()
                model(torch.randn(4, 8, device="cuda")).sum().backward()
                optimizer.step()
            print(sorted(kinds))
            """,
            "--apply",
            "precision.amp=fp16",
        )
        self.assertEqual(done.stdout, "['torch.float32']\n")
        told = [note for note in self.record.notes("apply") if note["knob"] == "precision.amp"]
        self.assertEqual([note["status"] for note in told], ["refused"])

    # -- TF32 --

    def test_the_newer_name_of_tf32_is_read_and_applied(self):
        self.same_as_without_us("tf32_api")
        self.assertEqual(self.record.settings()["precision.tf32"], "true")
        wants = """
            import torch
            model = torch.nn.Linear(64, 64).cuda()
            optimizer = torch.optim.SGD(model.parameters(), 0.1)
            %s
            for _ in range(40):
                optimizer.zero_grad()
                model(torch.randn(4, 64, device="cuda")).sum().backward()
                optimizer.step()
            print("done", torch.backends.cuda.matmul.fp32_precision)
            """
        for line in ("pass", "torch.backends.cuda.matmul.allow_tf32 = True"):
            done = self.inline(wants % line, "--apply", "precision.tf32=true")
            self.assertEqual(done.stdout, "done tf32\n")
        newer = 'torch.backends.cuda.matmul.fp32_precision = "ieee"'
        done = self.inline(wants % newer, "--apply", "precision.tf32=true")
        self.assertEqual(done.stdout, "done ieee\n")  # the program's own choice
        told = [note for note in self.record.notes("apply") if note["knob"] == "precision.tf32"]
        self.assertEqual([note["status"] for note in told], ["ignored"])
        newer += "; torch.backends.cudnn.conv.fp32_precision = 'ieee'"
        reads = "\nprint(torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32)"
        done = self.inline(textwrap.dedent(wants % newer) + reads, "--apply", "precision.tf32=true")
        self.assertEqual(done.stdout, "done ieee\nFalse False\n")  # the older name must agree with it
        told = [note for note in self.record.notes("apply") if note["knob"] == "precision.tf32"]
        self.assertEqual([note["status"] for note in told], ["ignored"])


if __name__ == "__main__":
    unittest.main()
