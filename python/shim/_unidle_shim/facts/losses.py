"""Which code between a forward and a backward pass computes the loss, where that is no module: it belongs to
the compute, while a metric, an environment or a print statement is code between the steps."""

import linecache
import re

from _unidle_shim.host import places

# Of functions, and of what the line of the training loop calls or assigns.
_LOSS = re.compile(
    r"loss|criteri|elbo|objective|cross_entropy|(?:^|_)(?:nll|mse|bce|kl|kld|kl_div|cost)(?:_|$)",
    re.IGNORECASE,
)
_ASSIGNED = re.compile(r"^\s*([\w., ]+?)\s*(?:[-+*/]|)=(?!=)")
_CALLED = re.compile(r"([A-Za-z_]\w*)\s*\(")
# Operations on tensors, which count only directly after a forward pass.
_OPERATES = re.compile(r"\b(?:F|functional|torch)\.\w+\s*\(|\.(?:mean|sum|pow|abs|square|log|exp|clamp)\s*\(")
_READS = re.compile(
    r"\.(?:item|cpu|numpy|tolist)\s*\(|\bprint\b|append|self\.log|\blogg(?:er|ing)\b|wandb|writer|metric|score|accura"
    r"|\bacc\b|sklearn|\bnp\.|numpy|\.step\s*\(",
    re.IGNORECASE,
)
_MOST = 2000  # lines


class Losses:
    """Used by the sampling thread alone."""

    def __init__(self):
        self.lines = {}  # (file, line) -> (whether it names a loss, whether it operates on tensors)
        self.gap = self.of_loss = 0  # samples between a forward and a backward pass, and those of a loss

    def depth(self, stack, loops, follows_forward):
        """How many of the innermost frames of the stack compute a loss, called by the function with the
        training loop, of `loops` ([{code: line}]); None if they compute none. `follows_forward`: a forward
        pass was the last call that was seen."""
        found = False
        for depth, (code, line) in enumerate(stack):
            in_loop = any(code in lines for lines in loops)
            if in_loop or places.is_own(code):
                names, operates = self._line(code.co_filename, line)
                found = found or names or (in_loop and operates and follows_forward)
            if in_loop:
                return depth if found else None
            found = found or (places.is_own(code) and bool(_LOSS.search(code.co_name)))
        return None

    def _line(self, file, line):
        known = self.lines.get((file, line))
        if known is None:
            if len(self.lines) >= _MOST:
                self.lines.clear()
            text = linecache.getline(file, line)
            known = self.lines[(file, line)] = _judged(text)
        return known

    def share(self, of_loss, enough):
        """Counts a sample of the gap; returns the share of the loss there, 0.0 until there are `enough`."""
        self.gap += 1
        self.of_loss += of_loss
        return self.of_loss / self.gap if self.gap >= enough else 0.0


def _judged(text):
    text = text.split(" #")[0]
    if _READS.search(text):
        return False, False
    assigned = _ASSIGNED.match(text)
    names = [assigned.group(1)] if assigned else []
    names += _CALLED.findall(text)
    return any(_LOSS.search(name) for name in names), bool(_OPERATES.search(text))
