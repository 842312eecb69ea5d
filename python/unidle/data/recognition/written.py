"""The program's own data sets, recognised by what __getitem__ takes from their attributes."""

from __future__ import annotations

import ast
from typing import Any, List, Optional

from . import hints
from .found import Found, is_of
from .function import Function
from .rows import NotKnown, Row, row_of


def recognize(dataset: Any) -> Optional[Found]:
    if is_of(dataset, "torch.utils.data.dataset", "TensorDataset"):
        return _tensors(dataset)
    function = Function.of(getattr(type(dataset), "__getitem__", None))
    if function is None or hasattr(type(dataset), "__getitems__") or not hasattr(dataset, "__dict__"):
        return None
    try:
        return _rows(dataset, function)
    except NotKnown:
        return hints.of(dataset, function)


def _tensors(dataset: Any) -> Found:
    def open_source() -> Any:
        from unidle.data.sources import arrays

        return arrays(*dataset.tensors)

    return Found(
        source="arrays",
        code="unidle.data.arrays(*dataset.tensors)",
        open=open_source,
    )


def _of_fields(count: int) -> List[str]:
    return [] if count > 1 else ["its samples are single tensors, and batches of unidle.data are tuples"]


def _rows(dataset: Any, function: Function) -> Found:
    """Recognises a __getitem__ that returns only rows or windows of arrays."""
    rows = [row_of(element, function, dataset) for element in _returned(function)]
    length = _length(dataset)
    left = [one.lacks for one in rows if one.lacks] or _of_fields(len(rows))
    if not left and length is not None and any(not one.covers(length) for one in rows):
        left = ["its last samples reach beyond the end of the array"]
    windows = any(one.length for one in rows)
    readers = hints.readers(type(dataset).__init__) if not windows else None
    note = ""
    if readers is not None:
        note = (
            f"its rows come from pandas.read_csv ({readers[0]}:{readers[1]}): unidle.data.table reads CSV in "
            "parallel, and more of it than fits into memory"
        )

    def open_source() -> Any:
        from unidle.data.sources import arrays

        return arrays(*(one.of_all(len(dataset)) for one in rows))

    return Found(
        source="windows" if windows else "arrays",
        code=_code(rows, function) if windows else f"unidle.data.arrays({', '.join(map(str, rows))})",
        left=left,
        open=None if left else open_source,
        where=function.where,
        note=note,
    )


def _returned(function: Function) -> list:
    value = function.returned()
    if value is None:
        raise NotKnown
    return list(value.elts) if isinstance(value, (ast.Tuple, ast.List)) else [value]


def _length(dataset: Any) -> Optional[int]:
    try:
        return len(dataset)
    except Exception:
        return None


def _code(rows: List[Row], function: Function) -> str:
    """Returns the call that makes a source of windows; like() corrects the target's shape if it differs."""
    window = next(one for one in rows if one.length)
    behind = [one for one in rows if one is not window and one.start == window.start + window.length]
    horizon = next((one.length or 1 for one in behind), 1)
    stride = f", stride={window.stride}" if window.stride != 1 else ""
    return f"unidle.data.windows({window.name}, {window.length}, {horizon}{stride})"
