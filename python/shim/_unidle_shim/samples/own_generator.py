"""Whether a data set draws from a random generator of its own: a sample made again would advance it."""

import random
import sys

WHY = "the dataset has a random generator of its own, which a sample made again would advance"
_DEEPEST = 3  # subset, dataset, transform
_MOST = 200  # objects that are looked at


def _kinds():
    kinds = [random.Random]
    numpy, torch = sys.modules.get("numpy"), sys.modules.get("torch")
    if numpy is not None:
        kinds += [numpy.random.Generator, numpy.random.RandomState]
    if torch is not None:
        kinds.append(torch.Generator)
    return tuple(kinds)


def found_in(dataset):
    """True when one is among the attributes of the data set, of what these hold, or of what those do."""
    kinds, level, seen = _kinds(), [dataset], 0
    for _ in range(_DEEPEST):
        below = []
        for owner in level:
            for value in list(getattr(owner, "__dict__", {}).values()):
                items = value[:20] if type(value) in (list, tuple) else (value,)
                for item in items:
                    seen += 1
                    if isinstance(item, kinds):
                        return True
                    if seen > _MOST:
                        return False
                    below.append(item)
        level = below
    return False
