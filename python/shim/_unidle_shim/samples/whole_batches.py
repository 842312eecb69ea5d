"""Takes the rows of a batch from a dataset by one indexing operation, dataset[indices], where it can be."""

import os

from _unidle_shim.host.exception_origin import pass_on
from _unidle_shim.host.shapes import unseen, untold
from _unidle_shim.samples import own_state, packing, row_access
from _unidle_shim.source import purity

NOT_THE_SAME = "rows fetched together are not the same as rows fetched singly"
_ROWS_PER_TRY = 16
_BYTES_PER_TRY = 1 << 20  # of rows; they are held some six times while they are compared

_torchs_own = None  # how torch collates and takes rows, as it was when it had been imported


def remember():
    """Before the program can change it."""
    global _torchs_own
    _torchs_own = _collating(), _row_of_tensors()


def _collating():
    from torch.utils.data._utils import collate

    return collate.default_collate, dict(getattr(collate, "default_collate_fn_map", {}))


def _row_of_tensors():
    from torch.utils.data import TensorDataset

    return TensorDataset.__getitem__


def known(loader, length):
    """(whether rows of its dataset can be fetched together, why not). The first is None where it is not
    known. A run that is only observed calls no dataset when the program did not: only a trial does."""
    why = why_not(loader)
    if why is not None:
        return False, why
    if _is_tensors(loader.dataset):
        return True, None
    why = row_access.why_not(loader.dataset) if length else "its length is not known"
    if why is None and not os.environ.get("UNIDLE_MUTED"):
        why = "only trials of unidle optimize do that"
    return (None, why) if why is not None else _tried(loader.dataset, length)


def _is_tensors(dataset):
    """torch's own dataset of plain tensors: one index or many, it indexes each of them."""
    import torch

    return (
        type(dataset) is torch.utils.data.TensorDataset
        and _row_of_tensors() is _torchs_own[1]
        and all(type(one) is torch.Tensor and _is_plain(torch, one) for one in dataset.tensors)
    )


def _is_plain(torch, tensor):
    with untold(torch):
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


def gather(dataset, indices):
    """(the rows as one batch, None), or (None, why the dataset cannot be asked for many rows at once)."""
    import numpy

    try:
        found = dataset[numpy.asarray(indices, dtype=numpy.int64)]
        return tensors(found, len(indices)), None
    except Exception as error:  # whatever the program's code raises when it is given many indices
        pass_on(error)
        return None, "the dataset cannot be asked for many rows at once (%s)" % type(error).__name__


@unseen
def tensors(value, count):
    """The batch as default_collate would hand it out. Raises ValueError for what is no row per index."""
    import numpy
    import torch

    if isinstance(value, tuple) and type(value) is tuple or isinstance(value, list):
        return [tensors(item, count) for item in value]
    if type(value) is dict:
        return {key: tensors(item, count) for key, item in value.items()}
    if isinstance(value, numpy.ndarray):
        value = torch.from_numpy(numpy.ascontiguousarray(value))
    if type(value) is not torch.Tensor or not value.dim() or value.shape[0] != count:
        raise ValueError("not a row for each index")
    return value.contiguous()


@unseen
def rows_of(batch, picked):
    if isinstance(batch, list):
        return [rows_of(item, picked) for item in batch]
    if isinstance(batch, dict):
        return {key: rows_of(item, picked) for key, item in batch.items()}
    return batch[picked]


def same(one, other):
    """Equal in kind, type, shape, layout and bytes."""
    try:
        return packing.packed(one) == packing.packed(other)
    except TypeError:
        return False


def collates_as_torch(function):
    """It is torch's own, and so is what it does with each kind of value (default_collate_fn_map)."""
    return function is _torchs_own[0][0] and _collating() == _torchs_own[0]


def why_not(loader):
    if not loader._auto_collation:
        return "the loader fetches whole batches already"
    if getattr(loader.dataset, "__getitems__", None) is not None:
        return "the dataset fetches whole batches already"
    if not collates_as_torch(loader.collate_fn):
        return "the program has its own collate function"
    if not hasattr(type(loader.dataset), "__getitem__"):
        return "the dataset gives a stream, not rows by index"
    return own_state.why(loader.dataset)
