"""Side effects of a function of the program, from its code and by comparing state before and after a call."""

import collections
import dis
import gc
import inspect
import re
import sys
import types
from itertools import islice

from _unidle_shim.host import places
from _unidle_shim.source import element_stores, module_reads, stand_in

_MOST_COMPARED = 200  # elements of a container, at either end
_READS = {"LOAD_NAME", "LOAD_GLOBAL", "LOAD_ATTR", "LOAD_METHOD"}
_ASSIGNS = {"STORE_ATTR", "STORE_GLOBAL", "DELETE_ATTR", "DELETE_GLOBAL"}
_CATCHES = {"CHECK_EXC_MATCH", "JUMP_IF_NOT_EXC_MATCH"}
_STEPPED = re.compile("sched|plateau|optim")
_ENDS = {"exit", "_exit", "quit", "SystemExit", "KeyboardInterrupt", "StopIteration"}
_SAVES = {
    *("save", "savez", "savez_compressed", "savetxt", "tofile", "dump", "write_bytes", "push_to_hub"),
    *("to_pickle", "to_csv", "to_json", "to_excel", "to_parquet"),
}


def function_of(code):
    """Returns (function, None), or (None, why its calls cannot be left out)."""
    name = getattr(code, "co_qualname", code.co_name)
    why = stand_in.why_not(code)
    functions = [
        one for one in gc.get_referrers(code) if isinstance(one, types.FunctionType) and one.__code__ is code
    ]
    if why is None and len(functions) != 1:
        why = "several functions share its code"
    return (functions[0], None) if why is None else (None, "%s: %s" % (name, why))


def caller(frame):
    """The caller of the function called in `frame`: that frame, or its caller if it only passes results on,
    as torch.no_grad() does."""
    while frame.f_back is not None and frame.f_code.co_name == "decorate_context":
        frame = frame.f_back
    return frame


def result_is_dropped(frame):
    """Whether the line that is now making a call there drops the result."""
    # f_lasti may point after the call, into Python's inline caches.
    following = next((one for one in dis.get_instructions(frame.f_code) if one.offset > frame.f_lasti), None)
    return following is not None and following.opname == "POP_TOP"


def returns_nothing(code):
    before = None
    for one in dis.get_instructions(code):
        if one.opname == "RETURN_CONST" and one.argval is not None:
            return False
        if one.opname == "RETURN_VALUE" and not _returns_none(before, one):
            return False
        before = one
    return True


def _returns_none(before, returning):
    """A jump brings another value there than the instruction before, as in `return value or None`."""
    loads_none = before is not None and before.opname == "LOAD_CONST" and before.argval is None
    return loads_none and not returning.is_jump_target


def members(value):
    return getattr(value, "__dict__", {})


def contents(left):
    """Numbers, texts, switches and containers by name, in a form that can be compared later."""
    found = {}
    for name, value in left.items():
        if isinstance(value, (int, float, str, type(None))):
            found[name] = value
        elif isinstance(value, (list, collections.deque)):
            ends = list(islice(value, _MOST_COMPARED)) + list(islice(reversed(value), _MOST_COMPARED))
            found[name] = tuple(map(id, ends)), len(value)
        elif isinstance(value, (dict, set)):
            parts = list(islice(value.items() if isinstance(value, dict) else value, _MOST_COMPARED))
            found[name] = (
                tuple(id(each[1]) if isinstance(value, dict) else id(each) for each in parts),
                len(value),
            )
    return found


def stored(function, args):
    """Names of attributes and globals assigned by the function, or by the program's functions that it calls,
    and of containers whose elements these assign. The functions are those of its module, of the program's
    modules that it names, of its object, and of the program's objects that these hold."""
    names = set()
    for code in _reachable(function, args):
        names.update(one.argval for one in dis.get_instructions(code) if one.opname in _ASSIGNS)
        names.update(*(within for made, within in element_stores.of(code) if not made))
    return names


def leaves_something(function, args):
    """Whether one of these functions assigns an attribute, a global, or an element of a container that it did
    not make itself."""
    return any(
        any(one.opname in _ASSIGNS for one in dis.get_instructions(code))
        or not all(made for made, _ in element_stores.of(code))
        for code in _reachable(function, args)
    )


def reads_of(function, args):
    """What these functions read from modules: (the globals of the module, (name, attribute, ...)), sorted."""
    found = {
        (names.get("__name__"), read): names
        for code, names in _reachable(function, args).items()
        for read in module_reads.reads(code)
    }
    return [(found[key], key[1]) for key in sorted(found, key=str)]


def used(function, args):
    """Names used by the function, or by the program's functions that it calls."""
    return {name for code in _reachable(function, args) for name in code.co_names}


def names_of_loop(codes, function):
    """Names read by the code on the way to a training step, and by the program's functions and methods that
    it calls by name, except by `function` and what it calls."""
    ahead = [code for code in codes if places.is_own(code)]
    functions = [one for one in gc.get_referrers(*ahead) if isinstance(one, types.FunctionType)]
    callable_by = {}  # name -> code of the program's functions and methods
    for one in [function] + [one for one in functions if one.__code__ in ahead]:
        _add_callable(one.__globals__, callable_by)
    apart = set(_closure([function.__code__], callable_by, set(ahead)))
    closure = _closure(ahead, callable_by, apart)
    return set().union(*closure.values())


def _closure(codes, callable_by, apart):
    """These codes and those that they call by name, without those in `apart`: {code: names that it reads}."""
    found, ahead = {}, list(codes)
    while ahead:
        code = ahead.pop()
        if code not in found and code not in apart:
            found[code] = {name for part in _parts(code, apart) for name in _read_by(part)}
            ahead.extend(called for name in found[code] for called in callable_by.get(name, ()))
    return found


def _parts(code, apart=()):
    """The code, and the code inside it: generator expressions, lambdas, functions within a function. Not the
    functions and classes of a module, which its code may never call: they are found by name."""
    found = [code]
    for part in found:  # which grows
        inner = [one for one in part.co_consts if isinstance(one, types.CodeType) and one not in apart]
        if part is code and not code.co_flags & inspect.CO_NEWLOCALS:
            inner = [one for one in inner if one.co_name.startswith("<")]
        found.extend(inner)
    return found


def _read_by(code):
    """Names of globals and attributes that the code reads; the opcodes for that differ between versions."""
    for one in dis.get_instructions(code):
        if one.opcode in dis.hasname and one.opname.startswith(("LOAD_", "IMPORT_FROM")):
            yield one.argval


def _add_callable(given, callable_by):
    """The program's functions among these names, and the methods of its classes there, by name."""
    kinds = [kind for kind in list(given.values()) if isinstance(kind, type)]
    for names in [given, *map(_methods, kinds)]:
        for name, value in list(names.items()):
            code = code_of(value)
            if code is not None and places.is_own(code):
                callable_by.setdefault(name, set()).add(code)


def catches(codes):
    """Whether the code catches exceptions of a kind that it names."""
    return any(one.opname in _CATCHES for code in codes for one in dis.get_instructions(code))


def raises(function, args):
    """Whether the function, or one of the program's functions that it calls, raises an exception itself."""
    return any(
        one.opname == "RAISE_VARARGS" and one.arg
        for code in _reachable(function, args)
        for one in dis.get_instructions(code)
    )


def schedules(names):
    """Whether these names step a scheduler, or an optimiser; environments have steps too."""
    return "step" in names and any(_STEPPED.search(name.lower()) for name in names)


def ends_training(names, function):
    """The name that can end the training loop from inside the function, through an exception of the program's
    own or the end of the process. None if there is none."""
    for name in sorted(names):
        value = function.__globals__.get(name)
        own = (
            isinstance(value, type)
            and issubclass(value, BaseException)
            and module_reads.is_module_of_program(sys.modules.get(value.__module__))
        )
        if own or name in _ENDS:
            return name
    return None


def saves(names):
    """The name that writes a result to a file; None if there is none. Pictures and lines of text do not
    count."""
    return next(
        (
            name
            for name in sorted(names)
            if name in _SAVES or name.startswith("save_") and name != "save_image"
        ),
        None,
    )


def calls_of(function, kind):
    """Functions of the program that the function calls by a name of its module or of the class, and that can
    be replaced."""
    code, names = code_of(function), dict(function.__globals__, **_methods(kind))
    if code is None or not places.is_own(code):
        return []
    called = {name: _function(names.get(name)) for name in code.co_names if not name.startswith("__")}
    return [
        each
        for each in called.values()
        if each is not None and places.is_own(each.__code__) and stand_in.why_not(each.__code__) is None
    ]


def _reachable(function, args):
    """The code of the function and of the program's functions that it calls, each with its globals."""
    names = dict(members(args[0]), **_methods(type(args[0]))) if args else {}
    codes, ahead = {}, [function]
    while ahead:
        one = _function(ahead.pop())
        one = None if one is None else stand_in.original_of(one)
        if one is None or one.__code__ in codes or not places.is_own(one.__code__):
            continue
        parts = _parts(one.__code__)
        codes.update((part, one.__globals__) for part in parts)
        for value in [each for part in parts for each in _named_by(part, one.__globals__, names)]:
            ahead.append(value)
            for key, each in _within(value).items():
                names.setdefault(key, each)
                if key == "__call__":
                    ahead.append(each)
    return codes


def _named_by(code, names, held):
    """What the code names: among what objects hold, in its module, and in other modules of the program."""
    named = [held.get(name) for name in code.co_names]
    return named + [module_reads.followed(names, read) for read in module_reads.reads(code)]


def _within(value):
    """What a function that has the value may call: the members of a module or an object of the program."""
    if module_reads.is_module_of_program(value):
        return {key: each for key, each in vars(value).items() if not key.startswith("__")}
    methods = _methods(type(value))
    if any(places.is_own(each) for each in map(code_of, methods.values()) if each is not None):
        return dict(methods, **members(value))
    return {}


def _methods(kind):
    return {
        name: each
        for one in reversed(kind.__mro__)
        for name, each in vars(one).items()
        if code_of(each) is not None
    }


def _function(value):
    """The Python function behind the value; None if there is none."""
    value = (
        getattr(value, "__func__", value)
        if isinstance(value, (types.MethodType, staticmethod, classmethod))
        else value
    )
    value = inspect.unwrap(value) if isinstance(value, types.FunctionType) else None
    return value if isinstance(value, types.FunctionType) else None


def code_of(value):
    """The code of the Python function behind the value; None if there is none."""
    function = _function(value)
    return None if function is None else function.__code__
