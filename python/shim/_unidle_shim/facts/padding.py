"""How much of the batches is padding, by their masks or lengths."""

from _unidle_shim.host import places
from _unidle_shim.host.shapes import hidden_queries, undispatched

_MOST_ELEMENTS = 1 << 20  # of a mask that is counted
_LENGTHS = ("lengths", "length", "lens")


class Padding:
    def __init__(self):
        # Of batches as the loader gives them; of the model's arguments, which have names where batches are
        # plain tuples: [real elements, padded ones, where].
        self.of_batches, self.of_calls = [0, 0, None], [0, 0, None]

    def batch_seen(self, torch, batch):
        if hasattr(batch, "keys"):
            with hidden_queries(torch), undispatched(torch):
                _add(self.of_batches, torch, batch, ("cpu",))

    def call_seen(self, torch, module, args, kwargs):
        """Called in a few forward passes: a mask on a GPU is waited for."""
        if self.of_batches[1]:
            return
        devices = ("cpu",)
        if torch.cuda.is_initialized() and not torch.cuda.is_current_stream_capturing():
            devices = ("cpu", "cuda")
        code = getattr(getattr(type(module), "forward", None), "__code__", None)
        names = code.co_varnames[1 : code.co_argcount] if code is not None else ()
        given = dict(zip(names, args), **kwargs)
        masks = {name: given[name] for name in given if name in _LENGTHS or _says_padding(name)}
        with hidden_queries(torch), undispatched(torch):
            _add(self.of_calls, torch, masks, devices)

    def notes(self):
        real, padded, where = self.of_batches if self.of_batches[1] else self.of_calls
        if padded:
            yield ("padding",), {"type": "padding", "real": real, "padded": padded, "where": where}


def _says_padding(name):
    """Models have masks of other kinds as well."""
    return "mask" in name and ("attention" in name or "pad" in name or name in ("mask", "input_mask"))


def _add(counts, torch, batch, devices):
    """Counts real and padded elements by the first mask or lengths."""
    for key in batch.keys():
        mask = batch[key]
        if (
            not isinstance(mask, torch.Tensor)
            or mask.device.type not in devices
            or mask.numel() > _MOST_ELEMENTS
            or mask.dim() < 1
            or not mask.numel()
        ):
            continue
        name = str(key).lower()
        if "mask" in name and mask.dim() == 2 and not mask.is_floating_point():
            real, total = int((mask != 0).sum()), mask.numel()
            if "pad" in name and "attention" not in name:
                real = total - real if real < total - real else real
        elif name in _LENGTHS and mask.dim() == 1 and not mask.is_floating_point():
            real, total = int(mask.sum()), int(mask.max()) * mask.numel()
        else:
            continue
        counts[0] += real
        counts[1] += total - real
        counts[2] = counts[2] or places.here()
        return
