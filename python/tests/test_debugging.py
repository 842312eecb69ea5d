"""Debugging aids of torch that are left on are noted, with the line that switched them on."""

import unittest

import run_case

PROGRAM = """
import torch
{before}
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
{around}
    for step in range({steps}):
        optimizer.zero_grad()
        model(torch.ones(2, 4)).mean().backward()
        optimizer.step()
"""


@unittest.skipUnless(run_case.HAS_TORCH, "this Python has no torch")
class DebuggingTest(run_case.RunCase):
    def noted(self, before="", around="if True:", steps=8, **variables):
        with self.subTest(before=before, around=around):
            done = self.observed_text(PROGRAM.format(before=before, around=around, steps=steps), **variables)
            self.assertEqual(done.stdout, "")
            (note,) = self.record.notes("debugging")
            return note

    def test_anomaly_detection_has_its_line(self):
        plain = self.noted()
        self.assertEqual((plain["anomaly"], plain["where"]), (False, None))
        for before, around, line in (
            ("torch.autograd.set_detect_anomaly(True)", "if True:", 3),
            ("", "with torch.autograd.detect_anomaly():", 6),
        ):
            note = self.noted(before, around)
            self.assertTrue(note["anomaly"] and note["where"].endswith("train.py:%d" % line), note)
        ended = self.noted("with torch.autograd.set_detect_anomaly(True): pass")
        self.assertEqual((ended["anomaly"], ended["where"]), (False, None))

    def test_a_profiler_without_a_schedule(self):
        whole = "with torch.profiler.profile():"
        windows = (
            "with torch.profiler.profile(schedule=torch.profiler.schedule(wait=1, warmup=1, active=1)) as p:"
        )
        self.assertTrue(self.noted("", whole, steps=100)["profiler"])
        self.assertFalse(self.noted("", whole, steps=8)["profiler"], "too few looks")
        self.assertFalse(self.noted("", windows, steps=100)["profiler"])

    def test_variables(self):
        note = self.noted(CUDA_LAUNCH_BLOCKING="1", TORCH_DISTRIBUTED_DEBUG="detail")
        self.assertTrue(note["launch_blocking"] and note["checked_collectives"], note)
        note = self.noted(CUDA_LAUNCH_BLOCKING="0", TORCH_DISTRIBUTED_DEBUG="OFF")
        self.assertFalse(note["launch_blocking"] or note["checked_collectives"], note)


if __name__ == "__main__":
    unittest.main()
