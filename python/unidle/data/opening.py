"""Opens sources of the native library."""

from __future__ import annotations

import os
from typing import Any, List, Optional, Sequence, Union

from unidle import _native, _tensors
from unidle.data import options as check
from unidle.data.source import Source, Transform

PathLike = Union[str, bytes, "os.PathLike[str]"]
Paths = Union[PathLike, Sequence[PathLike]]


def native_source(kind: str, options: dict, arrays: Sequence[Any] = ()) -> int:
    """Returns the source's handle; 0 on failure."""
    library = _native.library()
    tensors = _tensors.describe_arrays(arrays)
    return library.unidle_source_open(kind.encode(), check.encode(kind, options), tensors, len(arrays))


def opened(
    kind: str, options: dict, arrays: Sequence[Any] = (), transform: Optional[Transform] = None
) -> Source:
    return Source(native_source(kind, options, arrays), arrays, transform)


def paths_of(kind: str, name: str, paths: Any) -> List[str]:
    """Accepts one path or several."""
    listed = [paths] if isinstance(paths, (str, bytes, os.PathLike)) else paths
    return [check.path(kind, one, name) for one in check.several(kind, name, listed) or []]
