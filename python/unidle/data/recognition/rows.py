"""One tensor of a sample as a row or window of an array: `self.x[i]`, `self.x[i : i + 30, 0]`."""

from __future__ import annotations

import ast
import dataclasses
import sys
from typing import Any, List, Optional, Tuple

from .function import Function

_KEEP = ("from_numpy", "as_tensor", "tensor", "asarray")  # preserve the values
_CASTS = {"float": "float32", "long": "int64", "double": "float64", "int": "int32", "half": "float16"}
_BUILT_IN = {"float": "float64", "int": "int64"}  # torch's types of Python numbers


class NotKnown(Exception):
    """The expression is not a row or a window."""


@dataclasses.dataclass
class Row:
    """Sample i is array[start + stride * i], or with a `length` that many rows from there on; `rest` is
    the index within each. `dtypes` are the conversions, in order."""

    name: str  # of the array in the program
    array: Any
    start: int
    stride: int
    length: int
    rest: tuple
    text: str
    dtypes: List[str]
    lacks: str = ""

    def __str__(self) -> str:
        return self.text

    def covers(self, samples: int) -> bool:
        """False if the last windows would be shorter: Python truncates slices, which do not form a batch."""
        last = self.start + self.stride * (samples - 1) + max(1, self.length)
        return self.start >= 0 and last <= len(self.array)

    def of_all(self, samples: int) -> Any:
        """Returns all samples stacked; windows are views."""
        array = self.array[(slice(None), *self.rest)] if self.rest else self.array
        for dtype in self.dtypes:
            array = _cast(array, dtype)
        stop = self.start + self.stride * (samples - 1) + max(1, self.length)
        array = array[self.start : stop]
        if not self.length:
            return array[:: self.stride]
        if hasattr(array, "unfold"):
            return array.contiguous().unfold(0, self.length, self.stride).movedim(-1, 1)
        import numpy as np

        windows = np.lib.stride_tricks.sliding_window_view(np.ascontiguousarray(array), self.length, axis=0)
        return np.moveaxis(windows[:: self.stride], -1, 1)


def _cast(array: Any, dtype: str) -> Any:
    torch = sys.modules["torch"]
    return torch.as_tensor(array).to(getattr(torch, dtype))


def row_of(node: ast.expr, function: Function, dataset: Any) -> Row:
    """Raises NotKnown for anything else."""
    node, dtypes = _unwrapped(node, function)
    if not isinstance(node, ast.Subscript):
        raise NotKnown
    name, array = _array(node.value, function, dataset)
    index = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    values = _Values(function, dataset)
    length = 0
    if isinstance(index[0], ast.Slice):
        if index[0].step is not None or index[0].upper is None or index[0].lower is None:
            raise NotKnown
        start, stride = values.line(index[0].lower)
        end, same = values.line(index[0].upper)
        length = end - start
        if same != stride or length < 1:
            raise NotKnown
    else:
        start, stride = values.line(index[0])
    if stride < 1:
        raise NotKnown  # does not depend on the sample's number, or runs backwards
    rest = tuple(values.fixed(one) for one in index[1:])
    text = ast.unparse(node.value)
    if rest:
        text += "[:, " + ", ".join(ast.unparse(one) for one in index[1:]) + "]"
    lacks = "" if array is not None else f"{name} is None where the loader is made (fill it before)"
    return Row(name, array, start, stride, length, rest, text, dtypes, lacks)


def _unwrapped(node: ast.expr, function: Function) -> Tuple[ast.expr, List[str]]:
    """Returns the expression without names and type conversions, and the types in order of conversion."""
    dtypes: List[str] = []
    while True:
        if isinstance(node, ast.Name) and node.id in function.values:
            node = function.values[node.id]
        elif isinstance(node, ast.Call):
            node, dtype = _argument(node, function)
            dtypes[:0] = [dtype] if dtype else []
        else:
            return node, dtypes


def _argument(call: ast.Call, function: Function) -> Tuple[ast.expr, Optional[str]]:
    """Returns the argument of a call that changes at most the type, and the type."""
    called = call.func
    if isinstance(called, ast.Name) and called.id in _BUILT_IN and len(call.args) == 1 and not call.keywords:
        if called.id in function.function.__globals__:
            raise NotKnown
        return call.args[0], _BUILT_IN[called.id]
    if not isinstance(called, ast.Attribute):
        raise NotKnown
    if called.attr in _CASTS and not call.args and not call.keywords:
        return called.value, _CASTS[called.attr]
    if called.attr not in _KEEP or not isinstance(called.value, ast.Name) or len(call.args) != 1:
        raise NotKnown
    module = getattr(function.function.__globals__.get(called.value.id), "__name__", "")
    if module not in ("torch", "numpy"):
        raise NotKnown
    dtype = None
    for keyword in call.keywords:
        text = ast.unparse(keyword.value)
        if keyword.arg != "dtype" or not text.startswith("torch."):
            raise NotKnown
        dtype = text[len("torch.") :]
    return call.args[0], dtype


def _array(node: ast.expr, function: Function, dataset: Any) -> Tuple[str, Any]:
    """Returns an attribute of the data set that is an array, a tensor, or still None."""
    if not (
        isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == function.self_name
        and node.attr in vars(dataset)
    ):
        raise NotKnown
    array = vars(dataset)[node.attr]
    kind = type(array)
    of_numpy = kind.__module__ == "numpy" and kind.__name__ in ("ndarray", "memmap")
    of_torch = kind.__module__ == "torch" and kind.__name__ == "Tensor"
    if array is not None and not of_numpy and not of_torch:
        raise NotKnown
    if array is not None and (array.ndim < 1 or of_torch and array.device.type != "cpu"):
        raise NotKnown
    return f"{type(dataset).__name__}.{node.attr}", array


class _Values:
    """Evaluates whole numbers of the program."""

    def __init__(self, function: Function, dataset: Any) -> None:
        self._function, self._dataset = function, dataset

    def line(self, node: ast.expr) -> Tuple[int, int]:
        """Returns (a, b) of a + b * index."""
        if isinstance(node, ast.Name):
            if node.id == self._function.index:
                return 0, 1
            if node.id in self._function.values:
                return self.line(self._function.values[node.id])
        if isinstance(node, ast.BinOp):
            a, b = self.line(node.left), self.line(node.right)
            if isinstance(node.op, ast.Add):
                return a[0] + b[0], a[1] + b[1]
            if isinstance(node.op, ast.Sub):
                return a[0] - b[0], a[1] - b[1]
            if isinstance(node.op, ast.Mult) and not (a[1] and b[1]):
                return a[0] * b[0], a[0] * b[1] + a[1] * b[0]
            raise NotKnown
        return self._whole(node), 0

    def fixed(self, node: ast.expr) -> Any:
        """Returns an index that is the same for all samples."""
        if isinstance(node, ast.Slice):
            ends = [None if one is None else self._steady(one) for one in (node.lower, node.upper, node.step)]
            return slice(*ends)
        return self._steady(node)

    def _steady(self, node: ast.expr) -> int:
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return -self._steady(node.operand)
        value, slope = self.line(node)
        if slope:
            raise NotKnown
        return value

    def _whole(self, node: ast.expr) -> int:
        value: Any = None
        if isinstance(node, ast.Constant):
            value = node.value
        elif isinstance(node, ast.Name):
            value = self._function.function.__globals__.get(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            if node.value.id == self._function.self_name:
                value = vars(self._dataset).get(node.attr)
        if type(value) is not int:
            raise NotKnown
        return value
