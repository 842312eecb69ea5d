"""Whether a loss is a mean over the samples of a batch, by the source of the program: that of a larger batch is then the mean of
those of its parts. Known losses, .mean() of anything, sums of these with constant weights, and what functions, classes and names of
the program stand for them."""

import ast

from .sources import scope_around
from .syntax import is_method, is_number, name_of_call

_LOSSES = {"mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "cross_entropy", "nll_loss", "binary_cross_entropy", "binary_cross_entropy_with_logits",
           "soft_margin_loss", "poisson_nll_loss", "sigmoid_focal_loss"}
_CLASSES = {"MSELoss", "L1Loss", "SmoothL1Loss", "HuberLoss", "CrossEntropyLoss", "NLLLoss", "BCELoss", "BCEWithLogitsLoss", "SoftMarginLoss",
            "PoissonNLLLoss"}
_ARGUMENTS = {"label_smoothing", "beta", "delta", "pos_weight", "alpha", "gamma", "input", "target", "log_input"}
_PADDING = {"pad_sequence", "DataCollatorWithPadding", "DataCollatorForLanguageModeling", "DataCollatorForSeq2Seq", "DataCollatorForTokenClassification"}
_DEEPEST = 8


class Means:
    """Of the losses of one program; `program`: its sources."""

    def __init__(self, program):
        self.nodes = [node for source in program for node in source.nodes]

    def pads(self):
        """The node that fills samples up to the longest of a batch, or marks what does not count; None where there is none."""
        for node in self.nodes:
            longest = isinstance(node, ast.keyword) and node.arg == "padding" and getattr(node.value, "value", None) in (True, "longest")
            ignored = isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and is_number(node.operand, 100)
            if longest or ignored or _word(node) in _PADDING:
                return node.value if longest else node
        return None

    def is_mean(self, value, around, depth=0):
        """`around`: nodes of the loop or function that the value stands in."""
        if depth > _DEEPEST:
            return False
        if isinstance(value, ast.Name):
            given = _given(value.id, around)
            return bool(given) and all(self._is_given(one, value.id, around, depth + 1) for one in given)
        if isinstance(value, ast.BinOp):
            left, right = (self.is_mean(one, around, depth + 1) for one in (value.left, value.right))
            if isinstance(value.op, (ast.Add, ast.Sub)):
                return left and right
            if isinstance(value.op, ast.Mult):
                return left and _is_constant(value.right, around) or right and _is_constant(value.left, around)
            return isinstance(value.op, ast.Div) and left and _is_constant(value.right, around)
        return isinstance(value, ast.Call) and self._is_call(value, around, depth + 1)

    def _is_given(self, one, name, around, depth):
        """A statement that gives the name its value, or changes it."""
        if isinstance(one, ast.AugAssign):
            if isinstance(one.op, (ast.Add, ast.Sub)):
                return self.is_mean(one.value, around, depth)
            return isinstance(one.op, (ast.Mult, ast.Div)) and _is_constant(one.value, around)
        if not isinstance(one, ast.Assign) or len(one.targets) != 1 or not isinstance(one.targets[0], ast.Name):
            return False
        others = [each for each in around if each is not one]
        own = any(isinstance(each, ast.Name) and each.id == name for each in ast.walk(one.value))  # loss = loss / count
        return self.is_mean(one.value, others if own else around, depth)

    def _is_call(self, call, around, depth):
        name, words = name_of_call(call), {each.arg for each in call.keywords}
        if name == "mean":
            return not call.keywords and len(call.args) == (0 if is_method(call, {"mean"}) and not _is_torch(call.func.value) else 1) and not _masks(call, around)
        if name == "scale" and len(call.args) == 1:
            return self.is_mean(call.args[0], around, depth)
        if name in _LOSSES:
            return len(call.args) <= 2 and words <= _ARGUMENTS | self._mean_words(call) and not _masks(call, around)
        made = self._made(call.func)
        if made:
            return words <= {"input", "target"} and len(call.args) <= 2 and all(self._makes_mean(each, depth) for each in made) and not _masks(call, around)
        functions = [each for each in self.nodes if isinstance(each, ast.FunctionDef) and each.name == name and isinstance(call.func, ast.Name)]
        return bool(functions) and all(self._returns_mean(each, depth) for each in functions) and not _masks(call, around)

    @staticmethod
    def _mean_words(call):
        return {each.arg for each in call.keywords if each.arg == "reduction" and getattr(each.value, "value", None) == "mean"}

    def _made(self, function):
        """Calls that make what is called: `nn.MSELoss()` of criterion(...) and self.criterion(...)."""
        if isinstance(function, ast.Call):
            return [function]
        word, values = _word(function), []
        for one in self.nodes:
            if isinstance(one, ast.Assign) and word is not None and any(_word(each) == word for each in one.targets):
                value = one.value
                if isinstance(value, (ast.Name, ast.Attribute)) and _word(value) not in _LOSSES:
                    continue  # self.criterion = criterion
                values.append(value.func.value if is_method(value, {"to", "cuda"}) else value)
        return values

    def _makes_mean(self, made, depth):
        name = name_of_call(made)
        if _word(made) in _LOSSES:
            return True  # criterion = F.mse_loss
        if name in _CLASSES:
            return not made.args and {each.arg for each in made.keywords} <= _ARGUMENTS | self._mean_words(made)
        classes = [each for each in self.nodes if isinstance(each, ast.ClassDef) and each.name == name]
        forwards = [each for one in classes for each in one.body if isinstance(each, ast.FunctionDef) and each.name in ("forward", "__call__")]
        return bool(forwards) and all(self._returns_mean(each, depth) for each in forwards)

    def _returns_mean(self, function, depth):
        around = list(ast.walk(function))
        returned = [each for each in around if isinstance(each, ast.Return) and scope_around(each) is function]
        return bool(returned) and all(each.value is not None and self.is_mean(each.value, around, depth + 1) for each in returned)


def _word(node):
    return getattr(node, "id", None) or getattr(node, "attr", None)


def _given(name, around):
    return [one for one in around if isinstance(one, (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.For))
            and any(isinstance(each, ast.Name) and each.id == name and isinstance(each.ctx, ast.Store)
                    for target in (one.targets if isinstance(one, ast.Assign) else [one.target]) for each in ast.walk(target))]


def _is_constant(node, around):
    """A number, or a name that nothing around gives a value to."""
    if isinstance(node, ast.Constant):
        return type(node.value) in (int, float)
    root = node
    while isinstance(root, (ast.Attribute, ast.Subscript)):
        root = root.value
    return isinstance(root, ast.Name) and not _given(root.id, around)


def _is_torch(node):
    return isinstance(node, ast.Name) and node.id in ("torch", "np")


def _masks(call, around):
    """Something is chosen by a mask, of which batches have more or less, or added up over the samples."""
    for node in ast.walk(call):
        if name_of_call(node) in ("sum", "nansum", "norm", "vector_norm") and _is_over_samples(node):
            return True
        if isinstance(node, ast.Subscript) and any(isinstance(each, ast.Compare) or isinstance(each, ast.Name) and _given(each.id, around)
                                                   for each in ast.walk(node.slice)):
            return True
        if name_of_call(node) in ("masked_select", "nonzero", "topk", "unique"):
            return True
    return False


def _is_over_samples(call):
    """x.sum(), x.sum(0), torch.sum(x, dim=0); not x.sum(1)."""
    along = [each.value for each in call.keywords if each.arg in ("dim", "axis")]
    along += call.args[1:] if isinstance(call.func, ast.Name) or _is_torch(getattr(call.func, "value", None)) else call.args
    return not along or is_number(along[0], 0) or isinstance(along[0], (ast.Tuple, ast.List))
