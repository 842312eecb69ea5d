"""What calling a function of the program leaves behind, as far as its code and a look before and after tell."""

import dis
import gc
import inspect
import random
import sys
import types

from . import places

_MOST_DRAWS = 4        # a loader and a sampler draw one each
_MOST_COMPARED = 1000  # elements of a container, from either end
_RUNS_LATER = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


def function_of(code):
    """(function, None), or (None, why its calls cannot be left out)."""
    name = getattr(code, "co_qualname", code.co_name)
    if code.co_flags & _RUNS_LATER:
        return None, "%s is a generator or a coroutine" % name
    functions = [one for one in gc.get_referrers(code) if isinstance(one, types.FunctionType) and one.__code__ is code]
    if code.co_freevars or len(functions) != 1:
        return None, "%s is a closure, or there are several of it" % name
    return functions[0], None


def caller(frame):
    """Of what was called in `frame`: itself, or who called it where it only passes results on, as torch.no_grad() does."""
    while frame.f_back is not None and frame.f_code.co_name == "decorate_context":
        frame = frame.f_back
    return frame


def result_is_dropped(frame):
    """By the line that is just calling something there."""
    # f_lasti may lie behind the call, in what Python caches there.
    following = next((one for one in dis.get_instructions(frame.f_code) if one.offset > frame.f_lasti), None)
    return following is not None and following.opname == "POP_TOP"


def returns_nothing(code):
    before = None
    for one in dis.get_instructions(code):
        if one.opname == "RETURN_CONST" and one.argval is not None:
            return False
        if one.opname == "RETURN_VALUE" and not (before is not None and before.opname == "LOAD_CONST" and before.argval is None):
            return False
        before = one
    return True


def members(value):
    return getattr(value, "__dict__", {})


def contents(left):
    """Of numbers, texts, switches and containers by name: what can be compared later."""
    found = {}
    for name, value in left.items():
        if isinstance(value, (int, float, str, type(None))):
            found[name] = value
        elif isinstance(value, (list, dict, set)):
            parts = list(value)
            found[name] = tuple(map(id, parts[:_MOST_COMPARED] + parts[-_MOST_COMPARED:])), len(parts)
    return found


def stored(function, args):
    """Names of attributes and globals that the function sets, or what of the program it calls: of its module, of its object, and of the
    program's objects that these hold."""
    names = dict(function.__globals__, **members(args[0]) if args else {})
    names.update(_methods(type(args[0])) if args else {})
    codes, ahead, found = set(), [function], set()
    while ahead:
        code = _code(ahead.pop())
        if code is None or code in codes or not places.is_own(code):
            continue
        codes.add(code)
        found.update(one.argval for one in dis.get_instructions(code) if one.opname in ("STORE_ATTR", "STORE_GLOBAL"))
        for name in code.co_names:
            value = names.get(name)
            ahead.append(value)
            methods = _methods(type(value))
            if any(places.is_own(each) for each in map(_code, methods.values()) if each is not None):
                ahead.append(methods.get("__call__"))
                names.update((key, each) for key, each in dict(methods, **members(value)).items() if key not in names)
    return found


def _methods(kind):
    return {name: each for one in reversed(kind.__mro__) for name, each in vars(one).items() if _code(each) is not None}


def _code(value):
    value = getattr(value, "__func__", value) if isinstance(value, (types.MethodType, staticmethod, classmethod)) else value
    return getattr(inspect.unwrap(value), "__code__", None) if isinstance(value, types.FunctionType) else None


def states(torch):
    numpy = sys.modules.get("numpy")
    drawn = numpy.random.get_state() if numpy is not None and hasattr(numpy, "random") else None
    return torch.get_rng_state(), random.getstate(), drawn and (drawn[1].tobytes(),) + drawn[2:]


def draws(torch, before, after):
    """Numbers that torch's generator was asked for, each as loaders and samplers ask for a seed; None where it was something else."""
    if before[1:] != after[1:]:
        return None
    generator = torch.Generator()
    generator.set_state(before[0])
    for count in range(_MOST_DRAWS + 1):
        if torch.equal(generator.get_state(), after[0]):
            return count
        torch.empty((), dtype=torch.int64).random_(generator=generator)
    return None
