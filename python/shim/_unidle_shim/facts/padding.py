"""How much of the batches is padding: by their masks or lengths, or by the tokens themselves."""

import os
import sys

from _unidle_shim.facts import packing, padded_tokens, ranks
from _unidle_shim.host import places
from _unidle_shim.host.shapes import hidden_queries, undispatched
from _unidle_shim.samples import trailing_padding

_MOST_WRAPPERS = 8
_UNNAMED = ""
_LENGTHS = ("lengths", "length", "lens")
_ACCELERATE = os.path.join("accelerate", "data_loader.py")
_FETCHES = "_fetch_batches"
_MOST_FRAMES = 8  # between that and the fetch of a batch


class Padding:
    def __init__(self):
        # Of batches as the loader gives them; of the model's arguments, which have names where batches are
        # plain tuples: [real elements, all elements, those up to the longest sequence of each batch, where].
        self.of_batches, self.of_calls = [0, 0, 0, None], [0, 0, 0, None]
        self.of_tokens, self.kinds = [0, 0, 0, None], {}  # id of a model -> padded_tokens.TokenKinds
        self.packs = None  # whether the model packs its sequences
        self.cuts = False  # some batch may end after its longest sequence
        self.why_kept = None  # why none may
        self.followed = False  # the model was given the mask
        self.shape = None  # of the mask that it was given, until its result is seen

    def batch_seen(self, torch, batch):
        if hasattr(batch, "keys"):
            _add(self.of_batches, torch, batch, ("cpu",))
        cut = trailing_padding.cut_of(torch, batch)
        if cut is not None:
            self.cuts = self.cuts or cut.width < cut.shape[1]
            self.why_kept = (
                self.why_kept or cut.why_not or (trailing_padding.JOINED if _are_joined(torch) else None)
            )

    def call_seen(self, torch, module, args, kwargs):
        """Called in a few forward passes only, because reading a mask on a GPU waits for it."""
        module = _inner(module)
        if self.packs is None:
            self.packs = packing.packs(module, args, kwargs)
        if self.packs:
            return
        devices = ("cpu",)
        if torch.cuda.is_initialized() and not torch.cuda.is_current_stream_capturing():
            devices = ("cpu", "cuda")
        arguments = _by_name(module, args, kwargs)
        if not self.of_batches[1]:
            if not _add(self.of_calls, torch, arguments, devices):
                self._add_tokens(torch, module, arguments, devices)
        cut = trailing_padding.cut_of(torch, arguments, devices)
        if cut is not None:
            self.followed = True
            self.why_kept = self.why_kept or cut.why_not
            if not trailing_padding.has_ignored_labels(torch, arguments, cut.shape):
                self.shape = cut.shape

    def _add_tokens(self, torch, module, arguments, devices):
        kinds = self.kinds.get(id(module))
        if kinds is None:
            self.kinds = {id(module): padded_tokens.TokenKinds(torch, module)}  # of the newest model alone
            kinds = self.kinds[id(module)]
        if kinds.fillings:
            for rows in _tokens(torch, arguments, devices):
                found = kinds.count(rows)
                if found is not None:
                    _count(self.of_tokens, found)
                    return

    def result_seen(self, torch, result):
        """Called with the result of the forward pass that call_seen() was called for."""
        shape, self.shape = self.shape, None
        if trailing_padding.per_token(torch, result, shape):
            self.why_kept = self.why_kept or trailing_padding.LOSS

    def notes(self):
        counted = (self.of_batches, self.of_calls, self.of_tokens)
        real, padded, longest, where = next((one for one in counted if one[1]), self.of_tokens)
        if padded and not self.packs:
            body = {"type": "padding", "real": real, "padded": padded, "longest": longest, "where": where}
            yield ("padding",), dict(body, cuts=self.cuts and self.followed and self.why_kept is None)


def _are_joined(torch):
    """Whether accelerate fetches this batch in one process for all of them (dispatch_batches). It joins such
    batches, and an incomplete last one with the first."""
    distributed = torch.distributed
    if not (distributed.is_available() and distributed.is_initialized() and distributed.get_world_size() > 1):
        return False
    frame = sys._getframe(1)
    for _ in range(_MOST_FRAMES):
        if frame is None:
            break
        if frame.f_code.co_name == _FETCHES and frame.f_code.co_filename.endswith(_ACCELERATE):
            return True
        frame = frame.f_back
    return False


def _inner(module):
    """Without the wrappers of torch.compile and of data parallelism, which name no arguments."""
    for _ in range(_MOST_WRAPPERS):
        inner = getattr(module, "_orig_mod", None)
        if inner is None and type(module).__name__ in ranks.KINDS:
            inner = getattr(module, "module", None)
        if inner is None:
            break
        module = inner
    return module


def _by_name(module, args, kwargs):
    """The arguments of the forward pass by name; those without a name are one list."""
    forward = getattr(type(module), "forward", None)
    for _ in range(_MOST_WRAPPERS):  # of decorators
        forward = getattr(forward, "__wrapped__", forward)
    code = getattr(forward, "__code__", None)
    names = code.co_varnames[1 : code.co_argcount] if code is not None else ()
    named = dict(zip(names, args), **kwargs)
    rest = list(args[len(names) :])
    return {_UNNAMED: rest, **named} if rest else named


def _add(counts, torch, batch, devices):
    """Counts by the first mask or lengths that can be read without running code of the program: values of
    other classes than Tensor itself may have no data, nested and sparse tensors have no shape or elements of
    the usual kind. Returns whether there was one."""
    with hidden_queries(torch), undispatched(torch):
        tensors = {str(key).lower(): batch[key] for key in batch.keys()}
        tensors = {name: value for name, value in tensors.items() if trailing_padding.is_plain(torch, value)}
        for name, values in tensors.items():
            dimensions = 1 if name in _LENGTHS else 2 if trailing_padding.says_padding(name) else None
            if (
                values.dim() != dimensions
                or values.device.type not in devices
                or not 0 < values.numel() <= trailing_padding.MOST_ELEMENTS
                or (values.is_floating_point() and dimensions == 1)
            ):
                continue
            shapes = [
                tuple(other.shape[:2])
                for other in tensors.values()
                if other is not values and other.dim() > 1
            ]
            rows = values.tolist()  # no operation, which the program's profiler would show
            if values.is_floating_point() and not all({0, 1}.issuperset(row) for row in rows):
                continue  # added to the scores of attention
            found = real_by_lengths(rows, shapes) if dimensions == 1 else real_of(rows, name, shapes)
            if found is not None:
                _count(counts, found)
                return True
    return False


def _count(counts, found):
    counts[:3] = [before + more for before, more in zip(counts, found)]
    counts[3] = counts[3] or places.here()


def _tokens(torch, arguments, devices):
    """The arguments that may be token numbers, as lists."""
    values = [
        one for value in arguments.values() for one in (value if type(value) in (list, tuple) else [value])
    ]
    with hidden_queries(torch), undispatched(torch):
        return [
            one.tolist()
            for one in values
            if trailing_padding.is_plain(torch, one)
            and one.dim() == 2
            and one.dtype in (torch.int64, torch.int32)
            and one.device.type in devices
            and 0 < one.numel() <= trailing_padding.MOST_ELEMENTS
        ]


def real_by_lengths(lengths, shapes):
    """The numbers of elements of a batch, by its lengths: (real ones, all, those up to its longest sequence).
    `shapes`: the first two extents of its other tensors, among which the sequences must be: a number of each
    sample may be called a length."""
    for rows, width in shapes + [shape[::-1] for shape in shapes]:
        if rows == len(lengths) and 1 < max(lengths) <= width and min(lengths) >= 0:
            return sum(lengths), rows * width, rows * max(lengths)
    return None


def real_of(rows, name, shapes):
    """The same by the mask of a batch. `shapes`: the first two extents of its other tensors, among which the
    masked sequences must be. None for a mask of another kind: one of padding changes at most once in a row,
    and a triangular one is causal."""
    rows = [bytes(map(bool, row)) for row in rows]
    width = len(rows[0])
    if not {(len(rows), width), (width, len(rows))} & set(shapes):
        return None
    heads = []  # lengths of the runs with which the rows begin
    for row in rows:
        rest = row.lstrip(row[:1])
        if rest.strip(rest[:1]):
            return None
        heads.append(len(row) - len(rest))
    if len(rows) == width > 2 and sorted(heads) == list(range(1, width + 1)):
        return None
    real = _value_of_real(rows, name)
    if real is None:
        return None
    lengths = [row.count(real) for row in rows]
    return sum(lengths), len(rows) * width, len(rows) * max(lengths)


def _value_of_real(rows, name):
    """Whether real elements are 1 or 0 in the mask; None if that is open. A sequence that fills its row shows
    it, as none is empty."""
    if trailing_padding.says_real_is_one(name):
        return 1
    full = {row[0] for row in rows if row.count(row[:1]) == len(row)}
    if "pad" in name:
        first = {row[0] for row in rows}
        last = {row[-1] for row in rows}
        uniform = next((values for values in (full, first, last) if len(values) == 1), None)
        return None if uniform is None else next(iter(uniform))
    # A mask without such a name may choose tokens, actions or observations: only padding at the end of some
    # rows is taken for that.
    if len(full) != 1:
        return None
    real = next(iter(full))
    return real if all(row[0] == real for row in rows) else None
