"""How much of the batches is padding, by their masks or lengths."""

from _unidle_shim.host import places
from _unidle_shim.host.shapes import hidden_queries, undispatched

_MOST_ELEMENTS = 1 << 18  # of a mask that is read
_LENGTHS = ("lengths", "length", "lens")
_OF_OTHER_TOKENS = ("prompt", "decoder", "tgt", "target", "label", "cross", "memory")


class Padding:
    def __init__(self):
        # Of batches as the loader gives them; of the model's arguments, which have names where batches are
        # plain tuples: [real elements, all elements, where].
        self.of_batches, self.of_calls = [0, 0, None], [0, 0, None]

    def batch_seen(self, torch, batch):
        if hasattr(batch, "keys"):
            _add(self.of_batches, torch, batch, ("cpu",))

    def call_seen(self, torch, module, args, kwargs):
        """Called in a few forward passes only, because reading a mask on a GPU waits for it."""
        if self.of_batches[1]:
            return
        devices = ("cpu",)
        if torch.cuda.is_initialized() and not torch.cuda.is_current_stream_capturing():
            devices = ("cpu", "cuda")
        code = getattr(getattr(type(module), "forward", None), "__code__", None)
        names = code.co_varnames[1 : code.co_argcount] if code is not None else ()
        _add(self.of_calls, torch, dict(zip(names, args), **kwargs), devices)

    def notes(self):
        real, padded, where = self.of_batches if self.of_batches[1] else self.of_calls
        if padded:
            yield ("padding",), {"type": "padding", "real": real, "padded": padded, "where": where}


def _add(counts, torch, batch, devices):
    """Counts by the first mask or lengths that can be read without running code of the program: values of
    other classes than Tensor itself may have no data."""
    with hidden_queries(torch), undispatched(torch):
        for key in batch.keys():
            name = str(key).lower()
            values = batch[key] if name in _LENGTHS or _says_padding(name) else None
            if (
                type(values) is not torch.Tensor
                or values.device.type not in devices
                or values.dim() != (1 if name in _LENGTHS else 2)
                or not 0 < values.numel() <= _MOST_ELEMENTS
                or values.is_floating_point()
            ):
                continue
            rows = values.tolist()  # no operation, which the program's profiler would show
            found = (sum(rows), max(rows) * len(rows)) if name in _LENGTHS else real_of(rows, name)
            if found is not None:
                counts[0] += found[0]
                counts[1] += found[1]
                counts[2] = counts[2] or places.here()
                return


def _says_padding(name):
    """Models have masks of other kinds as well."""
    return (
        "mask" in name
        and ("attention" in name or "pad" in name or name in ("mask", "input_mask"))
        and not any(word in name for word in _OF_OTHER_TOKENS)
    )


def real_of(rows, name):
    """(real, all) elements of a batch by its mask. None for a mask of another kind: one of padding changes
    at most once in a row, and a triangular one is causal."""
    rows = [bytes(map(bool, row)) for row in rows]
    heads = []  # lengths of the runs with which the rows begin
    for row in rows:
        rest = row.lstrip(row[:1])
        if rest.strip(rest[:1]):
            return None
        heads.append(len(row) - len(rest))
    width = len(rows[0])
    if len(rows) == width > 2 and sorted(heads) == list(range(1, width + 1)):
        return None
    real = _value_of_real(rows, name)
    return None if real is None else (sum(row.count(real) for row in rows), len(rows) * width)


def _value_of_real(rows, name):
    """Whether real elements are 1 or 0 in the mask; None if that is open. Sequences are padded at one end, so
    that the other end is real in all of them."""
    if "attention" in name or name == "input_mask":
        return 1
    for end in (0, -1):
        values = {row[end] for row in rows}
        if len(values) == 1:
            return values.pop()
    return None
