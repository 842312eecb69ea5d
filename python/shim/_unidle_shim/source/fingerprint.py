"""The contents of an object, in a comparable form: shows whether a call changed it.

Numbers, texts, sets, small arrays and small tensors are compared by value, large tensors and those on a
device by torch's count of in-place changes, large arrays by identity only. Objects are followed through
their attributes, lists and dictionaries, a few levels deep. Models, data and objects that only write or show
(loggers, progress bars) are left out: validation uses them.
"""

import collections
import sys
import types
from itertools import islice

from _unidle_shim.host import places
from _unidle_shim.host.exception_origin import pass_on
from _unidle_shim.host.shapes import unseen

_DEEPEST = 4
_MOST_ENTRIES = 200  # per container
_MOST_PARTS = 5000  # in all
_SMALL = 1024  # elements of an array that is compared by value
_MOST_BYTES = 1 << 23  # of arrays that are compared as a whole
_SPREAD = 4096  # elements of any other array
_PLAIN = (int, float, complex, str, bytes, type(None))
_ONLY_TELLS = {"logging", "tqdm", "tensorboard", "tensorboardX", "wandb", "mlflow", "comet_ml", "rich", "aim"}
_NOT_FOLLOWED = ("builtin_function_or_method", "function", "module", "method", "generator", "type")


def of(value, data=False):
    """`data`: data sets are followed, too, and all arrays and tensors in memory are compared by value, very
    large ones by some of their elements."""
    return _Fingerprint(data).of(value, _DEEPEST)


class _Fingerprint:
    def __init__(self, data):
        self.parts, self.data, self.room = 0, data, _MOST_BYTES

    def of(self, value, depth):
        self.parts += 1
        if isinstance(value, _PLAIN):
            return repr(value)  # makes nan equal itself
        if (
            self.parts > _MOST_PARTS
            or type(value).__name__ in _NOT_FOLLOWED
            or _is_left_out(value, self.data)
        ):
            return None
        array = _of_array(value)
        if array is not None:
            return (array, self._elements(value)) if self.data else array
        if not depth:
            return id(value)
        if isinstance(value, dict):
            entries = islice(value.items(), _MOST_ENTRIES)
            return len(value), tuple((repr(key), self.of(each, depth - 1)) for key, each in entries)
        if isinstance(value, (list, tuple, collections.deque)):
            return len(value), tuple(self.of(each, depth - 1) for each in _some_of(value))
        if isinstance(value, (set, frozenset)):
            # From the hashes that the set has stored: no code of its elements runs.
            return len(value), frozenset.__hash__(frozenset(value))
        members = getattr(value, "__dict__", None)
        members = dict(members if isinstance(members, dict) else (), **_slots_of(value))
        # `members` is ours: its own id says nothing.
        return (id(value), self.of(members, depth - 1)) if members and depth > 1 else id(value)

    @unseen
    def _elements(self, value):
        """A hash of the array's elements. None if it cannot be written, or holds no numbers."""
        torch, numpy = sys.modules["torch"], sys.modules["numpy"]
        try:
            if isinstance(value, torch.Tensor):
                value = value.detach()
                value = (value.view(torch.int16) if value.dtype == torch.bfloat16 else value).numpy()
            array = numpy.asarray(value)
        except Exception as failure:  # on a device, not dense
            pass_on(failure)
            return None
        if array.dtype.hasobject or not array.flags.writeable:
            return None
        if array.nbytes > self.room:
            array = array.flat[:: array.size // _SPREAD | 1]  # odd: not always the same column
        self.room -= array.nbytes
        return hash(array.tobytes())


def _some_of(values):
    """All of them, or as many at either end as are compared."""
    if len(values) <= _MOST_ENTRIES:
        return list(values)
    half = _MOST_ENTRIES // 2
    return [*islice(values, half), *islice(reversed(values), half)]


def _slots_of(value):
    """The attributes in __slots__, read without code of the program."""
    found = {}
    for kind in type(value).__mro__:
        for name, slot in vars(kind).items():
            if isinstance(slot, types.MemberDescriptorType) and places.is_own_file(_file_of(kind)):
                try:
                    found[name] = slot.__get__(value)
                except AttributeError:  # not set
                    pass
    return found


def _file_of(kind):
    return getattr(sys.modules.get(kind.__module__), "__file__", None) or "<unknown>"


def _is_left_out(value, data):
    if any(
        kind.__module__.split(".")[0] in _ONLY_TELLS or "tensorboard" in kind.__module__
        for kind in type(value).__mro__
    ):
        return True
    torch = sys.modules.get("torch")
    if torch is None:
        return False
    kinds = torch.utils.data
    if data and isinstance(value, kinds.Dataset):
        return False
    return isinstance(value, (torch.nn.Module, kinds.DataLoader, kinds.Dataset, kinds.Sampler))


def _of_array(value):
    """The array's part of the fingerprint; None if it is neither array nor tensor."""
    torch, numpy = sys.modules.get("torch"), sys.modules.get("numpy")
    if torch is not None and isinstance(value, torch.Tensor):
        return id(value), _of_tensor(value)
    if numpy is not None and isinstance(value, numpy.ndarray):
        return id(
            value
        ), value.tobytes() if value.size <= _SMALL and not value.dtype.hasobject else value.shape
    return None


@unseen
def _of_tensor(tensor):
    """The count misses what is changed through `.data` or an array of the same memory, and inference tensors
    have none."""
    torch = sys.modules["torch"]
    count = 0 if tensor.is_inference() else tensor._version
    if type(tensor) not in (torch.Tensor, torch.nn.Parameter) or tensor.device.type != "cpu":
        return count
    try:
        if tensor.numel() > _SMALL:
            return count
        flat = tensor.detach().resolve_conj().resolve_neg().reshape(-1)
        return count, flat.contiguous().view(torch.uint8).numpy().tobytes()
    except Exception as failure:  # sparse, nested, within vmap
        pass_on(failure)
        return count
