"""Batches of a source's samples, in an order that depends on nothing but the seed."""

from __future__ import annotations

import ctypes
import json
import operator
import os
import sys
import threading
import weakref
from typing import Any, Callable, Iterator, Optional, Tuple

from unidle import _native, _tensors
from unidle.data.sources import Source
from unidle.errors import UsageError

_STATE = 1  # version of state_dict()
_LIMIT_MS = 100  # between looks at signals, while a batch is waited for


def _has_torch() -> bool:
    try:
        import torch  # noqa: F401
    except ImportError:
        return False
    return True


def _default_rank() -> Tuple[int, int]:
    """Of torch.distributed where it is set up, else of the environment that torchrun and others set."""
    distributed = sys.modules.get("torch.distributed")
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        return distributed.get_rank(), distributed.get_world_size()
    try:
        return int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    except (KeyError, ValueError):
        return 0, 1


class Loader:
    """Stands where torch's DataLoader stood: iterate over it, once an epoch.

    A batch is a tuple with a tensor a field, each [samples, ...] and of the field's dtype; the last batch
    of an epoch is shorter unless `drop_last` leaves it out. The tensors are the caller's: they may be kept,
    changed and passed on, and their memory goes back into use when the last of them is gone.

    shuffle      in an order of its own for each epoch, a function of (seed, epoch) alone
    workers      threads that make samples; as many as there are CPUs to use when None, and 0 makes them in
                 next()
    device       where the batch is to be; None leaves it in the host's memory. For a CUDA device the copy is
                 asynchronous, from pinned memory
    rank, world  this process takes every world-th item, beginning with item `rank`, of the order that all
                 share; those of torch.distributed or the environment's RANK and WORLD_SIZE when None. All
                 ranks have equally many batches: with `drop_last` the items that do not divide are left
                 out, otherwise the first ones of the order are taken again
    prefetch     batches ahead, for each worker
    on_error     "fail" raises at the batch with a sample that cannot be read; "skip" takes the next one of
                 the order in its place, and counts it in `skipped`
    batch_transform  takes the tuple and returns what is delivered instead; called in the thread that takes
                     batches
    tensors      "torch" or "numpy"; torch where it is installed when None

    Each iteration is the next epoch, or the one that set_epoch() named, or goes on where load_state_dict()
    says. Only one iteration at a time: a new one ends the one before. Not to be used by several threads at
    once, nor in a process that was forked after it was made: that raises ForkedError.
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
        prefetch: int = 2,
        on_error: str = "fail",
        batch_transform: Optional[Callable[[tuple], Any]] = None,
        tensors: Optional[str] = None,
    ) -> None:
        if not isinstance(source, Source):
            raise UsageError(f"loader: expected a source of unidle.data, found {type(source).__name__}")
        if len(source) == 0:
            raise UsageError("loader: the source has no samples")
        if source.facts.get("batched") and batch_size != 1:
            raise UsageError("loader option batch_size: expected 1, since the source makes whole batches")
        if tensors not in (None, "torch", "numpy"):
            raise UsageError(f"loader option tensors: expected torch or numpy, found {tensors!r}")
        if (rank is None) != (world is None):
            raise UsageError("loader options rank and world: expected both or none")
        self.source = source
        self._batched = source.facts.get("batched", False)
        self.batch_size = operator.index(batch_size)
        self.shuffle = shuffle
        self.seed = operator.index(seed)
        self.drop_last = drop_last
        self.device = device
        self.rank, self.world = _default_rank() if rank is None else (rank, world)
        self.prefetch = prefetch
        self.on_error = on_error
        self.batch_transform = batch_transform
        self.tensors = tensors or ("torch" if _has_torch() else "numpy")
        if device is not None and self.tensors != "torch":
            raise UsageError("loader option device: needs torch")
        self.skipped = 0  # samples that another stood in for, over all epochs
        self._wanted_workers = workers
        self._next = (0, 0)  # epoch and sample that the next iteration starts at
        self._place = (0, 0)  # behind the last batch that was delivered
        self._batches = 0  # an epoch
        self._stream: Optional[_Stream] = None
        self._iterations = 0
        self._open((0, 0))  # so that what is wrong with the options is said here

    @property
    def dataset(self) -> Source:
        """The source, by the name that DataLoader has for it."""
        return self.source

    @property
    def workers(self) -> int:
        """How many threads make samples."""
        if self._stream is None:
            self._open(self._next)
        return self._stream.workers

    @property
    def epoch(self) -> int:
        """The epoch of the iteration under way, or of the next one."""
        return self._place[0]

    def __len__(self) -> int:
        """Batches an epoch, of this rank."""
        return self._batches

    def set_epoch(self, epoch: int) -> None:
        """The next iteration is this epoch, from its start."""
        if epoch < 0:
            raise UsageError(f"loader: expected an epoch from 0, found {epoch}")
        self._next = self._place = (int(epoch), 0)

    def state_dict(self) -> dict:
        """Where the loader is: a few numbers, the same on all ranks. Batches that were only made ready do
        not count."""
        epoch, sample = self._place
        return {
            "version": _STATE,
            "epoch": epoch,
            "sample": sample,
            "seed": self.seed,
            "shuffle": self.shuffle,
            "samples": len(self.source),
        }

    def load_state_dict(self, state: dict) -> None:
        """The next iteration goes on there: exactly with the samples that come then, for any number of
        workers, also
        with another batch size and another number of ranks."""
        if state.get("version") != _STATE:
            raise UsageError(f"loader state: expected version {_STATE}, found {state.get('version')!r}")
        if state["samples"] != len(self.source):
            raise UsageError(
                f"loader state: is of a source of {state['samples']} samples; this one has {len(self.source)}"
            )
        if (state["seed"], state["shuffle"]) != (self.seed, self.shuffle):
            self.close()
            self.seed, self.shuffle = state["seed"], state["shuffle"]
        self._next = self._place = (state["epoch"], state["sample"])

    def __iter__(self) -> Iterator[Any]:
        start = self._next
        if self._stream is None or self._stream.place != start:
            self._open(start)
        self._next = (start[0] + 1, 0)
        self._place = start
        self._iterations += 1
        return self._iterate(self._stream, self._iterations)

    def _iterate(self, stream: _Stream, iteration: int) -> Iterator[Any]:
        epoch = self._place[0]
        for left in range(stream.left - 1, -1, -1):
            if iteration != self._iterations or stream is not self._stream:
                raise UsageError("loader: another iteration was begun, or the loader was closed")
            batch, behind = stream.next()
            self._place = (epoch, behind) if left else (epoch + 1, 0)
            self.skipped = stream.skipped_before + stream.skipped
            yield self._finish(batch)
        if iteration == self._iterations:
            self._place = (epoch + 1, 0)

    def _finish(self, batch: tuple) -> Any:
        if self._batched:
            rows = batch[1].shape[1]
            batch = (batch[0].reshape(rows, -1), *(field[0] for field in batch[1:]))
        transform = self.source.transform
        if transform is not None:
            first = [transform(sample) for sample in batch[0]]
            batch = (_stack(first, self.tensors), *batch[1:])
        if self.device is not None:
            batch = tuple(_to_device(tensor, self.device) for tensor in batch)
        return batch if self.batch_transform is None else self.batch_transform(batch)

    def _open(self, place: Tuple[int, int]) -> None:
        self.close()
        options = {
            "batch": self.batch_size,
            "workers": -1 if self._wanted_workers is None else self._wanted_workers,
            "prefetch": self.prefetch,
            "seed": self.seed,
            "shuffle": self.shuffle,
            "start_sample": place[0] * len(self.source) + place[1],
            "epoch_end": "drop" if self.drop_last else "short",
            "rank": self.rank,
            "world": self.world,
            "on_error": self.on_error,
        }
        self._stream = _Stream(self.source, options, place, self.tensors, self.skipped)
        self._batches = self._stream.per_epoch

    def close(self) -> None:
        """Stops the threads. Batches that were delivered stay; a new iteration starts the threads again."""
        if self._stream is not None:
            self._stream.close()
            self._stream = None

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError(
            "a Loader has threads: make it again in the other process, and give it the state_dict"
        )

    def __enter__(self) -> Loader:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


class _Stream:
    """A native loader from one place on."""

    def __init__(
        self, source: Source, options: dict, place: Tuple[int, int], tensors: str, skipped: int
    ) -> None:
        self._library = _native.library()
        self._handle = self._library.unidle_loader_open(source._handle, json.dumps(options).encode())
        if not self._handle:
            _native.raise_failure()
        # The source lives until the native loader is closed, which also happens when this object goes.
        self._release = weakref.finalize(self, _close, self._library, self._handle, source)
        self._asked = threading.Lock()  # held while the library is asked for a batch
        self._closed = False
        self.workers = self._library.unidle_loader_workers(self._handle)
        self.place = place  # of the next batch
        self.skipped = 0
        self.skipped_before = skipped
        self._samples = len(source)
        self._world = options["world"]
        self.per_epoch = self._library.unidle_loader_batches_per_epoch(self._handle)
        # Batches until the end of the epoch of the next one.
        self.left = self._library.unidle_loader_batches_in_first_epoch(self._handle)
        self._count = len(source.fields)
        self._fields = (ctypes.c_void_p * self._count)()
        self._facts = _native.Facts()
        self._convert = _tensors.to_torch if tensors == "torch" else _tensors.to_numpy

    def next(self) -> Tuple[tuple, int]:
        """The batch, and how many samples of its epoch are delivered with it on all ranks."""
        if not self._asked.acquire(blocking=False):
            raise UsageError(
                "loader: another thread, or the code that a signal broke into, waits for a batch of it"
            )
        try:
            return self._next()
        finally:
            self._asked.release()
            if self._closed:
                self._release()

    def close(self) -> None:
        """Also from a signal handler or another thread while a batch is awaited: that wait ends then."""
        self._closed = True
        if self._asked.acquire(blocking=False):
            self._asked.release()
            self._release()

    def _next(self) -> Tuple[tuple, int]:
        done = 0
        while not done:
            if self._closed:
                raise UsageError("loader: it was closed")
            done = self._library.unidle_loader_next(self._handle, _LIMIT_MS, self._fields, self._facts)
            if done < 0:
                _native.raise_failure()
        facts = self._facts
        self.skipped = facts.skipped
        behind = min(facts.epoch_offset + facts.samples * self._world, self._samples)
        self.left -= 1
        self.place = (facts.epoch, behind)
        if self.left == 0:
            self.left, self.place = self.per_epoch, (facts.epoch + 1, 0)
        addresses = list(self._fields)
        batch = []
        try:
            while addresses:
                batch.append(self._convert(addresses.pop(0)))
        finally:
            for address in addresses:  # of a failed conversion
                managed = _native.Managed.from_address(address)
                managed.deleter(ctypes.byref(managed))
        return tuple(batch), behind


def _close(library: Any, handle: int, source: Source) -> None:
    library.unidle_loader_close(handle)
    del source


def _stack(samples: list, tensors: str) -> Any:
    if tensors == "torch":
        import torch

        return torch.stack([torch.as_tensor(sample) for sample in samples])
    return _tensors.numpy().stack(samples)


def _to_device(tensor: Any, device: Any) -> Any:
    import torch

    if torch.device(device).type == "cuda":
        tensor = tensor.pin_memory()
    return tensor.to(device, non_blocking=True)
