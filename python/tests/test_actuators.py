"""Every setting that can be changed at run time: the outcome is read back from the live program."""

import json
import os
import subprocess
import sys
import textwrap
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import run_case  # noqa: E402
from run_case import HAS_TORCH, HERE  # noqa: E402

ROWS = os.path.join(HERE, "programs", "held_rows.py")
PICTURES = os.path.join(HERE, "programs", "pictures.py")


@unittest.skipUnless(HAS_TORCH, "this Python has no torch")
class ActuatorTest(run_case.RunCase):
    def applied(self, *settings):
        done = self.observed(
            sys.executable, PICTURES, options=[word for setting in settings for word in ("--apply", setting)]
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([note for note in self.record.notes("shim") if note["status"] == "off"], [])
        self.live = self.record.settings()
        return {note["knob"]: (note["status"], note["why"] or "") for note in self.record.notes("apply")}

    def source_of(self, *words):
        """The note about the source of unidle.data that resembles the program's data set."""
        done = self.observed(sys.executable, ROWS, *words)
        self.assertEqual(done.returncode, 0, done.stderr)
        return self.record.notes("source")[-1]

    def test_a_data_set_that_is_like_a_source_gets_a_patch(self):
        for kind, name in (("tensors", "arrays"), ("windows", "windows")):
            note = self.source_of(kind, "0")
            self.assertEqual(note["name"], name)
            self.assertIn(
                "unidle.data.Loader(unidle.data.like(dataset), batch_size=7, shuffle=True)", note["patch"]
            )

    def test_batches_that_the_program_chooses_are_left_to_a_person(self):
        note = self.source_of("batches", "0")
        self.assertIn("its batches are those of BatchSampler", note["left"][0])
        self.assertIsNone(note["patch"])

    def test_a_data_set_that_is_like_no_source_gets_no_patch(self):
        done = self.observed(sys.executable, ROWS, "drawn", "0")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.record.notes("source"), [])

    def test_taken(self):
        settings = {
            "loader.workers": "1",
            "loader.persistent_workers": "true",
            "loader.prefetch_factor": "3",
            "cpu.threads": "2",
            "precision.amp": "bf16",
            "layout.channels_last": "true",
            "optimizer.fused": "true",
            "optimizer.zero_to_none": "true",
            "memory.keep_freed": "true",
        }
        found = self.applied(*("%s=%s" % setting for setting in settings.items()))
        asks = (
            "import inspect, sys, torch; "
            "sys.exit('fused' not in inspect.signature(torch.optim.AdamW).parameters)"
        )
        if subprocess.run([sys.executable, "-c", asks], check=False).returncode != 0:  # torch before 2.0
            self.assertEqual(found.pop("optimizer.fused")[0], "refused")
            del settings["optimizer.fused"]
        self.assertEqual(found, {knob: ("taken", "") for knob in settings})
        self.assertEqual({knob: str(self.live[knob]).lower() for knob in settings}, settings)
        note = self.record.notes("optimizer")[-1]
        with open(PICTURES) as file:
            lines = file.read().splitlines()
        for key, call in (("where", "AdamW("), ("zero_grad_where", ".zero_grad(")):
            self.assertIn(call, lines[int(note[key].rpartition(":")[2]) - 1])

    def test_results_of_a_model_in_channels_last_have_the_usual_layout(self):
        program = """
import torch
class Loss(torch.nn.Module):  # torch's backward pass takes no other layout
    def forward(self, scores, target):
        return torch.nn.functional.nll_loss(torch.log(scores), target)
net = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.Conv2d(8, 2, 1), torch.nn.Softmax(1))
optimizer = torch.optim.SGD(net.parameters(), 0.1)
for _ in range(20):
    scores = net(torch.randn(4, 3, 8, 8))
    scores.view(4, -1)
    loss = Loss()(scores, torch.zeros(4, 6, 6, dtype=torch.long))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
        done = self.observed(sys.executable, "-c", program, options=["--apply", "layout.channels_last=true"])
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual([note["status"] for note in self.record.notes("apply")], ["taken"])

    def test_what_a_model_returns_keeps_its_class_under_autocast(self):
        program = """
            import collections, dataclasses, torch
            Named = collections.namedtuple("Named", "score label")
            @dataclasses.dataclass(frozen=True)
            class Data:
                score: torch.Tensor
                label: str
            kinds = [Named, Data, lambda score, label: collections.OrderedDict(score=score, label=label),
                     lambda score, label: {"score": score, "label": label}, lambda *both: list(both)]
            class Net(torch.nn.Module):
                def __init__(self, kind):
                    super().__init__()
                    self.kind, self.inner = kind, torch.nn.Linear(4, 1)
                def forward(self, x):
                    return self.kind(self.inner(x), "a")
            for kind in kinds:
                net = Net(kind)
                optimizer = torch.optim.SGD(net.parameters(), 0.1)
                for step in range(3):
                    out = net(torch.randn(8, 4))
                    parts = out.values() if isinstance(out, dict) else out
                    score = out.score if isinstance(out, Data) else next(iter(parts))
                    optimizer.zero_grad()
                    score.mean().backward()
                    optimizer.step()
                print(type(out).__name__, score.dtype, score.detach().numpy().dtype)
        """
        done = self.observed(
            sys.executable, "-c", textwrap.dedent(program), options=("--apply", "precision.amp=bf16")
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        names = ["Named", "Data", "OrderedDict", "dict", "list"]
        self.assertEqual(done.stdout.split("\n")[:-1], [name + " torch.float32 float32" for name in names])
        self.assertEqual(self.record.notes("apply")[-1]["status"], "taken")

    def test_the_autocast_of_the_program_is_switched_off(self):
        program = """
            import torch

            class Inside(torch.nn.Linear):
                def forward(self, x):
                    with torch.autocast("cpu", dtype=torch.bfloat16):
                        return super().forward(x)

            model = Inside(8, 8)
            optimizer = torch.optim.SGD(model.parameters(), 0.1)
            for _ in range(5):
                result = model(torch.zeros(4, 8))
                result.float().sum().backward()
                optimizer.step()
            print(result.dtype)
        """
        for options, kind, amp in (
            ((), "torch.bfloat16", "bf16"),
            (("--apply", "precision.amp=off"), "torch.float32", "off"),
        ):
            done = self.observed(sys.executable, "-c", textwrap.dedent(program), options=options)
            self.assertEqual(done.stdout.strip(), kind, done.stderr)
            self.assertEqual(self.record.settings()["precision.amp"], amp)
        self.assertEqual({note["status"] for note in self.record.notes("apply")}, {"taken"})

    def test_models_of_every_class_are_compiled(self):
        self.fresh = True  # the compiler keeps torch's state from its import
        program = """
            import sys, torch
            class Own(torch.nn.Module):
                def __init__(self):
                    super().__init__()
                    self.inner = torch.nn.Linear(4, 1)
                def forward(self, x):
                    return self.inner(x).relu()
            layers = torch.nn.Sequential(torch.nn.Linear(4, 1), torch.nn.ReLU())
            net = {"Own": Own(), "Sequential": layers}[sys.argv[1]]
            optimizer = torch.optim.SGD(net.parameters(), 0.1)
            for step in range(4):
                optimizer.zero_grad()
                net(torch.randn(8, 4)).mean().backward()
                optimizer.step()
            from torch._dynamo.utils import counters
            print(counters["stats"]["unique_graphs"])
        """
        for name in ("Sequential", "Own"):
            done = self.observed(
                sys.executable,
                "-c",
                textwrap.dedent(program),
                name,
                options=("--apply", "compile.mode=default"),
            )
            self.assertEqual((done.returncode, done.stdout), (0, "1\n"), (name, done.stderr))
            self.assertEqual(self.record.notes("apply")[-1]["status"], "taken")
            self.assertEqual(self.record.settings()["compile.mode"], "default")

    def test_the_catalogue_and_the_shim_know_the_same_knobs(self):
        told = subprocess.run(
            [run_case.UNIDLE, "knobs", "list", "--format", "json"], capture_output=True, text=True, check=True
        )
        asks = (
            "import sys; sys.path.insert(0, %r); from _unidle_shim.knobs import actuators; "
            "print(*sorted(actuators.KNOWN))"
        )
        known = subprocess.run(
            [sys.executable, "-c", asks % os.path.join(HERE, "..", "shim")],
            capture_output=True,
            text=True,
            check=True,
        )
        self.assertEqual(
            known.stdout.split(),
            sorted(each["knob"] for each in json.loads(told.stdout)["knobs"] if each["at_run_time"]),
        )

    def test_refused_with_the_reason(self):
        reasons = {
            "batch.size=32": "an option of the program",
            "batch.accumulation=2": "an option of the program",
            "validation.interval=2": "steps or epochs",
            "metrics.interval=50": "what it does with a value",
            "loader.replace=true": "for you to review",
            "data.on_device=true": "only the program can do that",
            "compile.mode=graph": "cannot compile",
            "grad.clip_norm=1": "cannot be changed",
        }
        found = self.applied(*reasons)
        for setting, reason in reasons.items():
            status, why = found[setting.split("=")[0]]
            self.assertEqual(status, "refused", setting)
            self.assertIn(reason, why)

    def test_ignored_where_it_means_nothing(self):
        found = self.applied(
            "precision.tf32=true",
            "cudnn.benchmark=true",
            "transfer.non_blocking=true",
            "loader.persistent_workers=true",
            "loader.pin_memory=true",
        )
        self.assertEqual({status for status, _ in found.values()}, {"ignored"}, found)
        self.assertIn("no workers", found["loader.persistent_workers"][1])

    def test_what_a_word_of_the_command_says_is_changed_there(self):
        done = self.observed(
            sys.executable, PICTURES, "--batch-size", "4", options=["--apply", "batch.size=2"]
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(str(self.record.settings()["batch.size"]), "2")


if __name__ == "__main__":
    unittest.main()
