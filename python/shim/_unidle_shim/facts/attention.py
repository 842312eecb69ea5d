"""Attention that computes its weights as a matrix of their own, which nn.MultiheadAttention does unless it is
called with need_weights=False. Stack samples show it: that branch has lines of its own in torch."""

import linecache
import os

from _unidle_shim.facts.python_loops import within_model
from _unidle_shim.host import places
from _unidle_shim.host.hidden_frames import MARK

_FUNCTION, _FILE = "multi_head_attention_forward", os.path.join("torch", "nn", "functional.py")
_WEIGHTS, _TORCH = "attn_output_weights", os.path.join(os.sep, "torch", "")
_TOP = 3


def _is_between(file):
    """Whether it is of torch, or a wrapper of ours."""
    return _TORCH in file or MARK in file


class AttentionWeights:
    """Counts stack samples of the forward pass. Used by the sampling thread alone."""

    def __init__(self):
        self.lines = {}  # line of torch -> whether it has to do with the weights
        self.hits = {}  # place in the program -> samples in such lines
        self.total = 0  # samples of the forward pass

    def count(self, stack):
        """`stack`: [(code, line)], the innermost first."""
        if within_model(stack) is None:
            return
        self.total += 1
        for depth, (code, line) in enumerate(stack):
            if code.co_name == _FUNCTION and code.co_filename.endswith(_FILE):
                if self._of_weights(code.co_filename, line):
                    self._count(stack[depth:])
                return

    def _of_weights(self, file, line):
        if line not in self.lines:
            self.lines[line] = _WEIGHTS in linecache.getline(file, line)
        return self.lines[line]

    def _count(self, outer):
        caller = next((entry for entry in outer if not _is_between(entry[0].co_filename)), None)
        if caller is not None and places.is_own(caller[0]):  # else a package calls it, for its own reasons
            place = places.text(*caller)
            self.hits[place] = self.hits.get(place, 0) + 1

    def notes(self):
        for place, hits in sorted(self.hits.items(), key=lambda entry: -entry[1])[:_TOP]:
            body = {"type": "attention", "where": place, "hits": hits, "total": self.total}
            yield ("attention", place), body
