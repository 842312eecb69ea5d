"""How many samples a batch has."""

from collections import UserDict

from _unidle_shim.host.shapes import length_of_nested, shape_of

_MOST_VALUES = 64


def size_of(value):
    """The number of samples in a batch: the first dimension of its first tensor; without one, the length of
    its first list of numbers or texts, such as the nodes of a graph; 0 without either."""
    return _rows_of(value, 0) or _length_of_values(value, 0)


def _rows_of(value, depth):
    kind = type(value)
    if kind is list or kind is tuple:
        for item in value:
            shape = shape_of(item)
            if isinstance(shape, tuple):
                if shape and type(shape[0]) is int:
                    return shape[0]
                continue  # a number
            size = _rows_of(item, depth + 1) if depth < 4 else 0
            if size:
                return size
        return 0
    shape = shape_of(value)
    if shape is not None:
        try:
            if not len(shape):
                return 1
            # When the model is being traced, it is a symbol, whose value must not be read.
            return shape[0] if type(shape[0]) is int else 0
        except (TypeError, IndexError):
            return 0
    if depth > 3 or value is None or isinstance(value, (str, bytes, int, float)):
        return 0
    length = length_of_nested(value)
    if length is not None:
        return length
    if isinstance(value, dict):
        return _rows_of(list(dict.values(value)), depth + 1)
    if isinstance(value, UserDict):
        return _rows_of(value.__dict__.get("data"), depth + 1)
    if isinstance(value, (list, tuple)):
        return _rows_of(list(value), depth)
    graphs = value.num_graphs if hasattr(kind, "num_graphs") else None
    return graphs if isinstance(graphs, int) else 0


def _length_of_values(value, depth):
    if isinstance(value, dict):
        value = list(dict.values(value))
    if depth > 3 or not isinstance(value, (list, tuple)) or not value:
        return 0
    first = value[0]
    if isinstance(first, (str, int, float)) or shape_of(first) == ():
        return len(value)
    return next(filter(None, (_length_of_values(item, depth + 1) for item in value)), 0)


def samples_of(batch, items):
    """The number of samples in a batch that the loader made of `items` items of the dataset; None if that is
    not known. An item may be a whole batch, and the first dimension may be of something else."""
    size = size_of(batch)
    if items is None or size <= 1 or size == items:
        return size
    lengths = _Lengths(batch)
    if items > 1:
        return items if size > items or items in lengths.all() else size
    # Inputs and targets of a whole batch have as many rows. A picture and its label have not.
    alone = len(lengths.tensors) == 1 and not lengths.numbers
    return size if alone or lengths.tensors.count(size) > 1 else 1


class _Lengths:
    """The first dimensions of the tensors in a batch, the lengths of the sequences that hold them, and the
    number of tensors and values without a dimension."""

    def __init__(self, batch):
        self.tensors, self.sequences, self.numbers, self.left = [], [], 0, _MOST_VALUES
        self._add(batch, 0)

    def all(self):
        return self.tensors + self.sequences

    def _add(self, value, depth):
        self.left -= 1
        if self.left < 0 or value is None:
            return
        shape = shape_of(value)
        if shape is not None:
            try:
                if len(shape):
                    self.tensors.append(shape[0])
                else:
                    self.numbers += 1
            except TypeError:  # not a shape
                pass
        elif isinstance(value, (dict, list, tuple, UserDict)):
            if depth < 4:
                self._add_each(value, depth)
        else:
            self.numbers += 1

    def _add_each(self, value, depth):
        if isinstance(value, UserDict):
            value = value.__dict__.get("data") or {}
        if isinstance(value, dict):
            value = list(dict.values(value))
        elif depth:
            self.sequences.append(len(value))
        for one in value[: self.left] if isinstance(value, (list, tuple)) else ():
            self._add(one, depth + 1)
