"""Shorter patches of the fetch of a batch, for steps that are only marked (short_steps.py)."""

import functools

from _unidle_shim.host import hidden_frames
from _unidle_shim.host.guard import caught, value_or_none
from _unidle_shim.loop.loop import now


class Plain:
    """The marks of one stretch: when each batch was requested and received (ns). Fetching in C has the same
    fields."""

    def __init__(self):
        self.asked, self.got = [], []
        self.alive, self.asking = True, False


def shorter(state, marking, original, following, over):
    """Returns a function that fetches the next batch of one iterator. `following`: the full patch, for all
    other iterators. `over(loop, iterator, t0, error)` is called if a fetch raises."""
    if marking.rhythm is None:
        return _sized(state, marking, original, following, over)
    if marking.native is None:
        return _plain(state, marking, original, following, over)
    marking.plain = marking.native.Fetching(
        original,
        following,
        over,
        marking.iterator,
        marking.until_ns,
        marking.most,
        state.loop,
        marking.shared.times_address if marking.shared is not None else 0,
    )
    return functools.update_wrapper(marking.plain, original)


def _plain(state, marking, original, following, over):
    loop, key, until_ns, most = state.loop, marking.iterator, marking.until_ns, marking.most
    marking.plain = plain = Plain()
    asked, got, shared = plain.asked, plain.got, marking.shared

    def following_plainly(self):
        if id(self) != key or not plain.alive:
            return following(self)
        t0 = now()
        if t0 >= until_ns or len(got) >= most:
            loop.look_up()
            return following(self)
        plain.asking = True
        try:
            batch = original(self)
        except BaseException as error:
            plain.asking = False
            over(loop, self, t0, error)
            raise
        plain.asking = False
        t1 = now()
        if shared is not None:
            shared.mark(len(got), t0, t1)
        got.append(t1)
        asked.append(t0)
        return batch

    return hidden_frames.wraps(original)(following_plainly)


def _sized(state, marking, original, following, over):
    """Counts the samples of each batch, and times those of a dataset that is not cheap."""
    loop, key, until_ns, most = state.loop, marking.iterator, marking.until_ns, marking.most
    marks, samples, shared = marking.marks, marking.samples, marking.shared

    def following_marked(self):
        if id(self) != key or not marks.alive:
            return following(self)
        t0 = now()
        if t0 >= until_ns or len(marks.got) >= most:
            loop.look_up()
            return following(self)
        loop.inside, state.samples = True, samples
        try:
            batch = original(self)
        except BaseException as error:
            loop.inside, state.samples = False, None
            over(loop, self, t0, error)
            raise
        t1 = now()
        loop.inside, state.samples = False, None
        try:
            size = value_or_none(self._unidle.size_of, batch) or 0
            if shared is not None:
                shared.mark(len(marks.got), t0, t1, size)
            marks.sizes.append(size)
            marks.asked.append(t0)
            marks.got.append(t1)
        except BaseException as failure:
            caught(failure)
        return batch

    return hidden_frames.wraps(original)(following_marked)
