"""The shorter patches of asking an iterator for its next batch, see short_steps.py."""

import functools

from _unidle_shim.host import hidden_frames
from _unidle_shim.host.guard import caught
from _unidle_shim.loop.loop import now
from _unidle_shim.patches.model_calls import size_of


class Plain:
    """Of one stretch: when each batch was asked for and got, and nothing else. The library's Fetching has the
    same fields."""

    def __init__(self):
        self.asked, self.got = [], []
        self.alive, self.asking = True, False


def shorter(state, light, original, following, over):
    """For the batches of one iterator. `following`: what is there otherwise; `over`: (loop, iterator, t0,
    error), a fetch raised."""
    if light.rhythm is None:
        return _sized(state, light, original, following, over)
    if light.native is None:
        return _plain(state, light, original, following, over)
    light.plain = light.native.Fetching(
        original,
        following,
        over,
        light.iterator,
        light.until_ns,
        light.most,
        state.loop,
        light.shared.times_address if light.shared is not None else 0,
    )
    return functools.update_wrapper(light.plain, original)


def _plain(state, light, original, following, over):
    loop, key, until_ns, most = state.loop, light.iterator, light.until_ns, light.most
    light.plain = plain = Plain()
    asked, got, shared = plain.asked, plain.got, light.shared

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


def _sized(state, light, original, following, over):
    """The samples of each batch are counted, and those of a dataset that is not cheap are timed."""
    loop, key, until_ns, most = state.loop, light.iterator, light.until_ns, light.most
    marks, samples, shared = light.marks, light.samples, light.shared

    def following_by_light(self):
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
            size = size_of(batch)
            if shared is not None:
                shared.mark(len(marks.got), t0, t1, size)
            marks.sizes.append(size)
            marks.asked.append(t0)
            marks.got.append(t1)
        except BaseException as failure:
            caught(failure)
        return batch

    return hidden_frames.wraps(original)(following_by_light)
