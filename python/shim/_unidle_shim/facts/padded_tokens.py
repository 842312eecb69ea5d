"""Padding in a model's tokens where the batch has neither a mask nor lengths: by the padding_idx of the
model's embeddings, or by zeros at the end of rows that have none elsewhere."""

_MOST_MODULES = 5000
_ALONG_SEQUENCES = ("attention", "transformer", "rnn", "lstm", "gru", "conv1d", "mamba")
_ZERO = 0


class TokenKinds:
    """Of a model: the tokens that are padding. `fillings` is empty for a model that does not work along
    sequences, whose cost hardly depends on their length."""

    def __init__(self, torch, module):
        embeddings, along, fillings = False, False, set()
        for one in _modules_of(module):
            embeddings = embeddings or issubclass(type(one), (torch.nn.Embedding, torch.nn.EmbeddingBag))
            padding = vars(one).get("padding_idx")
            if type(padding) is int and padding >= 0:
                fillings.add(padding)
            names = (kind.__name__.lower() for kind in type(one).__mro__)
            along = along or any(word in name for name in names for word in _ALONG_SEQUENCES)
        self.declared = bool(fillings)
        self.fillings = sorted(fillings or {_ZERO}) if embeddings and along else []

    def count(self, rows):
        """Of one batch: (real elements, all, those up to the longest sequence); None if nothing in it is
        padding. `rows`: its lists of tokens, as (samples, length) or (length, samples)."""
        if len(rows) < 2 or len(rows[0]) < 2:
            return None
        for samples in (rows, list(zip(*rows))):
            for filling in self.fillings:
                found = self._count(samples, filling)
                if found is not None:
                    return found
        return None

    def _count(self, samples, filling):
        lengths = [_length(tokens, filling) for tokens in samples]
        if not self.declared and not _fills(samples, lengths, filling):
            return None
        if self.declared:
            lengths = [
                min(length, _length(tokens[::-1], filling)) for tokens, length in zip(samples, lengths)
            ]
        real, width = sum(lengths), len(samples[0])
        if real == len(samples) * width or not all(lengths):  # an empty one: these are positions, not samples
            return None
        return real, len(samples) * width, len(samples) * max(lengths)


def _modules_of(module):
    """Runs no code of the program."""
    ahead, seen = [module], set()
    while ahead and len(seen) < _MOST_MODULES:
        one = ahead.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        ahead.extend(dict(vars(one).get("_modules") or {}).values())


def _length(tokens, filling):
    """Without the fillings at the end."""
    length = len(tokens)
    while length and tokens[length - 1] == filling:
        length -= 1
    return length


def _fills(samples, lengths, filling):
    """Whether the value is padding although no embedding says so: several of it end most rows, and it is
    nowhere else."""
    width = len(samples[0])
    ends = sum(width - length > 1 for length in lengths)
    within = any(filling in tokens[:length] for tokens, length in zip(samples, lengths))
    return 2 * ends > len(samples) and not within
