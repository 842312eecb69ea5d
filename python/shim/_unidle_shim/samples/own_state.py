"""Whether a data set holds state that making a sample again would change, or that others change."""

import sys

from _unidle_shim.host.shapes import hidden_queries
from _unidle_shim.source import generators

_GENERATOR = "the dataset has a random generator of its own, which a sample made again would advance"
_SHARED = "the dataset has a value that processes share, so that samples may change without us seeing it"
_DEEPEST = 3  # subset, dataset, transform
_MOST = 200  # objects that are inspected
_SMALL = 64  # elements of a shared tensor: larger ones are data


def _is_shared(value):
    """Whether it is a multiprocessing counter, a manager's proxy, or a small tensor in shared memory."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        with hidden_queries(torch):
            small = value.layout == torch.strided and value.device.type == "cpu" and value.numel() <= _SMALL
            return small and value.is_shared()
    return type(value).__module__ in ("multiprocessing.sharedctypes", "multiprocessing.managers")


def why(dataset):
    """Why its samples must not be made again or kept; None if nothing was found in the data set's attributes,
    down to the third level."""
    kinds, level, seen = generators.kinds(), [dataset], 0
    for _ in range(_DEEPEST):
        below = []
        for owner in level:
            for value in list(getattr(owner, "__dict__", {}).values()):
                items = value[:20] if type(value) in (list, tuple) else (value,)
                for item in items:
                    seen += 1
                    if isinstance(item, kinds):
                        return _GENERATOR
                    if _is_shared(item):
                        return _SHARED
                    if seen > _MOST:
                        return None
                    below.append(item)
        level = below
    return None
