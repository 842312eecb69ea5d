"""What counts as a padding mask, and which batches may end after their longest sequence."""

import collections
import functools
import os
import sys
import types
import unittest
from unittest import mock

from run_case import HAS_TORCH, HERE

sys.path.insert(0, os.path.join(HERE, "..", "shim"))
LENGTH = 40
Pair = collections.namedtuple("Pair", "tokens mask")


@unittest.skipUnless(HAS_TORCH, "this Python has no torch")
class TrailingPaddingTest(unittest.TestCase):
    def setUp(self):
        import torch
        from _unidle_shim.facts.padding import Padding
        from _unidle_shim.samples import trailing_padding

        self.torch, self.module, self.Padding = torch, trailing_padding, Padding
        self.tokens = torch.zeros(4, LENGTH, dtype=torch.long)
        for row, length in enumerate((3, 5, 9, 4)):
            self.tokens[row, :length] = torch.arange(1, 1 + length)
        self.mask = (self.tokens > 0).long()

    def batch(self, **more):
        return {"input_ids": self.tokens, "attention_mask": self.mask, **more}

    def cut(self, batch):
        found = self.module.cut_of(self.torch, batch)
        return None if found is None else found.why_not or found.width

    def test_masks(self):
        tokens, mask = self.tokens, self.mask
        for name, value, wanted in (
            ("attention_mask", mask, 16),
            ("attn_mask", mask.bool(), 16),
            ("mask", mask.float(), 16),
            ("src_key_padding_mask", mask == 0, 16),
            ("padding_mask", 1 - mask, 16),
            ("attention_mask", (1 - mask) * -10000.0, None),
            ("attention_mask", mask * 2, None),
            ("attention_mask", mask.flip(1), None),
            ("decoder_attention_mask", mask, None),
        ):
            self.assertEqual(self.cut({"input_ids": tokens, name: value}), wanted, name)
        for batch in ((tokens, mask == 0), [mask, tokens], Pair(tokens, mask), ({"ids": tokens}, mask)):
            self.assertEqual(self.cut(batch), 16)
        self.assertIsNone(self.cut({"input_ids": tokens.flip(1), "padding_mask": mask.flip(1)}))
        self.assertEqual(self.cut(self.batch(padding_mask=mask == 0)), 16)

    def test_what_is_not_shortened_has_another_length(self):
        torch, stays = self.torch, self.module.SAME_LENGTH
        kind = type("Kind", (torch.Tensor,), {})

        class Array:
            shape = (4, LENGTH)

        for value, wanted in (
            (torch.zeros(4, LENGTH), stays),
            (Array(), stays),
            (self.tokens.clone().as_subclass(kind), stays),
            ([torch.zeros(4)] * LENGTH, stays),
            ([[0] * LENGTH] * 4, stays),
            (type("Words", (dict,), {})(tags=self.tokens % 2), stays),
            (["a text"] * 4, 16),
            ([[0] * 7] * 4, 16),
            ({"texts": ("a", "b"), "weights": torch.zeros(4)}, 16),
        ):
            self.assertEqual(self.cut(self.batch(more=value)), wanted, type(value))
        endless = []
        endless.append(endless)
        self.assertEqual(self.cut(self.batch(more=endless)), 16)
        self.assertIsNone(self.cut(type("Batch", (list,), {})([self.tokens, self.mask])))

    def test_a_shortened_batch_is_of_the_same_kind(self):
        for batch in (self.batch(), Pair(self.tokens, self.mask), collections.UserDict(self.batch())):
            found = self.module.shortened(self.torch, batch, self.module.cut_of(self.torch, batch))
            self.assertIs(type(found), type(batch))
            tensors = found if isinstance(found, tuple) else found.values()
            self.assertEqual({tuple(one.shape) for one in tensors}, {(4, 16)})

    def test_a_pinned_tensor_is_pinned_again(self):
        pinned = []
        with (
            mock.patch.object(self.torch.Tensor, "is_pinned", lambda one: one.shape[1] == LENGTH),
            mock.patch.object(
                self.torch.Tensor, "pin_memory", lambda one: pinned.append(tuple(one.shape)) or one
            ),
        ):
            self.module.shortened(self.torch, self.batch(), self.module.cut_of(self.torch, self.batch()))
        self.assertEqual(pinned, [(4, 16)] * 2)

    def test_the_programs_profiler_sees_nothing(self):
        from _unidle_shim.host.shapes import unseen

        @unseen
        def nested():
            self.module.shortened(self.torch, self.batch(), self.module.cut_of(self.torch, self.batch()))
            self.tokens * 2

        with self.torch.autograd.profiler.profile() as profile:
            nested()
            self.tokens + 1
            self.module.has_ignored_labels(self.torch, self.batch(), self.tokens.shape)
        names = {event.name for event in profile.function_events}
        self.assertEqual({name for name in names if name.startswith("aten::")}, {"aten::add"})

    def test_no_operation_is_shared_with_torchs_threads(self):
        batch = self.batch(labels=self.tokens - 100)
        with self.torch.autograd.profiler.profile() as profile:
            self.module.cut_of.__wrapped__(self.torch, batch)
        names = {event.name.split("::")[-1] for event in profile.function_events}
        self.assertEqual(names - {"detach", "to", "resolve_conj", "resolve_neg"}, set())

    def test_the_model_is_given_the_mask(self):
        def wrapped(function):
            return functools.wraps(function)(lambda *args, **named: function(*args, **named))

        def kind(forward):
            return type("Model", (self.torch.nn.Module,), {"forward": forward})()

        tokens, mask = self.tokens, self.mask
        for forward, args, wanted in (
            (lambda self, tokens, padding_mask: None, (tokens, mask == 0), True),
            (wrapped(lambda self, tokens, attention_mask: None), (tokens, mask), True),
            (lambda self, *given: None, (tokens, mask), True),
            (lambda self, batch: None, ((tokens, mask),), True),
            (lambda self, tokens, tgt_masks: None, (tokens, [mask]), False),
            (lambda self, tokens: None, (tokens,), False),
        ):
            padding = self.Padding()
            padding.call_seen(self.torch, kind(forward), args, {})
            self.assertIs(padding.followed, wanted)

    def test_batches_for_validation_do_not_count(self):
        from _unidle_shim.facts.in_effect import Facts

        for use, gradients, counts in (
            ("train", False, True),
            (None, True, True),
            (None, False, False),  # as in the check of lightning before it trains
            ("validate", True, False),
        ):
            facts = types.SimpleNamespace(
                state=types.SimpleNamespace(torch=self.torch), padding=self.Padding()
            )
            with self.torch.set_grad_enabled(gradients):
                Facts.batch_seen(facts, types.SimpleNamespace(use=use), self.batch())
            self.assertIs(facts.padding.cuts, counts, (use, gradients))

    def test_results_for_each_token(self):
        scores = self.torch.zeros(4, LENGTH, 2)
        for result, wanted in (
            ((scores[:, 0], scores), True),
            ({"logits": scores}, True),
            ({"logits": scores[:, :9], "encoder_last_hidden_state": scores}, False),
            (types.SimpleNamespace(logits=scores), True),
            (types.SimpleNamespace(logits=scores[:, 0], model=self.torch.nn.Linear(LENGTH, 4)), False),
            (None, False),
        ):
            self.assertIs(self.module.per_token(self.torch, result, self.tokens.shape), wanted)

    def test_batches_that_accelerate_joins_stay(self):
        torch, seen = self.torch, {"batch": self.batch()}
        code = "def %s(padding, torch):\n    padding.batch_seen(torch, batch)\n"
        path = os.path.join("packages", "accelerate", "data_loader.py")
        for name, ranks, stays in (
            ("_fetch_batches", 2, True),
            ("_fetch_batches", 1, False),
            ("__iter__", 2, False),
        ):
            exec(compile(code % name, path, "exec"), seen)
            padding = self.Padding()
            with mock.patch.multiple(
                torch.distributed,
                is_available=lambda: True,
                is_initialized=lambda: True,
                get_world_size=lambda: ranks,
                create=True,
            ):
                seen[name](padding, torch)
            self.assertTrue(padding.cuts)
            self.assertIs(padding.why_kept is not None, stays, (name, ranks))

    def test_only_a_process_that_trains_says_that_nothing_was_cut(self):
        from _unidle_shim.knobs.trimmed_padding import Trimming

        for forwards, rank, looked, says in (
            (3, None, False, 1),
            (3, 0, False, 1),
            (3, 1, True, 1),
            (3, 1, False, 0),  # another rank fetches its batches
            (0, None, False, 0),  # a worker that was not forked, or what starts the ranks
        ):
            parallel = None if rank is None else {"rank": rank}
            facts = types.SimpleNamespace(forwards=forwards, parallel=parallel)
            said = []
            trimming = Trimming(types.SimpleNamespace(facts=facts), lambda *words: said.append(words))
            trimming.looked = looked
            trimming.finish()
            self.assertEqual(len(said), says, (forwards, rank, looked))
            self.assertEqual("fetched no batch" in str(said), bool(says) and not looked)


if __name__ == "__main__":
    unittest.main()
