"""batch.trim_padding: a batch for training ends after its longest sequence.

Batches for validation stay as they are, because programs join the outputs for them. So a loader's batches are
trimmed once one of them has been trained on.
"""

import os

from _unidle_shim.host.guard import caught
from _unidle_shim.host.patching import put
from _unidle_shim.samples import trailing_padding

KNOB = "batch.trim_padding"


class Trimming:
    def __init__(self, state, say):
        self.state, self.say = state, say
        self.process = os.getpid()
        self.looked = False  # at some batch
        self.met = self.trimmed = False  # some batch could be, or was
        self.refused = False

    def of(self, batch):
        state, padding = self.state, self.state.facts.padding
        self.looked = True
        if state.compiled is not None:
            self.refuse("the model is compiled: it would be compiled again for each other length")
            return batch
        cut = trailing_padding.cut_of(state.torch, batch)
        why = padding.why_kept or (cut.why_not if cut is not None else None)
        if why is not None:
            self.refuse(why)
        elif cut is not None and cut.width < cut.shape[1]:
            self.met = True
            if padding.followed:  # known after its first calls
                batch = trailing_padding.shortened(state.torch, batch, cut)
                if not self.trimmed:
                    self.trimmed = True
                    self.say(KNOB, True, "taken", None, True)
        return batch

    def refuse(self, why):
        self.refused = True
        self.say(KNOB, True, "refused", why)

    def finish(self):
        if self.trimmed or self.refused or not self._knows():
            return
        if self.met:
            self.refuse("the model is not given the padding mask")
        elif not self.looked:
            self.say(KNOB, True, "ignored", "the thread that trains fetched no batch from a DataLoader")
        else:
            self.say(KNOB, True, "ignored", "no batch had a padding mask and columns that hold only padding")

    def _knows(self):
        """False for a worker, a process that only starts others, a rank whose batches another one fetches."""
        facts = self.state.facts
        if self.process != os.getpid() or not facts.forwards:
            return False
        return self.looked or facts.parallel is None or facts.parallel["rank"] == 0


def install(state, say):
    """Called before the fetch of a batch is observed, which then includes this."""
    from torch.utils.data import dataloader

    trimming = Trimming(state, say)
    state.at_finish.append(trimming.finish)
    original = dataloader._BaseDataLoaderIter.__next__

    def trimmed(self):
        batch = original(self)
        try:
            loader = self.__dict__.get("_unidle")
            trains = loader is not None and loader.use == "train" and state.torch.is_grad_enabled()
            if trains and not trimming.refused:
                batch = trimming.of(batch)
        except BaseException as failure:
            caught(failure)
        return batch

    put(dataloader._BaseDataLoaderIter, "__next__", trimmed)
    return trimming
