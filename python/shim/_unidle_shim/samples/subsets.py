"""The dataset behind torch.utils.data.Subset, of which random_split makes several."""

import operator
import sys

_DEEPEST = 5
_METHODS = "__getitem__", "__getitems__"
_torchs_own = None  # Subset's own methods, saved when torch was imported


def remember():
    """Saves them before the program can change them."""
    global _torchs_own
    _torchs_own = _methods()


def _methods():
    kind = sys.modules["torch"].utils.data.Subset
    return kind, [getattr(kind, name, None) for name in _METHODS]


def _is_one(dataset):
    return (
        _torchs_own is not None
        and type(dataset) is _torchs_own[0]
        and _methods() == _torchs_own
        and not any(name in vars(dataset) for name in _METHODS)
    )


def base_of(dataset):
    """The dataset whose rows it picks; itself if it is no Subset of torch."""
    return rows_of(dataset, ())[0]


def rows_of(dataset, indices):
    """base_of(dataset), and the numbers that the rows with these indices have in it."""
    for _ in range(_DEEPEST):
        if not _is_one(dataset):
            break
        numbers = dataset.indices
        dataset, indices = dataset.dataset, [operator.index(numbers[index]) for index in indices]
    return dataset, indices
