"""Passes arrays to the native library, and wraps its tensors for torch or numpy, without a copy."""

from __future__ import annotations

import ctypes
import functools
import sys
from typing import Any, Sequence

from unidle import _native
from unidle.errors import MissingError, UsageError

_CODES = {"i": 0, "u": 1, "f": 2, "b": 6}
_KINDS = {code: kind for kind, code in _CODES.items()}
_BFLOAT = 4

_new_capsule = ctypes.pythonapi.PyCapsule_New
_new_capsule.restype = ctypes.py_object
_new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
_is_capsule_of = ctypes.pythonapi.PyCapsule_IsValid
_is_capsule_of.restype = ctypes.c_int
_is_capsule_of.argtypes = [ctypes.py_object, ctypes.c_char_p]


@functools.lru_cache(maxsize=None)
def numpy() -> Any:
    try:
        import numpy as module
    except ImportError as error:
        raise MissingError("numpy: is needed for this (python -m pip install numpy)") from error
    return module


def values_of(tensor: Any) -> Any:
    """Returns a contiguous tensor in host memory. Resolves conjugated and negated views, which have no
    memory of their own."""
    return tensor.detach().cpu().resolve_conj().resolve_neg().contiguous()


def as_numpy(array: Any) -> Any:
    """Returns the values as a numpy array in this machine's byte order, with contiguous rows.

    Copies only if necessary.
    """
    np = numpy()
    if hasattr(array, "detach"):  # a torch tensor
        array = array.detach()
        if getattr(array, "is_nested", False):
            raise UsageError("array: expected a dense tensor, found a nested one (give its parts as a list)")
        if array.device.type != "cpu":
            raise UsageError(f"array: expected it in the host's memory, found it on {array.device}")
        if str(array.layout) != "torch.strided":
            raise UsageError(f"array: expected a dense tensor, found one of layout {array.layout}")
        array = array.float() if str(array.dtype) == "torch.bfloat16" else array
        try:
            array = array.resolve_conj().resolve_neg().numpy()
        except TypeError:
            raise UsageError(f"array: expected numbers that numpy has too, found {array.dtype}") from None
    if isinstance(array, np.ma.MaskedArray) and np.ma.is_masked(array):
        raise UsageError(
            "array: expected all values to be there, found masked ones (fill them: array.filled(0))"
        )
    try:
        array = np.asarray(array)
    except ValueError as error:
        raise UsageError(f"array: {error}") from None
    if array.dtype.kind not in _CODES or array.dtype.itemsize > 8:
        found = f"{array.dtype}{_advice(array.dtype)}"
        raise UsageError(f"array: expected real numbers or booleans of up to 8 bytes, found {found}")
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    whole_rows = array.ndim == 0 or len(array) == 0 or array[0].flags.c_contiguous
    if not whole_rows or any(stride % array.itemsize for stride in array.strides):
        array = np.ascontiguousarray(array)
    return array


def _advice(dtype: Any) -> str:
    real = {"complex64": "float32", "complex128": "float64"}.get(dtype.name)
    if real:
        return f" (array.view({real!r}), or torch.view_as_real, has its real and imaginary parts)"
    if dtype.kind in "US":
        return " (np.unique(array, return_inverse=True)[1] has a number for each text)"
    return " (array.view('int64') has its numbers)" if dtype.kind in "Mm" else ""


def as_host(array: Any) -> Any:
    """Like as_numpy(), but keeps torch's bfloat16: two-byte values, marked in the dtype's metadata."""
    if str(getattr(array, "dtype", "")) != "torch.bfloat16" or array.device.type != "cpu":
        return as_numpy(array)
    import torch

    bits = as_numpy(array.detach().view(torch.int16))
    return bits.view(numpy().dtype("int16", metadata={"bfloat16": True}))


def as_ragged(arrays: Any) -> Any:
    """For arrays that differ only in their first extent, returns the concatenated rows, and int64 [arrays
    + 1] with the start of each. None for anything else."""
    if not isinstance(arrays, (list, tuple)) or not all(getattr(one, "shape", ()) for one in arrays):
        return None
    if len({one.shape[0] for one in arrays}) < 2:
        return None
    np = numpy()
    parts = [as_host(one) for one in arrays]
    if len({(one.shape[1:], one.dtype, _is_bfloat(one)) for one in parts}) > 1:
        raise UsageError("array: expected a list of arrays of one type that differ in their first axis alone")
    starts = np.cumsum([0, *(len(one) for one in parts)], dtype=np.int64)
    return [np.concatenate(parts).view(parts[0].dtype), starts]  # numpy drops the mark of as_host() there


def _is_bfloat(array: Any) -> bool:
    return "bfloat16" in (array.dtype.metadata or {})


def _type_of(array: Any) -> _native.Type:
    code = _BFLOAT if _is_bfloat(array) else _CODES[array.dtype.kind]
    return _native.Type(code, array.dtype.itemsize * 8, 1)


def describe_arrays(arrays: Sequence[Any]) -> Any:
    """Describes numpy arrays as a C array of tensors, valid as long as they and the result live."""
    tensors = (_native.Tensor * max(1, len(arrays)))()
    for tensor, array in zip(tensors, arrays):
        tensor.data = array.ctypes.data
        tensor.device = _native.Device(1, 0)
        tensor.ndim = array.ndim
        tensor.dtype = _type_of(array)
        tensor.shape = (ctypes.c_int64 * array.ndim)(*array.shape)
        tensor.strides = (ctypes.c_int64 * array.ndim)(*(s // array.itemsize for s in array.strides))
    return tensors


def release(address: int) -> None:
    """Gives a tensor of the library back that nobody has taken over."""
    managed = _native.Managed.from_address(address)
    managed.deleter(ctypes.byref(managed))


class _Held:
    """Memory of a batch for numpy, released when no array uses it any more."""

    _managed: Any = None  # also where a signal handler's exception ends __init__ at once

    def __init__(self, address: int) -> None:
        self._managed = _native.Managed.from_address(address)
        tensor = self._managed.tensor
        size = tensor.dtype.bits // 8
        self.__array_interface__ = {
            "version": 3,
            "data": (tensor.data, False),
            "shape": tuple(tensor.shape[axis] for axis in range(tensor.ndim)),
            "typestr": ("|" if size == 1 else "<" if sys.byteorder == "little" else ">")
            + _KINDS[tensor.dtype.code]
            + str(size),
        }

    def __del__(self) -> None:
        if self._managed is not None:
            self._managed.deleter(ctypes.byref(self._managed))


def to_numpy(address: int) -> Any:
    managed = _native.Managed.from_address(address)
    if managed.tensor.dtype.code == _BFLOAT:
        release(address)
        raise UsageError("loader option tensors: numpy has no bfloat16; expected torch")
    return numpy().asarray(_Held(address))


def to_torch(address: int) -> Any:
    from torch.utils import dlpack

    capsule = _new_capsule(address, b"dltensor", None)
    try:
        return dlpack.from_dlpack(capsule)
    except (
        BaseException
    ):  # also from a signal handler, when torch owns the memory and has renamed the capsule
        if _is_capsule_of(capsule, b"dltensor"):
            release(address)
        raise
