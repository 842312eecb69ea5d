"""Whether a dataset's __getitem__ gives for many indices at once the rows that it gives for each, and changes
nothing: only then is it asked for rows when the program did not ask."""

import sys
import types

from _unidle_shim.host.shapes import hidden_queries
from _unidle_shim.samples import row_code, row_values


def look(dataset):
    """Returns (the arrays whose rows it gives, None), or (None, why not). The arrays are equal to those of
    another look if they are the same ones, in the same layout."""
    with hidden_queries(sys.modules["torch"]):
        if row_values.rows_of(dataset) is not None:
            return _Arrays([dataset]), None
        kinds = type(dataset).__mro__
        function = next((vars(kind)["__getitem__"] for kind in kinds if "__getitem__" in vars(kind)), None)
        if not isinstance(function, types.FunctionType):
            return None, "its __getitem__ is no function in Python"
        try:
            found, arrays = row_code.follow(function, dataset)
        except row_code.Refused as refused:
            return None, refused.args[0]
        if not _are_rows(found):
            return None, "its __getitem__ returns something else than rows"
        return _Arrays(arrays), None


class _Arrays:
    def __init__(self, arrays):
        self._arrays = arrays
        self._layouts = [
            (one.dtype, one.shape, one.strides if hasattr(one, "strides") else one.stride()) for one in arrays
        ]

    def __eq__(self, other):
        same = len(self._arrays) == len(other._arrays) and self._layouts == other._layouts
        return same and all(one is another for one, another in zip(self._arrays, other._arrays))


def _are_rows(value):
    if type(value) is dict:
        value = list(value.values())
    if type(value) in (tuple, list):
        return len(value) > 0 and all(map(_are_rows, value))
    return isinstance(value, row_values.Rows)
