"""Takes the rows of a batch from a dataset by one indexing operation, dataset[indices], where it can be."""

from _unidle_shim.host.guard import pass_on
from _unidle_shim.samples import packing, row_access

NOT_THE_SAME = "rows fetched together are not the same as rows fetched singly"
_ROWS_PER_TRY = 48


def tried(loader, length):
    """(whether rows of its dataset can be fetched together, why not), before anybody asks for it. The first
    is None where that was not tried: only a dataset that does nothing but take rows is called when the
    program did not."""
    from torch.utils.data._utils.collate import default_collate

    why = why_not(loader)
    if why is not None:
        return False, why
    why = row_access.why_not(loader.dataset) if length else "its length is not known"
    if why is not None:
        return None, why
    for first in (0, length // 2):
        indices = [(first + 7 * number) % length for number in range(min(_ROWS_PER_TRY, length))]
        batch, why = gather(loader.dataset, indices)
        if why is None and not same(batch, default_collate([loader.dataset[index] for index in indices])):
            why = NOT_THE_SAME
        if why is not None:
            return False, why
    return True, None


def gather(dataset, indices):
    """(the rows as one batch, None), or (None, why the dataset cannot be asked for many rows at once)."""
    import numpy

    try:
        found = dataset[numpy.asarray(indices, dtype=numpy.int64)]
        return tensors(found, len(indices)), None
    except Exception as error:  # whatever the program's code raises when it is given many indices
        pass_on(error)
        return None, "the dataset cannot be asked for many rows at once (%s)" % type(error).__name__


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


def why_not(loader):
    from torch.utils.data._utils.collate import default_collate

    if not loader._auto_collation:
        return "the loader fetches whole batches already"
    if getattr(loader.dataset, "__getitems__", None) is not None:
        return "the dataset fetches whole batches already"
    if loader.collate_fn is not default_collate:
        return "the program has its own collate function"
    if not hasattr(type(loader.dataset), "__getitem__"):
        return "the dataset gives a stream, not rows by index"
    return None
