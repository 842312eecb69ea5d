"""The measured device time, on a GPU that computes nothing and keeps time (gpu_case.py)."""

import os
import sys
import unittest

import gpu_case

sys.path.insert(0, os.path.join(gpu_case.PROGRAMS, ".."))

import known  # noqa: E402


class GpuTimeTest(gpu_case.GpuCase):
    def test_spans_of_two_optimisers_are_one_step(self):
        self.run_on_gpu(self.program("gan"))
        times = [value for (value,) in self.device_times()]
        self.assertGreater(len(times), 5)
        steps = self.record.one("select count(*) from steps")
        each = self.busy_seconds() / steps
        self.assertGreater(sum(times) / len(times), 0.8 * each)

    def test_a_span_is_no_longer_than_its_step_when_steps_are_only_marked(self):
        self.inline(
            """
            import torch
            model = torch.nn.Linear(8, 8).cuda()
            optimizer = torch.optim.SGD(model.parameters(), 0.1)
            x = torch.randn(4, 8, device="cuda")
            for _ in range(20000):
                optimizer.zero_grad()
                model(x).sum().backward()
                optimizer.step()
            """,
            "--apply",
            "precision.amp=bf16",
        )
        self.assertEqual(self.record.notes("shim")[-1]["thinned"], True)
        longest = self.record.one("select max(duration_ns) from steps") * 1e-9
        self.assertLess(max(value for (value,) in self.device_times()), 2 * longest)

    def test_the_device_that_keeps_up_is_told_from_one_that_is_full(self):
        looks = """
            import torch
            model = torch.nn.Sequential(*[torch.nn.Linear(%d, %d, device="cuda") for _ in range(8)])
            optimizer = torch.optim.SGD(model.parameters(), 1e-9)
            x = torch.randn(%d, %d, device="cuda")
            for _ in range(60):
                optimizer.zero_grad()
                model(x).sum().backward()
                optimizer.step()
            """
        self.inline(looks % (16, 16, 4, 16))
        note = self.record.notes("device")[-1]
        self.assertGreater(note["kept_up"], 0.7 * note["looked_at"])
        self.inline(looks % (8192, 8192, 8192, 8192))
        note = self.record.notes("device")[-1]
        self.assertGreater(note["looked_at"], 5)
        self.assertLess(note["kept_up"], 0.3 * note["looked_at"])

    def test_a_scaler_is_looked_at_before_it_waits(self):
        looks = """
            import torch
            model = torch.nn.Sequential(*[torch.nn.Linear(%d, %d, device="cuda") for _ in range(8)])
            optimizer = torch.optim.SGD(model.parameters(), 1e-9)
            scaler = torch.amp.GradScaler("cuda")
            x = torch.randn(%d, %d, device="cuda")
            for _ in range(60):
                optimizer.zero_grad()
                with torch.autocast("cuda", torch.float16):
                    loss = model(x).sum()
                scaler.scale(loss).backward()
                scaler.unscale_(optimizer)
                scaler.step(optimizer)
                scaler.update()
            """
        self.inline(looks % (16, 16, 4, 16))
        self.looked_at(least=0.7)
        self.inline(looks % (8192, 8192, 8192, 8192))
        self.looked_at(most=0.3)

    def test_a_closure_is_looked_at_after_its_backward_pass(self):
        looks = """
            import torch
            model = torch.nn.Sequential(*[torch.nn.Linear(%d, %d, device="cuda") for _ in range(8)])
            optimizer = torch.optim.SGD(model.parameters(), 1e-9)
            x = torch.randn(%d, %d, device="cuda")
            def closure():  # as Lightning has one
                optimizer.zero_grad()
                loss = model(x).sum()
                loss.backward()
                return loss
            for _ in range(60):
                optimizer.step(closure)
            """
        self.inline(looks % (16, 16, 4, 16))
        self.looked_at(least=0.7)
        self.inline(looks % (8192, 8192, 8192, 8192))
        self.looked_at(most=0.3)

    def test_our_own_scaling_waits_and_is_not_looked_at(self):
        self.inline(
            """
            import torch
            model = torch.nn.Linear(16, 16, device="cuda")
            optimizer = torch.optim.SGD(model.parameters(), 1e-9)
            x = torch.randn(4, 16, device="cuda")
            for _ in range(40):
                optimizer.zero_grad()
                model(x).sum().backward()
                optimizer.step()
            """,
            "--apply",
            "precision.amp=fp16",
        )
        self.assertEqual(self.record.settings()["precision.amp"], "fp16")
        note = self.record.notes("device")[-1]
        self.assertEqual((note["looked_at"], note["kept_up"]), (0, 0))

    def looked_at(self, least=0.0, most=1.0):
        note = self.record.notes("device")[-1]
        self.assertGreater(note["looked_at"], 30)
        self.assertTrue(least <= note["kept_up"] / note["looked_at"] <= most, note)

    # -- work outside the steps of the training model --

    FROZEN = """
        import time, torch
        from torch import nn
        from torch.utils.data import DataLoader
        class Rows(torch.utils.data.Dataset):
            def __len__(self):
                return 40 * 8
            def __getitem__(self, i):
                time.sleep(%(load)s)
                return torch.zeros(1024)
        on = {"device": "cuda", "dtype": torch.bfloat16}
        encoder = nn.Sequential(*[nn.Linear(8192, 8192, **on) for _ in range(8)])
        encoder.requires_grad_(False).eval()
        head = nn.Linear(8192, 1, **on)
        averages = [parameter.detach().clone() for parameter in head.parameters()]
        optimizer = torch.optim.SGD(head.parameters(), 1e-9)
        def changed(x):
            for _ in range(20):
                x = x.flip(1) * 0.5
            return x
        for x in DataLoader(Rows(), 8, pin_memory=%(pin)s):
            x = x.to("cuda", non_blocking=%(pin)s).to(torch.bfloat16).repeat(1024, 8)
            x = changed(x)
            with torch.no_grad():
                x = encoder(x)
            loss = head(x).sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            torch._foreach_lerp_(averages, list(head.parameters()), 0.01)
            %(read)s
        """

    def frozen(self, load=0.0, pin=True, read="loss.item()"):
        """The device's reported and true busy share. Of a step, some 44 ms are an encoder's, 20 ms are
        changes, and little else: slow enough that a host which waits for a CPU hardly counts."""
        self.speed = "devices=2 memory_gbs=500 half_tflops=200"
        self.inline(self.FROZEN % {"load": load, "pin": pin, "read": read})
        told = self.diagnosis()["device"]
        self.assertIn("events", told["how"])
        return told["busy"], self.true_busy_share()

    def true_busy_share(self):
        """Of a run whose steps all do the same work. The first two start things up, and their device time is
        not measured."""
        work_s = self.busy_seconds() / self.record.one("select count(*) from steps")
        step_s = self.record.one("select avg(duration_ns) * 1e-9 from steps where idx >= 2")
        return min(1.0, work_s / step_s)

    def test_a_frozen_network_is_work_of_the_device_however_the_host_waits(self):
        for read in ("pass", "loss.item()", "torch.cuda.synchronize()"):
            for pin in (True, False):
                with self.subTest(read=read, pin=pin):
                    self.assertGreater(self.told_as_it_is(pin=pin, read=read), 0.5)

    def test_a_device_that_waits_for_samples_is_not_called_busy(self):
        for pin in (True, False):
            with self.subTest(pin=pin):
                self.assertLess(self.told_as_it_is(load=0.016, pin=pin), 0.5)  # 128 ms per batch

    def told_as_it_is(self, **how):
        """The true busy share, which must be the reported one in one of three runs: a host that others keep
        from its CPU launches late, and the device waits for it between the two events of a span."""
        for _ in range(3):
            told, true = self.frozen(**how)
            if abs(told - true) <= 0.1:
                return true
        self.fail(f"the device is {told} busy by the record and {true} in truth, also in two runs before")

    def test_the_program_of_the_suite_is_answered_as_the_suite_asks(self):
        self.run_on_gpu(self.program("frozen_encoder"))
        told, expected = self.diagnosis(), known.TABLE["frozen_encoder"]
        self.assertEqual(known.judge(expected, told), [], known.in_a_line(told))
        # More may be told: while a host without a CPU launches late, the span between two events goes on.
        self.assertGreater(told["device"]["busy"], self.true_busy_share() - 0.1)

    # -- the loss that is read --

    def test_another_small_tensor_in_the_place_of_the_loss_is_none(self):
        self.inline("""
            import torch
            model = torch.nn.Linear(8, 8).cuda()
            optimizer = torch.optim.SGD(model.parameters(), 0.1)
            x = torch.randn(4, 8, device="cuda")
            def step():
                optimizer.zero_grad()
                loss = model(x).sum()
                loss.backward()
                optimizer.step()
                return loss.data_ptr()
            for _ in range(20):
                place = step()
                others = [torch.ones((), device="cuda") for _ in range(64)]
                there = [other for other in others if other.data_ptr() == place]
                there[0].item()
            """)
        self.assertEqual(self.record.one("select count(*) from steps where loss is not null"), 0)
        self.assertEqual(self.record.one("select count(*) from metrics where name = 'loss'"), 0)

    def test_a_loss_is_known_by_each_view_of_it(self):
        for read in ("loss.item()", "float(loss)", "loss.detach().item()", "kept.item()"):
            with self.subTest(read=read):
                self.inline(
                    """
                    import torch
                    model = torch.nn.Linear(8, 8).cuda()
                    optimizer = torch.optim.SGD(model.parameters(), 0.1)
                    x = torch.randn(4, 8, device="cuda")
                    for _ in range(20):
                        optimizer.zero_grad()
                        loss = model(x).sum()
                        loss.backward()
                        optimizer.step()
                        kept = loss.detach()
                        if "kept" in %r:
                            del loss
                        %s
                    """
                    % (read, read)
                )
                told = self.record.one("select count(*) from steps where loss is not null")
                told += self.record.one("select count(*) from metrics where name = 'loss'")
                self.assertGreater(told, 15)


if __name__ == "__main__":
    unittest.main()
