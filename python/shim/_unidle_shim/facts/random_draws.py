"""Finds transforms of a data set that draw random numbers, by the names that their code uses."""

import types

NAMES = {
    "random",
    "randint",
    "uniform",
    "choice",
    "choices",
    "shuffle",
    "sample",
    "gauss",
    "normal",
    "rand",
    "randn",
    "randperm",
    "bernoulli",
    "multinomial",
    "permutation",
    "standard_normal",
    "integers",
    "getrandbits",
    "RandomState",
    "default_rng",
}
_DEEPEST = 4  # a pipeline in a wrapper in a data set in a Subset
_MOST_PARTS = 100


def drawn_by(dataset):
    """The name of what draws when a sample is made: a transform's class, or the data set's __getitem__. None
    when nothing was found."""
    getter = getattr(type(dataset), "__getitem__", None)
    if _draws(getter):
        return "%s.__getitem__" % type(dataset).__name__
    ahead, seen = [(dataset, 0)], 0
    while ahead and seen < _MOST_PARTS:
        part, depth = ahead.pop(0)
        seen += 1
        if depth and callable(part) and any(_draws(one) for one in _methods(type(part))):
            return type(part).__name__
        if depth < _DEEPEST:
            ahead.extend((inner, depth + 1) for inner in _parts(part))
    return None


def _parts(part):
    """The callable objects that `part` holds, which may be pipelines of others."""
    held = list(getattr(part, "__dict__", {}).values())
    for value in held:
        for one in value if isinstance(value, (list, tuple)) and len(value) < _MOST_PARTS else (value,):
            if callable(one) and not isinstance(one, (type, types.FunctionType, types.BuiltinFunctionType)):
                yield one


def _methods(cls):
    for one in cls.__mro__:
        if one.__module__.split(".")[0] not in ("torch", "builtins"):  # torch.nn.Module itself draws nothing
            yield from list(vars(one).values())


def _draws(function):
    function = getattr(function, "__func__", function)
    code = getattr(function, "__code__", None)
    return code is not None and any(name.strip("_") in NAMES for name in code.co_names)
