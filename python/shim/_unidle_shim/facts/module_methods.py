"""Methods of the program's models, which some programs call instead of forward()."""

import os
import sys
import types

# A training loop of its own: what its methods do is not all the model's work.
_LOOPS = ("LightningModule",)


class ModuleMethods:
    """Answers for code objects; finds the class in the Python module whose file has the code."""

    def __init__(self):
        self.by_file = {}  # file name -> Python module, or None

    def has(self, code):
        """Whether the code is a method of a torch.nn.Module that is defined at the top of its file."""
        torch = sys.modules.get("torch")
        base = getattr(getattr(torch, "nn", None), "Module", None)
        module = self._module_of(code.co_filename)
        if base is None or module is None:
            return False
        for one in list(vars(module).values()):
            if isinstance(one, type) and issubclass(one, base) and _defines(one, code):
                return not any(parent.__name__ in _LOOPS for parent in one.__mro__)
        return False

    def _module_of(self, file):
        if file not in self.by_file:
            for module in list(sys.modules.values()):
                if isinstance(module, types.ModuleType):
                    name = vars(module).get("__file__")
                    if isinstance(name, str):
                        self.by_file.setdefault(name, module)
            main = sys.modules.get("__main__")
            same = main is not None and _same_file(vars(main).get("__file__"), file)
            self.by_file.setdefault(file, main if same else None)
        return self.by_file[file]


def _same_file(one, other):
    return isinstance(one, str) and os.path.abspath(one) == os.path.abspath(other)


def _defines(cls, code):
    for member in list(vars(cls).values()):
        function = getattr(member, "__wrapped__", None) or getattr(member, "__func__", member)
        if getattr(function, "__code__", None) is code or getattr(member, "__code__", None) is code:
            return True
    return False
