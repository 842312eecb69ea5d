"""Takes the rows of a batch from a dataset with one indexing operation, dataset[indices], if possible."""

import os
import sys

from _unidle_shim.host.exception_origin import pass_on
from _unidle_shim.host.shapes import hidden_queries, unseen
from _unidle_shim.samples import own_state, packing, row_access, row_values, subsets
from _unidle_shim.source import purity

CHANGED = "the program changes how rows are taken while it trains"
SEEN = "a mode of torch, such as a default device, sees how rows are taken"
NOT_THE_SAME = "rows fetched together are not the same as rows fetched singly"
_ROWS_PER_TRY = 16
_ALIGNED = 64  # bytes, torch's tensors on the host
_ROUNDED_ONCE = 1 << 53  # whole numbers below are exact as doubles
_BYTES_PER_TRY = 1 << 20  # of rows; about six copies exist while they are compared

_torchs_own = None  # torch's functions for collating and taking rows, saved when it was imported


def remember():
    """Saves them before the program can change them."""
    global _torchs_own
    _torchs_own = _collating(), _taking()
    row_values.remember()
    subsets.remember()


def _collating():
    from torch.utils.data._utils import collate

    return collate.default_collate, dict(getattr(collate, "default_collate_fn_map", {}))


def _taking():
    torch = sys.modules["torch"]
    collate = torch.utils.data._utils.collate
    return (
        *(torch.stack, torch.as_tensor, torch.tensor, torch.Tensor.__getitem__),
        *(getattr(collate, "collate", None), torch.utils.data.TensorDataset.__getitem__),
    )


def are_torchs_own():
    """Whether rows are taken and collated by torch's own functions still."""
    return _collating() == _torchs_own[0] and _taking() == _torchs_own[1]


def known(loader, length):
    """Returns (whether rows of its dataset can be fetched together, why not). The first is None if unknown.
    An observed run never calls a dataset by itself: only a trial does."""
    why = why_not(loader)
    if why is not None:
        return False, why
    why = access_why_not(loader.dataset) if length else "its length is not known"
    if why is None and is_tensors(subsets.base_of(loader.dataset)):
        return True, None
    if why is None and not os.environ.get("UNIDLE_MUTED"):
        why = "only trials of unidle optimize do that"
    return (None, why) if why is not None else _tried(loader.dataset, length)


def is_tensors(dataset):
    """Whether it is torch's own dataset of plain tensors, which indexes each of them with one index or
    many."""
    import torch

    return (
        type(dataset) is torch.utils.data.TensorDataset
        and are_torchs_own()
        and all(type(one) is torch.Tensor and _is_plain(torch, one) for one in dataset.tensors)
    )


def _is_plain(torch, tensor):
    with hidden_queries(torch):
        dense, quantized = tensor.layout == torch.strided, tensor.is_quantized
        return dense and not quantized and tensor.device.type == "cpu" and not tensor.requires_grad


def _tried(dataset, length):
    import numpy

    drawn = purity.random_states()
    try:
        with numpy.errstate(all="ignore"):
            return _compared(dataset, length)
    finally:
        purity.restore(drawn)


def _compared(dataset, length):
    from torch.utils.data._utils.collate import default_collate

    rows = _BYTES_PER_TRY // max(1, _bytes_of(dataset[0]))
    if rows < 2:
        return None, "its rows are too large for that"
    for first in (0, length // 2):
        indices = [(first + 7 * number) % length for number in range(min(_ROWS_PER_TRY, rows, length))]
        batch, why = gather(dataset, indices)
        if why is None and not same(batch, default_collate([dataset[index] for index in indices])):
            why = NOT_THE_SAME
        if why is not None:
            return False, why
    return True, None


def _bytes_of(row):
    if isinstance(row, dict):
        row = list(row.values())
    if isinstance(row, (list, tuple)):
        return sum(_bytes_of(each) for each in row)
    return int(getattr(row, "nbytes", 0) or 0)


def gives_batches(dataset):
    """Whether it has a function of its own for the rows of a batch. That of a Subset calls the one of the
    dataset behind it."""
    return getattr(subsets.base_of(dataset), "__getitems__", None) is not None


def access_why_not(dataset):
    """Why the dataset must not be asked for rows that the program did not ask for; None if it may."""
    base = subsets.base_of(dataset)
    return subsets.why_not(dataset) or (None if is_tensors(base) else row_access.look(base)[1])


def gather(dataset, indices):
    """Returns (the rows as one batch, None), or (None, why the dataset cannot return many rows at once). The
    reason is empty for indices that are handed to the program's way: any but whole numbers."""
    try:
        base, numbers = subsets.numbers_of(dataset, indices)
        if numbers is None:
            return None, ""
        with sys.modules["numpy"].errstate(all="raise"):  # single rows warn of such numbers one by one
            found = base[numbers]
        return tensors(found, len(indices)), None
    except Exception as error:  # anything that the program's code raises when given many indices
        pass_on(error)
        return None, "the dataset cannot be asked for many rows at once (%s)" % type(error).__name__


@unseen
def tensors(found, count):
    """The batch as default_collate would return it: no two tensors share memory, and each begins where torch
    lets one begin, on which the rounding of sums may depend. Raises ValueError unless there is one row per
    index."""
    taken = []  # (begin, end) of the memory of each

    def converted(value):
        import numpy
        import torch

        if type(value) in (tuple, list):
            return [converted(item) for item in value]
        if type(value) is dict:
            return {key: converted(item) for key, item in value.items()}
        if isinstance(value, numpy.ndarray):
            value = torch.from_numpy(numpy.ascontiguousarray(value))
        if type(value) is not torch.Tensor or not value.dim() or value.shape[0] != count:
            raise ValueError("not a row for each index")
        if value.dtype == torch.float32 and value.dim() == 1 and (value.abs() >= _ROUNDED_ONCE).any():
            raise ValueError("single whole numbers are made doubles before they are rounded")
        return _apart(value.contiguous(), taken)

    return converted(found)


def _apart(tensor, taken):
    """The tensor, or a copy if it is a part of another, shares memory with one of those before, or is
    numpy's."""
    begin, end = _memory_of(tensor)
    shares = any(begin < last and first < end for first, last in taken)
    if shares or begin % _ALIGNED or tensor._base is not None:
        tensor = tensor.clone()
        begin, end = _memory_of(tensor)
    taken.append((begin, end))
    return tensor


def _memory_of(tensor):
    return tensor.data_ptr(), tensor.data_ptr() + tensor.numel() * tensor.element_size()


@unseen
def rows_of(batch, picked):
    if isinstance(batch, list):
        return [rows_of(item, picked) for item in batch]
    if isinstance(batch, dict):
        return {key: rows_of(item, picked) for key, item in batch.items()}
    return batch[picked]


def same(one, other):
    """Whether both are equal in kind, type, shape, layout and bytes."""
    try:
        return packing.packed(one) == packing.packed(other)
    except TypeError:
        return False


def collates_as_torch(function):
    """Whether it is torch's own, with torch's own treatment of each kind of value
    (default_collate_fn_map)."""
    return function is _torchs_own[0][0] and _collating() == _torchs_own[0]


def why_not(loader):
    if not loader._auto_collation:
        return "the loader fetches whole batches already"
    if gives_batches(loader.dataset):
        return "the dataset fetches whole batches already"
    if not collates_as_torch(loader.collate_fn):
        return "the program has its own collate function"
    stream = isinstance(loader.dataset, sys.modules["torch"].utils.data.IterableDataset)
    if stream or not hasattr(type(loader.dataset), "__getitem__"):
        return "the dataset gives a stream, not rows by index"
    return own_state.why(subsets.base_of(loader.dataset))
