"""Orders of an epoch other than each sample once."""

from __future__ import annotations

import hashlib
import weakref
from typing import Any

from unidle import _native, _tensors
from unidle.data import options as check
from unidle.errors import UsageError


class Order:
    """An order of the native library, or each sample once (`handle` None).

    samples      samples in an epoch
    fingerprint identifies its definition in states; None for each sample once
    """

    def __init__(self, samples: int) -> None:
        self.handle: Any = None
        self.samples = samples
        self.fingerprint: Any = None

    @classmethod
    def by(cls, kind: str, options: dict, values: Any = None) -> Order:
        library = _native.library()
        text = check.encode("loader", options)
        tensors = None if values is None else _tensors.describe_arrays([values])
        handle = library.unidle_order_open(kind.encode(), text, tensors)
        if not handle:
            _native.raise_failure()
        order = cls(library.unidle_order_samples(handle))
        order.handle = handle
        content = b"\0".join((kind.encode(), text, b"" if values is None else values.tobytes()))
        order.fingerprint = hashlib.sha256(content).hexdigest()[:16]
        weakref.finalize(order, library.unidle_order_close, handle)
        return order


def chosen(source: Any, weights: Any, groups: Any, shuffle_shards: Any, options: dict) -> Order:
    """Returns the order for weights, groups or shuffle_shards; `options` are the loader's."""
    samples = len(source)
    given = [one is not None for one in (weights, groups, shuffle_shards)]
    if not any(given):
        return Order(samples)
    if sum(given) > 1:
        raise UsageError("loader options weights, groups and shuffle_shards: expected one of them")
    if shuffle_shards is not None:
        return _by_shards(source, shuffle_shards, options)
    if weights is not None:
        if not options["shuffle"]:
            raise check.refuse("loader", "shuffle", "True with weights, which are drawn", False)
        return Order.by("weights", {}, _column("weights", weights, samples, "float64"))
    if options["on_error"] == "replace":  # the next sample may belong to another group
        raise check.refuse("loader", "on_error", "fail or skip with groups", "replace")
    labels = _column("groups", groups, samples, None)
    numbers = _tensors.numpy().unique(labels, return_inverse=True)[1].reshape(-1).astype("int64")
    wanted = {"batch": options["batch"], "shuffle": options["shuffle"], "drop_last": options["drop_last"]}
    return Order.by("groups", wanted, numbers)


def _by_shards(source: Any, window: Any, options: dict) -> Order:
    window = check.whole("loader", "shuffle_shards", window, 1)
    if not options["shuffle"]:
        raise check.refuse("loader", "shuffle", "True with shuffle_shards", False)
    if not source._run:
        raise UsageError(
            "loader option shuffle_shards: expected a source of shards, such as npy, or a subset of one with "
            "its items in the order of the shards: source.subset(sorted(items))"
        )
    return Order.by("runs", {"items": len(source), "run": source._run, "window": window})


def _column(name: str, values: Any, samples: int, dtype: Any) -> Any:
    np = _tensors.numpy()
    if hasattr(values, "detach"):  # a torch tensor
        values = _tensors.as_numpy(values)
    try:
        column = np.ascontiguousarray(values, dtype=dtype)
    except (TypeError, ValueError):
        raise check.refuse("loader", name, "a list of numbers, one for each sample", values) from None
    if column.shape != (samples,) or column.dtype.hasobject:
        expected = f"one for each of {samples} samples"
        raise UsageError(
            f"loader option {name}: expected {expected}, found {column.dtype}{list(column.shape)}"
        )
    return column
