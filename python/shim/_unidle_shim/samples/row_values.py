"""What stands for the values of a row while __getitem__ is followed (row_code.py), and the conversions that
do the same for many rows as for each.

Left out is all that puts rows together, depends on how many there are (a sum, a shape, a new axis), or may
round otherwise for many numbers than for one.
"""

import dataclasses
import sys

_CASTS = {"float": False, "double": False, "long": True, "bool": True}  # name -> to whole numbers
_METHODS = (*_CASTS, "clone")  # of tensors
_TYPES = {"Tensor": False, "FloatTensor": False, "DoubleTensor": False, "LongTensor": True}
_FUNCTIONS = ("tensor", "as_tensor", "from_numpy", "is_tensor", *_TYPES)
_DTYPES = {"float32": False, "float64": False, "int64": True, "bool": True, "bool_": True}

_names = {}  # id -> (function or method, its name), saved when torch was imported
_dtypes = {}  # id -> (type of numbers, whether they are whole)


@dataclasses.dataclass(eq=False)
class Rows:
    """A value that each row has: a number, or an array of that many axes."""

    library: str  # "torch" or "numpy"
    axes: int
    whole: bool  # whole numbers only


@dataclasses.dataclass(eq=False)
class Fixed:
    """A value that is the same for all rows."""

    value: object


INDEX = object()  # the number of the row


def remember():
    """Saves torch's functions before the program can change them."""
    torch, numpy = sys.modules["torch"], sys.modules.get("numpy")
    for owner, names in ((torch, _FUNCTIONS), (torch.Tensor, _METHODS)):
        for name in names:
            _names[id(getattr(owner, name))] = getattr(owner, name), name
    for module, other in ((torch, "bool_"), (numpy, "bool")):  # numpy warned of its bool for a time
        for name in _DTYPES if module is not None else ():
            if name != other:
                _dtypes[id(getattr(module, name))] = getattr(module, name), _DTYPES[name]


def rows_of(value):
    """What stands for a row of the array; None for what is no dense array of numbers in memory."""
    torch, numpy = sys.modules["torch"], sys.modules.get("numpy")
    if type(value) is torch.Tensor:
        dense = value.layout == torch.strided and value.device.type == "cpu" and not value.is_quantized
        if not dense or value.requires_grad or value.is_complex() or not value.dim():
            return None
        return Rows("torch", value.dim() - 1, not value.is_floating_point())
    if numpy is not None and type(value) in (numpy.ndarray, numpy.memmap):
        if value.dtype.kind not in "biuf" or value.dtype == numpy.uint64 or not value.ndim:
            return None
        return Rows("numpy", value.ndim - 1, value.dtype.kind != "f")
    return None


def method(rows, name, given):
    """What rows.name(*given) gives for a row; None if it may be something else for many."""
    if rows.library == "torch":
        known = not given and _name(getattr(sys.modules["torch"].Tensor, name, None)) == name
        return Rows("torch", rows.axes, _CASTS.get(name, rows.whole)) if known and name in _METHODS else None
    if name == "copy" and not given:
        return rows
    whole = _whole(given[0]) if name == "astype" and len(given) == 1 else None
    return None if whole is None else Rows("numpy", rows.axes, whole)


def called(function, rows, words):
    """What function(rows, **words) gives for a row; None if it may be something else for many."""
    name = _name(function)
    if rows is INDEX:  # a number
        return Fixed(False) if name == "is_tensor" and not words else None
    of_numpy = rows.library == "numpy"
    if name in ("tensor", "as_tensor") and (of_numpy or name == "as_tensor"):  # torch warns of tensor(tensor)
        whole = rows.whole if not words else _whole(words["dtype"]) if list(words) == ["dtype"] else None
        # Single numbers of numpy: one that is no number, or too large, cannot be made a whole number.
        known = whole is not None and (rows.axes > 0 or not of_numpy or rows.whole or not whole)
    else:
        known = (name == "from_numpy" or name in _TYPES) and of_numpy and rows.axes > 0 and not words
        whole = _TYPES.get(name, rows.whole)
    return Rows("torch", rows.axes, whole) if known else None


def _name(function):
    return _names.get(id(function), (None, None))[1]


def _whole(dtype):
    """Whether numbers of that type are whole; None for types to which one number may be converted otherwise
    than many."""
    return _dtypes.get(id(dtype), (None, None))[1]
