"""Connects cache.features and loader.gather to torch's loaders: before workers start and at each fetch."""

from _unidle_shim.host.guard import caught
from _unidle_shim.host.patching import put
from _unidle_shim.knobs import gathered_rows, kept_samples
from _unidle_shim.samples import whole_batches

KNOBS = ("cache.features", "loader.gather")
PLACES = ("memory", "disk")  # of cache.features


class Fetching:
    """`outcome`: knob -> its outcome in this process, for reading back."""

    def __init__(self, actuators):
        self.actuators = actuators
        self.outcome = {}
        self.loaders = 0
        self.gather = actuators.on("loader.gather")
        self.where = actuators.asked.get("cache.features")
        self.caches = (
            kept_samples.Caches(self.sayer("cache.features"), self.where == "disk")
            if self.where in PLACES
            else None
        )

    def sayer(self, knob):
        """Reports the outcome for one dataset. There may be several (training, validation), so one refusal is
        not final; but a kept sample that was found wrong is."""

        def say(status, why=None):
            if self.outcome.get(knob) != "taken" or status == "broken":
                self.outcome[knob] = status
            if status == "refused":
                status = "refused-in-part"
            self.actuators.say(
                knob,
                self.actuators.asked[knob],
                "refused" if status == "broken" else status,
                why,
                self.actuators.asked[knob] if status == "taken" else None,
            )

        return say

    def starts(self, loader):
        """Called before workers of `loader` are started, or before it begins an epoch without workers."""
        self.loaders += 1
        if self.caches is not None:
            self.caches.prepare(loader)
        why = None
        if self.gather:
            why = whole_batches.why_not(loader) or whole_batches.access_why_not(loader.dataset)
        if why is not None:
            self.sayer("loader.gather")("refused", why)

    def adapt(self, fetcher):
        if self.caches is not None:
            self.caches.adapt(fetcher)
        if self.gather:
            gathered_rows.adapt(fetcher, self.sayer("loader.gather"))

    def will_say(self, knob):
        """The process that fetches the batches reports the outcome once it is known."""
        return knob in KNOBS and self.loaders > 0

    def value(self, knob):
        """The value in effect in this process or in workers that share its memory; None if only the workers
        know."""
        if knob == "cache.features" and self.caches is not None:
            kept = self.caches.kept()
            return None if kept is None else self.where if kept else "off"
        return True if self.outcome.get(knob) == "taken" else None


def install(actuators):
    from torch.utils.data import dataloader
    from torch.utils.data._utils import fetch

    fetching = Fetching(actuators)
    DataLoader, Fetcher = dataloader.DataLoader, fetch._MapDatasetFetcher
    original_iterator, original_init = DataLoader._get_iterator, Fetcher.__init__

    def _get_iterator(self):
        try:
            fetching.starts(self)
        except BaseException as failure:
            caught(failure)
        return original_iterator(self)

    def init(self, *args, **kwargs):
        original_init(self, *args, **kwargs)
        try:
            fetching.adapt(self)
        except BaseException as failure:
            caught(failure)

    put(DataLoader, "_get_iterator", _get_iterator)
    put(Fetcher, "__init__", init)
    return fetching
