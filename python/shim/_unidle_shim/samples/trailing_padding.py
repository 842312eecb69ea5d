"""Columns of padding at the end of a batch that none of its sequences needs.

A batch is known to have them by its mask of padding: a tensor (samples, length) of ones followed by zeros,
beside tokens that have one and the same value wherever the mask is zero. Masks without a name, as in a tuple,
are recognised by that alone.
"""

import collections

from _unidle_shim.host.shapes import unseen

MOST_ELEMENTS = 1 << 18  # of a mask that is read
_OF_OTHER_TOKENS = ("prompt", "decoder", "tgt", "target", "label", "cross", "memory")
_MULTIPLE = 8  # lengths that units for 16-bit numbers prefer
_MOST_LEVELS = 3
_IGNORED = -100  # torch's ignore_index of losses
_SEGMENTS = ("token_type", "segment")
_POSITIONS = "position_ids"
LOSS = "the loss may count the padding"


class Cut:
    """A batch may end after `width` of its `length` columns. `why_not`: it may not, and why."""

    def __init__(self, shape, width, why_not=None):
        self.shape, self.width, self.why_not = shape, width, why_not


@unseen
def cut_of(torch, batch, devices=("cpu",)):
    """Returns None for a batch without padding, or without a mask of it on one of these devices."""
    tensors = [
        (name, one)
        for name, one in _tensors(torch, batch, "", 0)
        if one.dim() > 0 and one.device.type in devices
    ]
    for name, mask in tensors:
        if not _is_mask(name, mask) or not any(_is_masked(one, mask) for _, one in tensors):
            continue
        length = mask.shape[1]
        longest = int((mask != 0).any(0).sum())
        width = min(length, -(-longest // _MULTIPLE) * _MULTIPLE)
        why = None if width == length else _why_not(tensors, mask, width)
        return Cut(mask.shape, length if why else width, why)
    return None


@unseen
def shortened(torch, batch, cut):
    """A batch of the same kind that ends after `cut.width` columns. The given one stays as it is."""

    def shorter(value, level=0):
        if type(value) is torch.Tensor:
            if value.shape != cut.shape:
                return value
            result = value[:, : cut.width].contiguous()
            return result.pin_memory() if value.is_pinned() else result
        if level == _MOST_LEVELS:
            return value
        if _is_mapping(value):
            items = [(key, shorter(value[key], level + 1)) for key in value]
            result = value.copy()
            result.update(items)
            return result
        if type(value) in (list, tuple):
            return type(value)(shorter(one, level + 1) for one in value)
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return type(value)(*(shorter(one, level + 1) for one in value))
        return value

    return shorter(batch)


def says_padding(name):
    """Models have masks of other kinds as well."""
    return (
        "mask" in name
        and ("attention" in name or "pad" in name or name in ("mask", "input_mask"))
        and not any(word in name for word in _OF_OTHER_TOKENS)
    )


def _is_mapping(value):
    """Other classes may not be copied with their attributes."""
    return type(value) in (dict, collections.OrderedDict) or isinstance(value, collections.UserDict)


def per_token(torch, result, shape):
    """Whether a model's result has an element for each token of a batch of this shape."""
    return any(
        tuple(one.shape[:2]) in (tuple(shape), tuple(shape)[::-1]) for one in _results(torch, result, 0)
    )


def has_ignored_labels(torch, batch, shape):
    return any(
        one.shape == shape and _is_whole(one) and bool((one == _IGNORED).any())
        for _, one in _tensors(torch, batch, "", 0)
    )


def _results(torch, value, level):
    if isinstance(value, torch.Tensor):
        if type(value) is torch.Tensor and value.dim() > 1:
            yield value
    elif level < _MOST_LEVELS and isinstance(value, dict):
        for one in list(value.values()):
            yield from _results(torch, one, level + 1)
    elif level < _MOST_LEVELS and isinstance(value, (list, tuple)):
        for one in value:
            yield from _results(torch, one, level + 1)


def _tensors(torch, value, name, level):
    if type(value) is torch.Tensor and value.layout is torch.strided and not value.is_nested:
        yield name, value
    elif level < _MOST_LEVELS and _is_mapping(value):
        for key in value:
            yield from _tensors(torch, value[key], str(key).lower(), level + 1)
    elif level < _MOST_LEVELS and isinstance(value, (list, tuple)):
        for one in value:
            yield from _tensors(torch, one, name, level + 1)


def _is_whole(tensor):
    return not tensor.is_floating_point() and not tensor.is_complex()


def _is_mask(name, tensor):
    """Ones followed by zeros in each row, and a zero in some."""
    if (name and not says_padding(name)) or tensor.dim() != 2 or not _is_whole(tensor):
        return False
    if tensor.shape[1] < 2 or not 0 < tensor.numel() <= MOST_ELEMENTS:
        return False
    falls = tensor[:, 1:] <= tensor[:, :-1]
    return (
        bool((tensor[:, 0] == 1).all())
        and bool((tensor[:, -1] >= 0).all())
        and bool(falls.all())
        and not bool(tensor[:, -1].all())
    )


def _is_masked(tensor, mask):
    """Whether these are tokens, of one value at all places of padding and others elsewhere."""
    if tensor is mask or tensor.shape != mask.shape or not _is_whole(tensor) or tensor.device != mask.device:
        return False
    filling = tensor[mask == 0]
    return bool((filling == filling[0]).all()) and bool((tensor[:, 0] != filling[0]).all())


def _why_not(tensors, mask, width):
    samples, length = mask.shape
    tokens = 0
    for name, one in tensors:
        if one is mask:
            continue
        if one.shape != mask.shape or not _is_whole(one):
            if any(abs(extent - length) <= 1 for extent in _lengths(one, samples)):
                return "a tensor of the batch that is neither tokens nor a mask has the same length"
            continue
        end = one[:, width:]
        if name == _POSITIONS or bool((end == _IGNORED).all()):
            continue
        if any(word in name for word in _SEGMENTS) and not bool((end != 0).any()):
            continue
        tokens += 1
        if tokens > 1 or not _is_masked(one, mask):
            return LOSS
    return None


def _lengths(tensor, samples):
    """The extents that may be lengths of sequences."""
    shape = tuple(tensor.shape)
    return shape[1:] if shape[0] == samples else shape
