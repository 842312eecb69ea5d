"""The dataset behind torch.utils.data.Subset, of which random_split makes several."""

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
    for _ in range(_DEEPEST):
        if not _is_one(dataset):
            break
        dataset = dataset.dataset
    return dataset


def why_not(dataset):
    """Why looking up the numbers of rows may run code of the program, or give others than whole numbers; None
    if it cannot."""
    while _is_one(dataset):
        if type(dataset.indices) not in _kinds():
            return "the numbers of its part of the rows are no list"
        dataset = dataset.dataset
    return None


def _kinds():
    """Not tensors: their elements are tensors, which __getitem__ may treat in another way than numbers."""
    numpy = sys.modules.get("numpy")
    return (list, tuple, range, dict, *(() if numpy is None else (numpy.ndarray,)))


def numbers_of(dataset, indices):
    """base_of(dataset), and the numbers that the rows with these indices have in it, as an array: None unless
    they are whole numbers, in a list or an array."""
    numbers = _whole(indices)
    for _ in range(_DEEPEST):
        if numbers is None or not _is_one(dataset):
            break
        among = dataset.indices
        known = type(among) in _kinds()
        numbers = _whole([among[number] for number in numbers.tolist()]) if known else None
        dataset = dataset.dataset
    return dataset, numbers


def _whole(numbers):
    """As an array of 64 bits; None if there are none, or others than whole numbers."""
    numpy = sys.modules["numpy"]
    if type(numbers) not in (list, tuple, range, numpy.ndarray):
        return None
    if not all(one is int or issubclass(one, numpy.signedinteger) for one in set(map(type, numbers))):
        return None
    try:
        return numpy.asarray(numbers, dtype=numpy.int64) if len(numbers) else None
    except OverflowError:
        return None
