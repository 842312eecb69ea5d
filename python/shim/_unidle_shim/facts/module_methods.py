"""Methods of the program's models, which some programs call instead of forward().

The stack sampler asks, in its own thread, about modules and classes of the program. So attributes are read
without the program's `__getattr__`, `__class__` and the like, and no module is kept alive: the interpreter
empties those that outlive its end, and destructors that run later would miss their globals."""

import os
import sys
import types

# A training loop of its own: what its methods do is not all the model's work.
_LOOPS = ("LightningModule",)

# Code of torch that every call of a module goes through.
FILE, CALLS = os.path.join("torch", "nn", "modules", "module.py"), ("_call_impl", "_wrapped_call_impl")
# The code of nn.Module and of its containers, like state_dict() and parameters(): it hands out what a model
# consists of, and computes nothing but those calls and forward().
_HANDS_OUT = FILE, os.path.join("torch", "nn", "modules", "container.py")

_dictionary = types.ModuleType.__dict__["__dict__"].__get__
_members = type.__dict__["__dict__"].__get__
_parents = type.__dict__["__mro__"].__get__
_name = type.__dict__["__name__"].__get__
_attributes = types.FunctionType.__dict__["__dict__"].__get__


def outermost_call(stack):
    """The index in a stack, the innermost first, of the outermost call of a module; None if there is none."""
    for depth in range(len(stack) - 1, -1, -1):
        code = stack[depth][0]
        if code.co_name in CALLS and code.co_filename.endswith(FILE):
            return depth
    return None


class ModuleMethods:
    """Answers for code objects; finds the class in the Python module whose file has the code."""

    def __init__(self):
        self.by_file = {}  # file name -> name of the Python module, or None

    def has(self, code):
        """Whether the code is a method of a torch.nn.Module that is defined at the top of its file, and does
        the model's work."""
        if code.co_filename.endswith(_HANDS_OUT):
            return False
        torch = sys.modules.get("torch")
        base = getattr(getattr(torch, "nn", None), "Module", None)
        module = self._module_of(code.co_filename)
        if base is None or module is None:
            return False
        for one in list(_variables(module).values()):
            if _is(one, type) and _inherits(one, base) and _defines(one, code):
                return not any(_name(parent) in _LOOPS for parent in _parents(one))
        return False

    def _module_of(self, file):
        if file not in self.by_file:
            for name, module in list(sys.modules.items()):
                if _is(module, types.ModuleType):
                    its_file = _variables(module).get("__file__")
                    if type(its_file) is str:
                        self.by_file.setdefault(its_file, name)
            main = sys.modules.get("__main__")
            same = _is(main, types.ModuleType) and _same_file(_variables(main).get("__file__"), file)
            self.by_file.setdefault(file, "__main__" if same else None)
        module = sys.modules.get(self.by_file[file])
        return module if _is(module, types.ModuleType) else None


def _variables(module):
    return _dictionary(module) or {}  # None before its __init__()


def _is(one, kind):
    """isinstance(), without asking the object for its `__class__`."""
    return type(one) is kind or _inherits(type(one), kind)


def _inherits(cls, base):
    return any(parent is base for parent in _parents(cls))


def _same_file(one, other):
    return type(one) is str and os.path.abspath(one) == os.path.abspath(other)


def _defines(cls, code):
    return any(code_of(member) is code for member in list(_members(cls).values()))


def code_of(member):
    """The code of a function; of the one that it wraps, if it is decorated."""
    function = function_of(member)
    return None if function is None else function.__code__


def function_of(member):
    """A function that is a member of a class; the one that it wraps, if it is decorated."""
    if type(member) in (staticmethod, classmethod):
        member = member.__func__
    if type(member) is not types.FunctionType:
        return None
    wrapped = _attributes(member).get("__wrapped__")
    return wrapped if type(wrapped) is types.FunctionType else member
