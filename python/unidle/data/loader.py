"""Batches of a source's samples, in an order that depends on nothing but the seed."""

from __future__ import annotations

import inspect
from typing import Any, Callable, Iterator, Optional

from unidle import _native
from unidle.data import frameworks, orders
from unidle.data import options as check
from unidle.data.delivery import Delivery
from unidle.data.device import checked_device
from unidle.data.epochs import Epochs
from unidle.data.iteration import Iteration
from unidle.data.source import Source, Wrapped
from unidle.data.streams import Streams
from unidle.errors import UsageError

_STATE = 1  # version of state_dict()


def _seed(seed: Any) -> int:
    return check.whole("loader", "seed", seed, -(2**63), 2**64 - 1)


def _check_source(source: Any, batch_size: Any, orders_given: tuple) -> None:
    if not isinstance(source, Source):
        raise UsageError(
            f"loader: expected a source of unidle.data, found {type(source).__name__} (a data set of "
            "your own: Loader(wrap(dataset)))"
        )
    if len(source) == 0:
        raise UsageError("loader: the source has no samples")
    if not source.facts.get("batched"):
        return
    if batch_size != 1:
        raise UsageError("loader option batch_size: expected 1, since the source makes whole batches")
    if any(one is not None for one in orders_given):
        raise UsageError(
            "loader options weights, groups and shuffle_shards: the source makes whole batches by itself"
        )


class Loader(frameworks.DataLoaderParts):
    """A replacement for torch's DataLoader: iterate over it, once per epoch.

    A batch is a tuple with one tensor per field, each [samples, ...] in the field's dtype; the last batch of
    an epoch is shorter unless `drop_last` drops it. The caller owns the tensors and may keep, change and pass
    them on; their memory is reused when the last of them is released.

    shuffle      shuffles each epoch differently, as a function of (seed, epoch)
    workers      threads that make samples; 0 makes them in next(). None: as many as help, at most the usable
                 CPUs; their number adapts to how long the program and they wait for each other
                 (`active_workers`, `batches_ahead`), which affects only speed and memory
    device       where to put the batch; None means host memory. For a CUDA device, samples are made in
                 page-locked memory and copied on a separate stream; the next batch, if ready, is copied while
                 this one is used. A batch belongs to the stream that is current when it is taken
    rank, world  this process takes every world-th item of the common order, starting with item `rank`; the
                 default is that of torch.distributed or the environment's RANK and WORLD_SIZE. All ranks have
                 the same number of batches: with `drop_last`, items that do not divide evenly are dropped,
                 otherwise the first ones of the order are repeated
    weights      a number for each sample: how often to draw it. Each of the epoch's places (as many as
                 samples) is drawn independently, so samples may repeat, with different randomness each time
    groups       a label for each sample: all samples of a batch are from one group. An epoch has each sample
                 once; an incomplete last batch of a group is dropped with `drop_last`, otherwise completed
                 with the first ones of the group
    shuffle_shards  shuffles this many shards at a time instead of the whole epoch, and reads them ahead: for
                 files that are not in memory yet. Shards come in shuffled order; a shard of more than 16 MiB
                 counts as several. All samples of a shard are in one such window. If shards differ in size,
                 runs of the average size are used instead
    prefetch     batches ahead, per worker
    max_bytes    limit for prefetched batches; at least two must fit. Default: a quarter of the memory that
                 the process may use, or 2 GiB of page-locked memory. Batches that the program keeps do not
                 count. Not available for a wrapped data set, whose sample size is unknown
    on_error     how to handle an unreadable sample, counted in `skipped`: "fail" raises at its batch; "skip"
                 leaves it out, so the batch is shorter but never empty; "replace" uses the next one of the
                 order. All ranks have the same number of batches in any case, and with "replace" of the same
                 sizes
    batch_transform  receives the tuple and returns what to deliver instead; called in the thread that takes
                 batches
    tensors      "torch" or "numpy"; by default torch if it is installed
    pin_memory   puts host batches into page-locked memory if there is a GPU, so that the program may copy
                 them with `non_blocking=True`. Not needed with `device`

    Each iteration is the next epoch, or the one set by set_epoch(), or continues where load_state_dict()
    says; an iteration without a batch does not count. When next() raises, its batch is skipped: the next call
    returns the following one. Only one iteration at a time: a new one ends the previous one. Options are
    fixed except for `batch_transform`. Not thread-safe. Using it in a process forked after its creation
    raises ForkedError.
    """

    def __init__(
        self,
        source: Source,
        batch_size: int = 1,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
        workers: Optional[int] = None,
        device: Any = None,
        rank: Optional[int] = None,
        world: Optional[int] = None,
        *,
        weights: Any = None,
        groups: Any = None,
        shuffle_shards: Optional[int] = None,
        prefetch: int = 2,
        max_bytes: Optional[int] = None,
        on_error: str = "fail",
        batch_transform: Optional[Callable[[tuple], Any]] = None,
        tensors: Optional[str] = None,
        pin_memory: bool = False,
    ) -> None:
        _check_source(source, batch_size, (weights, groups, shuffle_shards))
        if tensors not in (None, "torch", "numpy"):
            raise UsageError(f"loader option tensors: expected torch or numpy, found {tensors!r}")
        if on_error not in ("fail", "skip", "replace"):
            raise check.refuse("loader", "on_error", "fail, skip or replace", on_error)
        if (rank is None) != (world is None):
            raise UsageError("loader options rank and world: expected both or none")
        self.source = source
        self.batch_size = check.whole("loader", "batch_size", batch_size, 1, 2**31 - 1)
        self.shuffle = check.flag("loader", "shuffle", shuffle)
        self.seed = _seed(seed)
        self.drop_last = check.flag("loader", "drop_last", drop_last)
        self.device = checked_device(device)
        if rank is None:
            rank, world = check.default_rank()
        self.world = check.whole("loader", "world", world, 1, 2**31 - 1)
        self.rank = check.whole("loader", "rank", rank, 0, self.world - 1)
        self.prefetch = check.whole("loader", "prefetch", prefetch, 1, 4096)
        self.max_bytes = None if max_bytes is None else check.whole("loader", "max_bytes", max_bytes, 1)
        self.on_error = on_error
        self.tensors = tensors or check.default_tensors()
        self.pin_memory = check.flag("loader", "pin_memory", pin_memory)
        self._check_combinations()
        self._wanted_workers = None if workers is None else check.whole("loader", "workers", workers, 0, 4096)
        self._delivery = Delivery(source, self.tensors, self.device)
        self.batch_transform = batch_transform
        options = {
            "batch": self.batch_size,
            "workers": -1 if self._wanted_workers is None else self._wanted_workers,
            "prefetch": self.prefetch,
            "max_bytes": self.max_bytes or 0,
            "seed": self.seed,
            "shuffle": self.shuffle,
            "epoch_end": "drop" if self.drop_last else "short",
            "rank": self.rank,
            "world": self.world,
            "on_error": on_error,
        }
        sampling = {**options, "drop_last": self.drop_last}
        self._order = orders.chosen(source, weights, groups, shuffle_shards, sampling)
        self._samples = self._order.samples  # per epoch, of all ranks
        self._streams = Streams(self._delivery, self._order, options, self.pin_memory, groups is not None)
        self._epochs = Epochs(self._streams)
        self._batches = self._epochs.try_out()  # per epoch

    def _check_combinations(self) -> None:
        wrapped = isinstance(self.source, Wrapped)
        if wrapped and self.on_error != "fail":
            raise UsageError("loader option on_error: a wrapped data set has its own errors; expected fail")
        if wrapped and self.max_bytes is not None:
            raise UsageError(
                "loader option max_bytes: nobody knows how large the samples of a wrapped data set are; "
                "expected None (a smaller prefetch bounds them)"
            )
        if self.device is not None and self.tensors != "torch":
            raise UsageError("loader option device: needs torch")
        if self.pin_memory and (self.tensors != "torch" or self.device is not None):
            raise UsageError(
                'loader option pin_memory: needs tensors="torch", and no device, which pins by itself'
            )

    @property
    def workers(self) -> int:
        """Number of threads that make samples."""
        if self._wanted_workers is not None:
            return self._wanted_workers
        return _native.library().unidle_usable_cpus()

    @property
    def active_workers(self) -> int:
        """Number of currently active threads."""
        return self._epochs.opened().pace()[0]

    @property
    def batches_ahead(self) -> int:
        """Current limit of prefetched batches."""
        return self._epochs.opened().pace()[1]

    @property
    def extents(self) -> tuple:
        """Lengths of the last batch's samples before padding: for each field an array of extents along the
        first axis, or None if all samples of the source have the same shape."""
        stream = self._epochs.stream
        if self._delivery.on_gpu or stream is None:
            return self._delivery.extents
        return self._delivery.extents_of(stream)

    @property
    def skipped(self) -> int:
        """Unreadable samples that were skipped or replaced, over all epochs."""
        return self._epochs.skipped

    @property
    def batch_transform(self) -> Optional[Callable[[tuple], Any]]:
        return self._delivery.batch_transform

    @batch_transform.setter
    def batch_transform(self, function: Optional[Callable[[tuple], Any]]) -> None:
        self._delivery.batch_transform = check.function("loader", "batch_transform", function)

    @property
    def epoch(self) -> int:
        """The epoch of the current iteration, or of the next one."""
        return self._epochs.place[0]

    def __len__(self) -> int:
        """Batches per epoch, of this rank."""
        return self._batches

    def set_epoch(self, epoch: int) -> None:
        """Sets the epoch of the next iteration, which starts at its beginning, or at the position in it
        that load_state_dict() set."""
        self._epochs.set_epoch(self._epoch(epoch))

    def _skip(self, batches: int) -> None:
        """Skips the first batches of the next iteration's epoch. Keeps a position set by a state."""
        self._epochs.skip(batches * self.batch_size * self.world)

    def _epoch(self, epoch: Any) -> int:
        return check.whole("loader", "epoch", epoch, 0, check.MOST // self._samples - 1)

    def state_dict(self) -> dict:
        """Returns the position after the last delivered batch: a few numbers, the same on all ranks. After
        the last batch of an epoch none of its samples are left; after the loop the state is the start of
        the next epoch."""
        epoch, sample = self._epochs.place
        state = {
            "version": _STATE,
            "epoch": epoch,
            "sample": sample,
            "seed": self.seed,
            "shuffle": self.shuffle,
            "samples": self._samples,
        }
        return {**state, "order": self._order.fingerprint} if self._order.handle else state

    def load_state_dict(self, state: dict) -> None:
        """Sets the position of the next iteration, which delivers exactly the samples that follow, for any
        number of workers, batch size and number of ranks. set_epoch() with the same epoch keeps the
        position."""
        if not isinstance(state, dict) or state.get("version") != _STATE:
            raise check.refuse("loader", "state", f"what state_dict() gave, of version {_STATE}", state)
        lacking = sorted({"epoch", "sample", "seed", "shuffle", "samples"} - set(state))
        if lacking:
            raise UsageError(f"loader state: lacks {', '.join(lacking)}")
        if state["samples"] != self._samples:
            raise UsageError(
                f"loader state: is of a source of {state['samples']} samples; this one has {self._samples}"
            )
        if state.get("order") != self._order.fingerprint:
            raise UsageError(
                "loader state: is of other weights, groups or shards, or of groups with another batch_size"
            )
        seed, shuffle = _seed(state["seed"]), check.flag("loader", "shuffle", state["shuffle"])
        place = (
            self._epoch(state["epoch"]),
            check.whole("loader", "sample", state["sample"], 0, self._samples),
        )
        if (seed, shuffle) != (self.seed, self.shuffle):
            self.close()
            self.__dict__.update(seed=seed, shuffle=shuffle)
            self._streams.options.update(seed=seed, shuffle=shuffle)
        self._epochs.next = self._epochs.place = place

    def __iter__(self) -> Iterator[Any]:
        return Iteration(self._epochs, self._delivery)

    def close(self) -> None:
        """Stops the threads. Delivered batches stay valid; a new iteration restarts the threads."""
        self._epochs.close()

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _FIXED and hasattr(self, "_epochs"):
            raise UsageError(
                f"{name} attribute should not be set after {type(self).__name__} is initialized "
                "(make a new one; load_state_dict(old.state_dict()) goes on where the old one was)"
            )
        super().__setattr__(name, value)

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError(
            "a Loader has threads: make it again in the other process, and give it the state_dict"
        )

    def __enter__(self) -> Loader:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


_FIXED = frozenset(inspect.signature(Loader).parameters) - {"batch_transform"}  # read at each batch
_FIXED |= {"dataset", "sampler", "batch_sampler", "persistent_workers", "num_workers", "prefetch_factor"}
_FIXED |= {"collate_fn", "generator", "timeout", "worker_init_fn", "multiprocessing_context", "in_order"}
