"""Random generators of the program's own, and whether a call drew from one: those that its arguments, its
function and the program's modules hold, also in loaders, samplers and data sets.

What an object holds is read as Python's garbage collector reads it, so that no code of the program runs.
"""

import collections
import gc
import random
import sys
import types
from itertools import islice

from _unidle_shim.host import places
from _unidle_shim.host.shapes import unseen
from _unidle_shim.source import module_reads

_MOST = 100_000  # objects
_MOST_ENTRIES = 200  # of a list; more are data
_MOST_NAMES = 2_000  # of a dictionary, which may hold the names of a module or class
_LEAVES = {
    *(type(None), bool, int, float, complex, str, bytes, bytearray, range, slice),
    *(types.CodeType, types.FrameType, types.TracebackType),
}


def kinds():
    found = [random.Random]
    numpy, torch = sys.modules.get("numpy"), sys.modules.get("torch")
    if numpy is not None:
        found += [numpy.random.Generator, numpy.random.RandomState, numpy.random.BitGenerator]
    if torch is not None:
        found.append(torch.Generator)
    return tuple(found)


def states(*roots):
    """[(generator, its state)] of the generators that these objects hold, but for torch's default one. None
    if there is more than can be looked through."""
    wanted, leaves = kinds(), _classes_of_data()
    seen, ahead, found = {}, list(roots), []
    while ahead:
        value = ahead.pop()
        kind = type(value)
        if kind in _LEAVES or id(value) in seen or issubclass(kind, leaves):
            continue
        seen[id(value)] = value  # kept, so that no other object gets its id
        if len(seen) > _MOST:
            return None
        if issubclass(kind, wanted):
            found.append(value)
        else:
            ahead.extend(_held_by(value, kind))
    torch = sys.modules.get("torch")
    default = getattr(torch, "default_generator", None)
    return [(one, _state(one)) for one in found if one is not default]


def moved(before):
    """Whether one of them has drawn since."""
    return any(_state(one) != state for one, state in before)


def _classes_of_data():
    numpy, torch = sys.modules.get("numpy"), sys.modules.get("torch")
    found = () if torch is None else (torch.Tensor,)
    return found if numpy is None else (*found, numpy.ndarray)


@unseen
def _state(generator):
    torch, numpy = sys.modules["torch"], sys.modules.get("numpy")
    if isinstance(generator, torch.Generator):
        return bytes(generator.get_state().numpy())
    if isinstance(generator, random.Random):
        if isinstance(generator, random.SystemRandom):
            return None
        return random.Random.__base__.getstate(generator), getattr(generator, "gauss_next", None)
    if isinstance(generator, numpy.random.RandomState):
        return _comparable(generator.get_state(legacy=False))
    bits = generator if isinstance(generator, numpy.random.BitGenerator) else generator.bit_generator
    return _comparable(bits.state)


def _comparable(state):
    if isinstance(state, dict):
        return tuple((name, _comparable(each)) for name, each in state.items())
    return state.tobytes() if hasattr(state, "tobytes") else state


def _held_by(value, kind):
    """What the object holds. Libraries are not looked through, only what they hold of the program's."""
    if issubclass(kind, dict):
        return list(islice(dict.values(value), _MOST_NAMES))
    if issubclass(kind, (list, tuple, set, frozenset, collections.deque)):
        return list(islice(_base_of(kind).__iter__(value), _MOST_ENTRIES))
    if issubclass(kind, types.ModuleType):
        return gc.get_referents(value) if module_reads.is_module_of_program(value) else ()
    if issubclass(kind, type):
        module = type.__getattribute__(value, "__module__")
        return gc.get_referents(value) if module_reads.is_module_of_program(sys.modules.get(module)) else ()
    if kind is types.FunctionType and not places.is_own(value.__code__):
        return value.__closure__, value.__defaults__, value.__kwdefaults__
    module = type.__getattribute__(kind, "__module__")
    ours = isinstance(module, str) and module.startswith("_unidle_shim.")
    return () if ours else gc.get_referents(value)


def _base_of(kind):
    return next(one for one in (list, tuple, set, frozenset, collections.deque) if issubclass(kind, one))
