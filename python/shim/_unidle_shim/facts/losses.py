"""Which code between a forward and a backward pass computes the loss, where that is no module: it belongs to
the compute, while a metric, an environment or a print statement is code between the steps."""

import collections
import linecache
import re

from _unidle_shim.host import places

_LOSS = re.compile(
    r"(?:^|_)(?:loss[a-z0-9]{0,2}|losses|criterions?|elbo|objective|cross_entropy|nll|mse|bce|kl|kld)(?:_|$)"
)
# What tells, keeps or judges losses.
_TELLS = re.compile(
    r"(?:^|_)(?:plot|save|logger|show|draw|record|update|history|curve|meter|metrics?|scores?|acc|accuracy"
    r"|print|write|report|append|item|tolist|step|load)(?:_|$)|^log_(?!prob|soft|sum|sigmoid|det|like)"
)
_LOGS = re.compile(r"\b(?:self|wandb|mlflow|writer|experiment)\.log\w*\s*\(")  # torch.log() is an operation
_ASSIGNED = re.compile(r"^\s*([\w., ]+?)\s*[-+*/]?=(?!=)")
_CALLED = re.compile(r"([A-Za-z_]\w*)\s*\(")
# Operations on tensors, which count directly after a forward pass.
_OPERATES = re.compile(
    r"\b(?:F|functional)\.\w+\s*\(|(?:\btorch)?\.(?:mean|sum|pow|abs|square|log|exp|clamp|norm|cdist|logsumexp|einsum)\s*\("
)
_CAPITALS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_MOST = 2000  # lines

Line = collections.namedtuple("Line", "tells assigns calls operates")


class Losses:
    """Used by the sampling thread alone."""

    def __init__(self):
        self.lines = {}  # (file, line) -> Line
        self.gap = self.of_loss = 0  # samples between a forward and a backward pass, and those of a loss

    def depth(self, stack, loops, follows_forward):
        """How many of the innermost frames of the stack compute a loss, called by the function with the
        training loop, of `loops` ([{code: line}]); None if they compute none. `follows_forward`: whether a
        forward pass was the last call that was seen; None if unknown."""
        if follows_forward is False:
            return None
        found, innermost = False, True
        for depth, (code, line) in enumerate(stack):
            in_loop = any(code in lines for lines in loops)
            if not in_loop and not places.is_own(code):
                continue
            seen = self._line(code.co_filename, line)
            if seen.tells:
                return None
            found = found or seen.calls
            if innermost:
                found = found or seen.assigns or (in_loop and seen.operates and bool(follows_forward))
            if in_loop:
                return depth if found else None
            innermost = False
            name = _words(code.co_name)
            if _TELLS.search(name):
                return None
            found = found or bool(_LOSS.search(name))
        return None

    def _line(self, file, line):
        known = self.lines.get((file, line))
        if known is None:
            if len(self.lines) >= _MOST:
                self.lines.clear()
            known = self.lines[(file, line)] = judged(linecache.getline(file, line))
        return known

    def share(self, of_loss, enough):
        """Counts a sample of the gap; returns the share of the loss there, 0.0 until there are `enough`."""
        self.gap += 1
        self.of_loss += of_loss
        return self.of_loss / self.gap if self.gap >= enough else 0.0


def _words(name):
    """In small letters, with underscores between its words."""
    return _CAPITALS.sub("_", name).lower()


def judged(text):
    """What a line of the program has to do with a loss."""
    text = text.split(" #")[0]
    called = [_words(name) for name in _CALLED.findall(text)]
    assigned = _ASSIGNED.match(text)
    targets = [_words(name.strip()) for name in assigned.group(1).split(",")] if assigned else []
    return Line(
        any(_TELLS.search(name) for name in called) or bool(_LOGS.search(text)),
        any(_LOSS.search(name) for name in targets),
        any(_LOSS.search(name) for name in called),
        bool(_OPERATES.search(text)),
    )
