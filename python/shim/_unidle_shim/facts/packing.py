"""Whether a model packs its sequences, by what its code names: then its layers compute nothing on padding."""

import types

from _unidle_shim.facts import module_methods
from _unidle_shim.host import places
from _unidle_shim.source.code_parts import parts_of

_PACKS = ("pack_padded_sequence", "pack_sequence")
_PACKED = "PackedSequence"
_MOST = 5000  # functions that are read


def packs(module, args, kwargs):
    """Whether its arguments are packed, or a method of its modules packs, or a function of the program that
    they name."""
    if any(type(value).__name__ == _PACKED for value in (*args, *kwargs.values())):
        return True
    ahead, seen = list(_methods_of(module)), set()
    while ahead and len(seen) < _MOST:
        function = ahead.pop()
        if function in seen:
            continue
        seen.add(function)
        names = {name for part in parts_of(function.__code__) for name in part.co_names}
        if not names.isdisjoint(_PACKS):
            return True
        for named in _functions_named(names, function.__globals__):
            if named.__name__ in _PACKS:
                return True
            if places.is_own(named.__code__):
                ahead.append(named)
    return False


def _methods_of(module):
    for kind in {kind for one in module.modules() for kind in type(one).__mro__}:
        members = dict(vars(kind))
        if not str(members.get("__module__")).startswith("torch."):
            yield from filter(None, map(module_methods.function_of, members.values()))


def _functions_named(names, variables):
    """Functions among these variables, and in modules among them."""
    named = [variables[name] for name in names if name in variables]
    for module in [one for one in named if type(one) is types.ModuleType]:
        named.extend(value for name, value in vars(module).items() if name in names)
    return [one for one in named if type(one) is types.FunctionType]
