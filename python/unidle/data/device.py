"""Copies batches to a GPU from page-locked memory, on a separate stream while the device computes."""

from __future__ import annotations

import contextlib
import ctypes
import os
import warnings
from collections import deque
from typing import Any, Callable, Deque, Dict, List, Optional

from unidle import _native, _tensors
from unidle.data import options as check
from unidle.errors import UsageError

_MOST_BYTES = 256 << 20  # of pending copies; the next one waits for the oldest


def checked_device(device: Any) -> Any:
    """Validates a loader's device; UsageError if it does not exist."""
    if device is None:
        return None
    try:
        import torch
    except ImportError:
        raise UsageError("loader option device: needs torch") from None
    try:
        wanted = torch.device(device)
    except (RuntimeError, TypeError):
        raise check.refuse("loader", "device", "a device of torch", device) from None
    if wanted.type == "cuda" and (wanted.index or 0) >= torch.cuda.device_count():
        raise UsageError(
            f"loader option device: torch has {torch.cuda.device_count()} GPUs here, found {device!r}"
        )
    return device


def is_gpu(device: Any) -> bool:
    if device is None:
        return False
    import torch

    return torch.device(device).type == "cuda"


def can_pin() -> bool:
    import torch

    return torch.cuda.is_available()


class PinnedMemory:
    """Page-locked torch memory, lent to a native loader. It returns to torch with this object, or with the
    batch it was handed out with; torch reuses it only after the copies from it are done."""

    def __init__(self) -> None:
        self._process = os.getpid()
        self._blocks: Dict[int, Any] = {}  # by address
        self._failures: List[BaseException] = []
        self._said = False
        self.lender = _native.Lender(_lender(self._blocks, self._failures))

    def check(self) -> None:
        """Call after each library call that may have requested memory."""
        while self._failures:
            failure = self._failures.pop()
            if not isinstance(failure, RuntimeError):  # e.g. from a signal handler
                raise failure
            if not self._said:
                self._said = True
                _say_not_pinned(failure)

    def handed_out(self, address: int) -> Any:
        """Returns the tensor of a batch, which torch owns from now on: the program may copy from it."""
        place = _native.Managed.from_address(address).tensor.data
        is_lent = _native.library().unidle_tensor_take_back(address)
        tensor = _tensors.to_torch(address)
        if not is_lent:
            return tensor
        block = self._blocks.pop(place)
        return block[: tensor.nbytes].view(tensor.dtype).view(tensor.shape)

    def __del__(self) -> None:
        _keep_in_fork(self._process, self._blocks)


def _lender(blocks: Dict[int, Any], failures: List[BaseException]) -> Callable[[int], Optional[int]]:
    """Not a method, so that memory and callback do not refer to each other."""
    import torch

    def lend(size: int) -> Optional[int]:
        try:
            block = torch.empty(max(1, size), dtype=torch.uint8, device="cpu", pin_memory=True)
            blocks[block.data_ptr()] = block
            return block.data_ptr()
        except BaseException as failure:  # ctypes would print and ignore it
            failures.append(failure)
            return None

    return lend


def _say_not_pinned(failure: BaseException) -> None:
    warnings.warn(
        f"unidle.data.Loader: no page-locked memory for batches ({str(failure).splitlines()[0]}): copies "
        "to the device make the program wait",
        RuntimeWarning,
        stacklevel=2,
    )


def _keep_in_fork(process: int, kept: Any) -> None:
    """Leaks the memory in a forked process: torch could not release it there without a device."""
    if process != os.getpid():
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(kept))


class Copy:
    """A batch on the device, once `done`."""

    def __init__(self, source: Any, user: Any, done: Any) -> None:
        self.source = source  # the source of the copy, held until it is done
        self.user = user  # the stream that the device memory was allocated for
        self.done = done
        self.batch: Any = None
        self.tensors: List[Any] = []  # on the device; empty once handed to the program
        self.bytes = 0


class Copies:
    """Copies batches to one GPU on a separate stream, for the thread that takes batches.

    Device memory is allocated for the stream that uses the batch, like that of any tensor. It may be reused
    memory that this stream still reads, so the copy waits for the work queued on the stream before. The next
    batch is therefore copied during the previous step. The stream waits for the copy.

    (Memory of the copy stream would need Tensor.record_stream(), which uses more memory with each step that
    the program runs ahead of the device, and torch aborts a forked process that releases such a tensor.)
    """

    def __init__(self, device: Any) -> None:
        import torch

        self._process = os.getpid()
        self._under_way: Deque[Copy] = deque()
        index = torch.device(device).index
        self.device = torch.device("cuda", torch.cuda.current_device() if index is None else index)
        self._stream = torch.cuda.Stream(self.device)

    def begin(self, batch: Any) -> Copy:
        import torch

        while True:
            oldest = next(iter(self._under_way), None)
            if oldest is None or not (self._is_full() or oldest.done.query()):
                break
            oldest.done.synchronize()
            with contextlib.suppress(ValueError):  # close() was faster, in a signal handler or a thread
                self._under_way.remove(oldest)
        user = torch.cuda.current_stream(self.device.index)
        copy = Copy(batch, user, torch.cuda.Event(blocking=True))

        def placed(tensor: Any) -> Any:
            if type(tensor) is not torch.Tensor or not _is_in_host_memory(tensor):
                return tensor.to(self.device, non_blocking=True)  # on the stream that uses it
            copy.tensors.append(torch.empty_like(tensor, device=self.device))
            copy.bytes += tensor.nbytes
            sources.append(tensor)
            return copy.tensors[-1]

        sources: List[Any] = []
        # A batch copied ahead within inference_mode may be used outside of it. Set the current device
        # explicitly: torch.cuda.stream() would create a context on another device.
        with torch.inference_mode(False), torch.no_grad(), torch.cuda.device(self.device.index):
            copy.batch = mapped(batch, placed)
            self._stream.wait_stream(user)
            with torch.cuda.stream(self._stream):
                try:
                    for place, source in zip(copy.tensors, sources):
                        place.copy_(source, non_blocking=True)
                finally:  # also when a signal handler raises: some copies are pending
                    copy.done.record(self._stream)
                    self._under_way.append(copy)
        return copy

    def _is_full(self) -> bool:
        """True when the maximum of copies is pending, which limits how far the program runs ahead of the
        device."""
        return len(self._under_way) > 1 and sum(copy.bytes for copy in list(self._under_way)) > _MOST_BYTES

    def deliver(self, copy: Copy) -> Any:
        """Returns the batch for the current stream."""
        import torch

        user = torch.cuda.current_stream(self.device.index)
        user.wait_event(copy.done)
        if user != copy.user:  # the program has switched streams meanwhile
            for tensor in copy.tensors:
                tensor.record_stream(user)
        copy.tensors.clear()
        batch, copy.batch = copy.batch, None  # the program owns it alone
        return batch

    def close(self) -> None:
        """Drops pending copies. torch tracks the use of page-locked memory; for device memory, the stream
        is told here. Does nothing in a forked process."""
        if self._process != os.getpid():
            return
        while self._under_way:
            copy = self._under_way.popleft()
            if copy.tensors:
                copy.user.wait_event(copy.done)

    def __del__(self) -> None:
        under_way = getattr(self, "_under_way", None)
        _keep_in_fork(self._process, under_way)
        if under_way and self._process == os.getpid():
            with contextlib.suppress(Exception):  # the interpreter may be shutting down
                self.close()


def pinned(batch: Any) -> Any:
    """Returns the batch in page-locked memory."""
    return mapped(batch, _pinned)


def _pinned(tensor: Any) -> Any:
    if not _is_in_host_memory(tensor) or tensor.is_pinned():
        return tensor
    try:
        return tensor.pin_memory()
    except RuntimeError as failure:
        _say_not_pinned(failure)
        return tensor


def _is_in_host_memory(tensor: Any) -> bool:
    return tensor.device.type == "cpu" and str(tensor.layout) == "torch.strided"


def mapped(batch: Any, function: Callable[[Any], Any]) -> Any:
    """Applies the function to each tensor in the batch, at any depth; keeps other values."""
    import torch

    if isinstance(batch, dict):
        return {key: mapped(value, function) for key, value in batch.items()}
    if isinstance(batch, (tuple, list)):
        values = [mapped(value, function) for value in batch]
        return type(batch)(*values) if hasattr(batch, "_fields") else type(batch)(values)
    return function(batch) if isinstance(batch, torch.Tensor) else batch
