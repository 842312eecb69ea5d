"""Values read from torch's live objects."""

import importlib.util
import os
import subprocess
import sys
import unittest
from types import ModuleType, SimpleNamespace

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "shim"))

from _unidle_shim.facts import live_settings  # noqa: E402
from _unidle_shim.facts.padding import Padding, real_by_lengths, real_of  # noqa: E402

PACKING = """
def helper(x, n):
    def inner():
        return rnn.pack_padded_sequence(x, n)
    return inner()

class ByMethod(nn.Module):
    def encode(self, x, n): return rnn.pack_padded_sequence(x, n)
    def forward(self, x, n): return self.encode(x, n)

class ByName(nn.Module):
    def forward(self, x, n): return pack(x, n)

class ByHelper(nn.Module):
    def forward(self, x, n): return helper(x, n)

class ByModule(nn.Module):
    def forward(self, x, n): return own.deeper(x, n)

class Inherits(ByMethod):
    def forward(self, x, n): return super().forward(x, n)

class Plain(nn.Module):
    def forward(self, x, n): return rnn.pad_packed_sequence(x)
"""


@unittest.skipUnless(importlib.util.find_spec("torch"), "there is no torch")
class InspectionTest(unittest.TestCase):
    def test_the_order_of_pictures(self):
        import torch

        last = torch.channels_last
        pictures = torch.zeros(8, 3, 4, 4)
        self.assertIs(live_settings.channels_last(torch, pictures), False)
        self.assertIs(live_settings.channels_last(torch, pictures.to(memory_format=last)), True)
        for either in (torch.zeros(8, 100, 1, 1), torch.zeros(8, 1, 4, 4), torch.zeros(8, 3), None):
            self.assertIsNone(live_settings.channels_last(torch, either))

    def test_autocast_that_is_switched_on_inside(self):
        import torch

        class Bare(torch.nn.Module):  # without layers, and as accelerate leaves a model
            def forward(self, x, kind=torch.bfloat16):
                with torch.autocast("cpu", dtype=kind, enabled=kind is not None):
                    return x @ x

        for kind, amp in ((torch.bfloat16, "bf16"), (None, "off")):
            facts, before = SimpleNamespace(amp="off"), torch.autocast.__enter__
            watching = live_settings.AutocastInside(facts, torch, "cpu")
            Bare()(torch.zeros(4, 4), kind)
            watching.remove()
            self.assertEqual((facts.amp, torch.autocast.__enter__), (amp, before))

    def test_intervals_wait_for_the_steps_that_are_only_marked(self):
        import torch

        loop = SimpleNamespace(micro={}, steps=400, samples=0, validated_steps=4, marking=None)
        waits = SimpleNamespace(places={("item", "train.py", 7): [0, 0, 40]}, transfers={})
        state = SimpleNamespace(loop=loop, waits=waits, torch=torch, has_device=False)

        def settings():
            found = {}
            list(live_settings.measured_settings(state, SimpleNamespace(scaler=None), found))
            return {name: value for name, value in found.items() if name.endswith("interval")}

        self.assertEqual(settings(), {"metrics.interval": 10, "validation.interval": 100})
        loop.steps, loop.marking = 40, object()  # the others are in the stretch
        self.assertEqual(settings(), {})

    def test_padding_by_the_names_of_the_models_arguments(self):
        import torch

        class Model(torch.nn.Module):
            def forward(self, input_ids, attention_mask=None, e1_mask=None):
                return input_ids

        mask = torch.tensor([[1, 1, 1, 0], [1, 0, 0, 0]])
        ids = mask + 7
        for args, kwargs in (((ids, mask), {}), ((ids,), {"e1_mask": 1 - mask, "attention_mask": mask})):
            padding = Padding()
            padding.call_seen(torch, Model(), args, kwargs)
            ((_, note),) = padding.notes()
            self.assertEqual((note["real"], note["padded"]), (4, 8), "of all elements")
        padding = Padding()
        padding.call_seen(torch, Model(), (mask,), {"e1_mask": mask})
        self.assertEqual(list(padding.notes()), [])
        for wrapper in (torch.nn.DataParallel, lambda model: torch.compile(model, backend="eager")):
            padding = Padding()
            padding.call_seen(torch, wrapper(Model()), (ids, mask), {})
            self.assertEqual(len(list(padding.notes())), 1)

    def test_padding_within_several_wrappers(self):
        import torch

        class Model(torch.nn.Module):
            def forward(self, ids, attention_mask):
                return ids.sum()

        def compiled(model):
            return torch.compile(model, backend="eager")

        parallel, mask = torch.nn.DataParallel, torch.tensor([[1, 1, 1, 0], [1, 1, 0, 0]])
        for wrapped in (parallel(compiled(Model())), compiled(parallel(compiled(Model())))):
            padding = Padding()
            padding.call_seen(torch, wrapped, (mask + 0, mask), {})
            self.assertEqual(len(list(padding.notes())), 1)

    def test_tensors_of_other_kinds_beside_the_mask(self):
        import torch

        mask = torch.tensor([[1, 1, 1, 0], [1, 1, 0, 0]])
        nested = torch.nested.nested_tensor([torch.ones(2, 4), torch.ones(3, 4)])
        for name, other in (("boxes", nested), ("mask", mask.to_sparse()), ("attention_mask", nested)):
            padding = Padding()
            padding.batch_seen(torch, {name: other, "pad_mask": mask, "input_ids": mask + 0})
            self.assertEqual(len(list(padding.notes())), 1, name)

    def test_packed_sequences_have_no_padding(self):
        import torch

        class Model(torch.nn.Module):
            def forward(self, x, lengths):
                return torch.nn.utils.rnn.pack_padded_sequence(x, lengths)

        for model, notes in ((torch.nn.Sequential(Model()), 0), (torch.nn.Identity(), 1)):
            padding = Padding()
            padding.batch_seen(torch, {"x": torch.zeros(2, 8), "lengths": torch.tensor([1, 3])})
            padding.call_seen(torch, model, (), {})
            self.assertEqual(len(list(padding.notes())), notes)

    def test_models_that_pack_in_other_functions(self):
        import torch

        rnn = torch.nn.utils.rnn
        given = {"nn": torch.nn, "rnn": rnn, "pack": rnn.pack_padded_sequence, "own": ModuleType("own")}
        exec(compile(PACKING, os.path.abspath("net.py"), "exec"), given)
        given["own"].deeper = given["helper"]
        packed = rnn.pack_sequence([torch.zeros(3, 1), torch.zeros(1, 1)])
        for name, args, packs in (
            *(("ByMethod", (), True), ("ByName", (), True), ("ByHelper", (), True), ("ByModule", (), True)),
            *(("Inherits", (), True), ("Plain", (packed,), True), ("Plain", (), False)),
        ):
            padding = Padding()
            padding.call_seen(torch, torch.nn.Sequential(given[name]()), args, {})
            self.assertIs(padding.packs, packs, name)

    def test_padding_of_the_loaders_batches_comes_first(self):
        import torch

        padding, mask = Padding(), torch.tensor([[1, 1, 1, 0]])
        padding.batch_seen(torch, {"input_ids": mask, "attention_mask": mask + 0})
        padding.call_seen(torch, torch.nn.Identity(), (), {"x": mask, "attention_mask": mask + 0})
        padding.batch_seen(torch, {"x": torch.zeros(2, 3, 5), "lengths": torch.tensor([1, 3])})
        ((_, note),) = padding.notes()
        self.assertEqual((note["real"], note["padded"], note["longest"]), (3 + 4, 4 + 6, 3 + 6))

    def test_lengths_of_sequences_and_others(self):
        for lengths, shapes, wanted in (
            ([1, 3], [(2, 8)], (4, 16, 6)),
            ([1, 3], [(8, 2)], (4, 16, 6)),  # time comes first
            ([40, 53], [(2, 8)], None),  # of a fish
            ([1, 3], [], None),
            ([-1, 3], [(2, 8)], None),
        ):
            self.assertEqual(real_by_lengths(lengths, shapes), wanted, (lengths, shapes))

    def test_masks_of_padding_and_others(self):
        cases = [
            ("attention_mask", [[1, 1, 0], [1, 0, 0]], (3, 6, 4)),
            ("attention_mask", [[0, 1, 1], [0, 0, 1]], (3, 6, 4)),
            ("key_padding_mask", [[0, 0, 1], [0, 1, 1]], (3, 6, 4)),
            ("src_key_padding_mask", [[1, 1, 0], [1, 0, 0]], (3, 6, 4)),
            ("mask", [[False, True], [False, False]], (3, 4, 4)),
            ("mask", [[1, 1, 1], [1, 0, 0]], (4, 6, 6)),
            ("mask", [[0, 1, 1], [0, 0, 1]], None),  # chooses answers, or padding at the left
            ("mask", [[1, 1, 0], [1, 1, 0]], None),  # what was observed
            ("mask", [[1, 1, 1], [0, 0, 1]], None),
            ("pad_mask", [[1, 0, 0], [0, 0, 0]], (5, 6, 6)),
            ("mask", [[1, 1], [1, 1]], (4, 4, 4)),
            ("mask", [[0, 1], [1, 0]], None),
            ("attention_mask", [[1, 0, 1], [1, 1, 0]], None),
            ("attention_mask", [[1, 0, 0], [1, 1, 0], [1, 1, 1]], None),
            ("attention_mask", [[0, 1, 1], [0, 0, 1], [0, 0, 0]], None),
        ]
        for name, rows, wanted in cases:
            shape = len(rows), len(rows[0])
            self.assertEqual(real_of(rows, name, [shape]), wanted, (name, rows))
            self.assertIsNone(real_of(rows, name, [(shape[0], 9)]), "nothing in the batch has that form")

    def test_masks_without_data_are_not_read(self):
        import torch

        class Wrapper(torch.Tensor):
            @staticmethod
            def __new__(cls, inner):
                return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)

            @classmethod
            def __torch_dispatch__(cls, function, kinds, args=(), kwargs=None):
                raise AssertionError("an operation")

        padding, mask = Padding(), Wrapper(torch.ones(2, 4, dtype=torch.long))
        padding.batch_seen(torch, {"attention_mask": mask})
        padding.call_seen(torch, torch.nn.Identity(), (), {"attention_mask": mask})
        self.assertEqual(list(padding.notes()), [])

    def test_the_order_of_weights(self):
        import torch
        from torch import nn

        model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Conv2d(4, 4, 1))
        self.assertFalse(live_settings.model_note(torch, model)["channels_last"])
        self.assertTrue(
            live_settings.model_note(torch, model.to(memory_format=torch.channels_last))["channels_last"]
        )
        self.assertFalse(live_settings.model_note(torch, nn.Conv2d(4, 4, 1))["channels_last"])
        # One-dimensional convolutions have one layout.
        self.assertIsNone(live_settings.model_note(torch, nn.Conv1d(4, 4, 3))["channels_last"])

    def test_autocast_that_is_on(self):
        import torch

        with torch.autocast("cpu", dtype=torch.bfloat16):
            self.assertEqual(live_settings.amp_of(torch, "cpu"), "bf16")
        self.assertEqual(live_settings.amp_of(torch, "cpu"), "off")
        self.assertEqual(live_settings.amp_of(torch, "meta"), "off")

    def test_tf32_by_either_name_of_the_setting(self):
        import torch

        old, new = "matmul.allow_tf32 = %s", "matmul.fp32_precision = '%s'"
        asked = [(old % True, True), (old % False, False)]
        if hasattr(torch.backends.cuda.matmul, "fp32_precision"):
            asked += [(new % "tf32", True), (new % "ieee", False)]
        for line, wanted in asked:
            code = (
                "import sys, torch; sys.path.insert(0, %r); matmul = torch.backends.cuda.matmul; %s\n"
                "from _unidle_shim.facts import live_settings; print(live_settings.tf32_of(torch))"
            ) % (sys.path[0], line)
            done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
            self.assertEqual(done.stdout, "%s\n" % wanted, (line, done.stderr))

    def test_a_convolution_that_cuts_patches_has_no_layout(self):
        import torch

        patches = torch.nn.Conv2d(3, 8, 4, stride=4)
        for layers, expected in (((patches,), None), ((patches, torch.nn.Conv2d(8, 8, 3)), False)):
            note = live_settings.model_note(torch, torch.nn.Sequential(*layers))
            self.assertIs(note["channels_last"], expected)


if __name__ == "__main__":
    unittest.main()
