"""What code reads from modules, by its instructions: names with the attributes that follow them, and imports.
Code within it (lambdas, comprehensions) is not included."""

import dis
import importlib.machinery
import importlib.util
import sys
import types

from _unidle_shim.host import places

_NAMES = ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS")
_ATTRIBUTES = ("LOAD_ATTR", "LOAD_METHOD")
_NOTHING = ("EXTENDED_ARG", "CACHE", "NOP")
_BY_TEXT = {"__import__", "eval", "exec", "globals", "import_module"}


def is_module_of_program(value):
    """Whether it is a module of the program: one of its files or folders, or one that it made."""
    if not isinstance(value, types.ModuleType):
        return False
    named = vars(value)
    file = named.get("__file__") or next(iter(named.get("__path__") or ()), None)
    if file is None:
        return value.__name__ == "__main__" or named.get("__spec__") is None
    return places.is_own_file(file)


def reads(code):
    """Sorted (name, attribute, attribute of that, ...), of each global name that the code reads."""
    ops, found = _ops(code), set()
    for at, one in enumerate(ops):
        if one.opname in _NAMES:
            end = at + 1
            while end < len(ops) and ops[end].opname in _ATTRIBUTES:
                end += 1
            found.add(tuple(each.argval for each in ops[at:end]))
    return sorted(found)


def followed(names, read):
    """The present value of what `reads` found: of the name, or of its attribute if it is a module of the
    program."""
    value = names.get(read[0])
    for step in read[1:]:
        if not is_module_of_program(value):
            break
        value = vars(value).get(step)
    return value


def imports(code, names):
    """(module, attribute) of each import statement; the attribute is None if the module itself is imported.
    `names`: the globals of the code."""
    ops, found = _ops(code), []
    for at, one in enumerate(ops):
        if one.opname != "IMPORT_NAME":
            continue
        level, attributes = ops[at - 2].argval, ops[at - 1].argval
        name = one.argval
        if level:
            try:
                name = importlib.util.resolve_name("." * level + name, names.get("__package__") or "")
            except ImportError:  # the program gets it, too
                continue
        found.extend((name, attribute) for attribute in attributes or (None,))
        if not attributes:  # the statement gives the name of the outermost package
            found.append((name.split(".")[0], None))
    return found


def by_text(code):
    """The name by which the code can reach modules and values that are only texts in it; None if there is
    none."""
    ops = _ops(code)
    return next((one.argval for one in ops if one.opname in _NAMES and one.argval in _BY_TEXT), None) or next(
        (one.argval for one in ops if one.opname in _ATTRIBUTES and one.argval == "import_module"), None
    )


def file_of(name):
    """The file, or folder, of a module or package; None for one that is built in or not there. Imports
    nothing."""
    module = sys.modules.get(name)
    spec = (
        importlib.machinery.PathFinder.find_spec(name)
        if module is None
        else getattr(module, "__spec__", None)
    )
    if spec is None or spec.origin in ("built-in", "frozen"):
        return None
    return spec.origin or next(iter(spec.submodule_search_locations or ()), None)


def _ops(code):
    return [one for one in dis.get_instructions(code) if one.opname not in _NOTHING]
