"""Columns of padding at the end of a batch that none of its sequences needs.

A batch is known to have them by its padding mask: a tensor (samples, length) of ones followed by zeros, or
of zeros followed by ones, beside tokens that have one and the same value wherever the mask says padding.
Masks without a name, as in a tuple, are recognised by that alone.
"""

import collections

from _unidle_shim.host.exception_origin import pass_on
from _unidle_shim.host.shapes import shape_of, unseen

MOST_ELEMENTS = 1 << 18  # of a mask that is read
_OF_OTHER_TOKENS = ("prompt", "decoder", "tgt", "target", "label", "cross", "memory")
_MULTIPLE = 8  # lengths that units for 16-bit numbers prefer
_MOST_LEVELS = 3
_IGNORED = -100  # torch's ignore_index of losses
_SEGMENTS = ("token_type", "segment")
_POSITIONS = "position_ids"
_OF_ENCODER = "encoder_"  # beside the scores of a decoder, in results of transformers
LOSS = "the loss may count the padding"
JOINED = "accelerate joins the batches of several processes, which must have the same length"
SAME_LENGTH = "another value of the batch has the same length, and it is unknown whether it may be cut"


class Cut:
    """A batch whose tensors have this `shape` may end after `width` columns. `why_not`: why it may not end
    before the last one."""

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
        real = _real(name, mask)
        if real is None:
            continue
        others = [
            (name, one, _array(one) if one.shape == mask.shape else None)
            for name, one in tensors
            if one is not mask
        ]
        if not any(_is_masked(values, real) for _, _, values in others):
            continue
        samples, length = mask.shape
        longest = int(real.any(0).sum())
        width = min(length, -(-longest // _MULTIPLE) * _MULTIPLE)
        why = None
        if width < length:
            why = _why_not(others, real, width)
            if why is None and _stays_long(torch, batch, samples, length):
                why = SAME_LENGTH
        return Cut(mask.shape, length if why else width, why)
    return None


@unseen
def shortened(torch, batch, cut):
    """A batch of the same kind that ends after `cut.width` columns. The given one stays as it is."""

    def shorter(value, level=0):
        if is_plain(torch, value):
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
        if _is_sequence(value):
            parts = [shorter(one, level + 1) for one in value]
            return type(value)._make(parts) if hasattr(value, "_fields") else type(value)(parts)
        return value

    return shorter(batch)


def says_padding(name):
    """Models have masks of other kinds as well."""
    return (
        "mask" in name
        and (
            any(word in name for word in ("attention", "attn", "pad"))
            or name in ("mask", "masks", "input_mask")
        )
        and not any(word in name for word in _OF_OTHER_TOKENS)
    )


def says_real_is_one(name):
    """False for other names of attention masks: torch's attn_mask has ones where it is masked."""
    return "attention" in name or name == "input_mask"


def _is_mapping(value):
    """False for other classes: a copy of them may lack their attributes."""
    return type(value) in (dict, collections.OrderedDict) or isinstance(value, collections.UserDict)


def _is_sequence(value):
    """For the same reason only true for a list, a tuple or a named tuple."""
    return type(value) in (list, tuple) or (isinstance(value, tuple) and hasattr(value, "_fields"))


def is_plain(torch, value):
    return type(value) is torch.Tensor and value.layout is torch.strided and not value.is_nested


@unseen
def per_token(torch, result, shape):
    """Whether a model's result has an element for each token of a batch of this shape."""
    return any(
        tuple(one.shape[:2]) in (tuple(shape), tuple(shape)[::-1]) for one in _results(torch, result, 0)
    )


@unseen
def has_ignored_labels(torch, batch, shape):
    of_tokens = [_array(one) for _, one in _tensors(torch, batch, "", 0) if one.shape == shape]
    return any(_is_whole(values) and bool((values == _IGNORED).any()) for values in of_tokens)


def _results(torch, value, level):
    if isinstance(value, torch.Tensor):
        if type(value) is torch.Tensor and value.dim() > 1:
            yield value
    elif level < _MOST_LEVELS and isinstance(value, (list, tuple)):
        for one in value:
            yield from _results(torch, one, level + 1)
    elif level < _MOST_LEVELS and not isinstance(value, torch.nn.Module):
        members = value if isinstance(value, dict) else _attributes(value)
        for name, one in list(members.items()):
            if not str(name).startswith(_OF_ENCODER):
                yield from _results(torch, one, level + 1)


def _attributes(value):
    """Those of an object itself, as of a dataclass."""
    try:
        return object.__getattribute__(value, "__dict__")
    except AttributeError:
        return {}


def _tensors(torch, value, name, level):
    if is_plain(torch, value):
        yield name, value
    elif level < _MOST_LEVELS and _is_mapping(value):
        for key in value:
            yield from _tensors(torch, value[key], str(key).lower(), level + 1)
    elif level < _MOST_LEVELS and _is_sequence(value):
        named = name if any(word in name for word in ("mask", *_OF_OTHER_TOKENS)) else ""
        for one in value:
            yield from _tensors(torch, one, named, level + 1)


def _array(tensor):
    """The tensor in numpy, which computes in this thread alone: torch's threads wait for each other, for
    milliseconds where other processes use the CPUs. None without numpy, or for a type that it lacks."""
    try:
        return tensor.detach().cpu().numpy()
    except (RuntimeError, TypeError) as failure:
        pass_on(failure)
        return None


def _is_whole(values):
    return values is not None and values.dtype.kind in "biu"


def _real(name, tensor):
    """Which elements are real, if this is a padding mask: in each row one value, followed in some rows by the
    other one. None if it is something else."""
    if (name and not says_padding(name)) or tensor.dim() != 2 or tensor.is_complex():
        return None
    if tensor.shape[1] < 2 or not 0 < tensor.numel() <= MOST_ELEMENTS:
        return None
    values = _array(tensor)
    return None if values is None else _real_of(name, values)


def _real_of(name, values):
    first = values[0, 0]
    if first not in (0, 1) or (first == 0 and says_real_is_one(name)):
        return None
    real = values == first
    if (
        real[:, 0].all()
        and not real[:, -1].all()
        and (real[:, 1:] <= real[:, :-1]).all()
        and (real | (values == 1 - int(first))).all()
    ):
        return real
    return None


def _is_masked(values, real):
    """Whether these are tokens: one value wherever there is padding, and no row begins with it."""
    if not _is_whole(values):
        return False
    filling = values[real[:, -1].argmin(), -1]
    return bool((values[:, 0] != filling).all() and (real | (values == filling)).all())


def _why_not(others, real, width):
    """`others`: the tensors of the batch beside its mask, with the values of those of its shape."""
    samples, length = real.shape
    tokens = 0
    for name, one, values in others:
        if one.shape != real.shape:
            if _is_near(_lengths(tuple(one.shape), samples), length):
                return SAME_LENGTH
            continue
        again = None if values is None or (name and not says_padding(name)) else _real_of(name, values)
        if again is not None and (again == real).all():
            continue  # the mask in another form
        if not _is_whole(values):
            return SAME_LENGTH
        end = values[:, width:]
        if name == _POSITIONS or (end == _IGNORED).all():
            continue
        if any(word in name for word in _SEGMENTS) and not end.any():
            continue
        tokens += 1
        if tokens > 1 or not _is_masked(values, real):
            return LOSS
    return None


def _lengths(shape, samples):
    """The extents that may be lengths of sequences."""
    return shape[1:] if shape[:1] == (samples,) else shape


def _is_near(lengths, length):
    return any(type(one) is int and abs(one - length) <= 1 for one in lengths)


def _stays_long(torch, batch, samples, length):
    """Whether something has that length, or nearly, and is not shortened: an array, a list, a subclass of
    Tensor, or a tensor within a container of another class."""

    def stays(value, level, kept):
        if level > 2 * _MOST_LEVELS:
            return False
        if is_plain(torch, value):
            return kept and _is_near(_lengths(tuple(value.shape), samples), length)
        if isinstance(value, (dict, collections.UserDict)):
            kept = kept or level >= _MOST_LEVELS or not _is_mapping(value)
            members = dict.values(value) if isinstance(value, dict) else value.values()
            return any(stays(one, level + 1, kept) for one in members)
        if isinstance(value, (list, tuple)):
            if _is_near(_lengths((len(value),), samples), length):
                return True
            kept = kept or level >= _MOST_LEVELS or not _is_sequence(value)
            return not isinstance(next(iter(value), None), (int, float, str, bytes)) and any(
                stays(one, level + 1, kept) for one in value
            )
        shape = None if isinstance(value, (int, float, str, bytes)) else shape_of(value)
        return isinstance(shape, tuple) and _is_near(_lengths(tuple(shape), samples), length)

    return stays(batch, 0, False)
