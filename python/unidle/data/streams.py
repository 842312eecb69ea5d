"""Opens the stream of a loader's batches at a place in its order."""

from __future__ import annotations

from typing import Any, Optional, Tuple

from unidle import _native
from unidle.data.delivery import Delivery
from unidle.data.device import PinnedMemory, can_pin, pinned
from unidle.data.orders import Order
from unidle.data.source import Wrapped
from unidle.data.stream import NativeStream
from unidle.data.threads import LockWatch, ThreadedStream, default_collate

Place = Tuple[int, int]  # an epoch, and the number of its samples before the place, over all ranks


class Streams:
    """What all streams of one loader have in common.

    `options`: of the native loader, without the place; seed and shuffle may change. `grouped`: the order has
    batches of one group each.
    """

    def __init__(
        self, delivery: Delivery, order: Order, options: dict, pin_memory: bool, grouped: bool
    ) -> None:
        self.delivery = delivery
        self.options = options
        self.samples = order.samples  # of an epoch, over all ranks
        self._order = order
        self._pin_memory = pin_memory
        self._grouped = grouped
        self._wrapped = isinstance(delivery.source, Wrapped)
        self.watch: Optional[LockWatch] = None  # of the threads that make a wrapped data set's samples

    @property
    def need_gpu(self) -> bool:
        """Whether the first batch sets up a device or page-locked memory."""
        return self.delivery.on_gpu or self._pin_memory

    def open(self, place: Place, skipped: int) -> Any:
        """Returns a stream that starts at `place`. `skipped`: samples so far."""
        self.delivery.pins = self.delivery.on_gpu or (self._pin_memory and can_pin())
        self.delivery.set_up()
        return self._made(self._at(place), place, skipped)

    def try_out(self) -> Any:
        """Validates the options. Returns a stream without threads and without a GPU, which has no batches."""
        return self._made({**self._at((0, 0)), "workers": 0}, (0, 0), 0)

    def _at(self, place: Place) -> dict:
        return {**self.options, "start_sample": place[0] * self.samples + place[1]}

    def _made(self, options: dict, place: Place, skipped: int) -> Any:
        source, tensors = self.delivery.source, self.delivery.tensors
        if not self._wrapped:
            memory = PinnedMemory() if self.delivery.pins else None
            hands_out = not self.delivery.on_gpu
            return NativeStream(source, self._order, options, place, tensors, skipped, memory, hands_out)
        if options["workers"] < 0:
            options["workers"] = _native.library().unidle_usable_cpus()
        items = NativeStream(source, self._order, {**options, "workers": 0}, place, "numpy", skipped)
        collate = source.collate or default_collate(tensors)
        if self.watch is None or self.watch.threads != options["workers"]:
            self.watch = LockWatch(options["workers"])
        pin = pinned if self.delivery.pins else None
        return ThreadedStream(items, source.dataset, collate, options, self.watch, pin)

    def remainder(self, start: Place) -> int:
        """Returns the number of rows in the last batch of all ranks without the repeated samples at its end,
        for an epoch that starts at `start`. 0: no sample is repeated; -1: repeated samples are elsewhere."""
        options, source = self.options, self.delivery.source
        world = options["world"]
        if options["epoch_end"] == "drop" or world == 1:
            return 0
        samples = self.samples - start[1]
        repeats = -samples % world
        one_by_one = source._samples_per_item == 1 and not self._grouped and not self.delivery.batched
        if one_by_one and repeats <= 1 and options["on_error"] != "skip":
            share = (samples + repeats) // world
            return repeats and ((share - 1) % options["batch"] + 1) * world - repeats
        return -1
