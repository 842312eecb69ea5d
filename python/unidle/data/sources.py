"""Where samples come from. A source is opened once; any number of loaders may read it."""

from __future__ import annotations

import ctypes
import json
import os
import weakref
from typing import Any, Callable, Iterable, NamedTuple, Optional, Sequence, Tuple, Union

from unidle import _native, _tensors
from unidle.errors import UsageError

Transform = Callable[[Any], Any]
PathLike = Union[str, "os.PathLike[str]"]


class Field(NamedTuple):
    """One tensor of a sample. `shape` has the largest first extent where that varies (`ragged`)."""

    name: str
    dtype: str
    shape: Tuple[int, ...]
    ragged: bool


class Source:
    """Samples by number. Made by the functions of this module; thread-safe.

    len(source) is the number of samples, `fields` says what each is made of.
    """

    def __init__(self, handle: int, keep: Sequence[Any], transform: Optional[Transform] = None) -> None:
        library = _native.library()
        if not handle:
            _native.raise_failure()
        self._handle = handle
        self._keep = tuple(keep)  # what must live as long as the native source
        self._close = weakref.finalize(self, _close, library, handle, self._keep)
        self.transform = transform
        text = library.unidle_source_describe(handle)
        if not text:
            _native.raise_failure()
        try:
            facts = json.loads(ctypes.string_at(text))
        finally:
            library.unidle_data_free(text)
        self.fields = tuple(
            Field(field["name"], field["dtype"], tuple(field["shape"]), field["ragged"])
            for field in facts.pop("fields")
        )
        self._samples = facts.pop("items") * facts.pop("samples_per_item")
        self._facts = facts

    def __len__(self) -> int:
        return self._samples

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError("a Source holds memory and files of its process: make it again in the other one")

    def __repr__(self) -> str:
        fields = ", ".join(f"{field.name} {field.dtype}{list(field.shape)}" for field in self.fields)
        return f"<unidle.data.Source of {self._samples} samples: {fields}>"

    @property
    def facts(self) -> dict:
        """What else is known of it; see the function that made it."""
        return dict(self._facts)

    @property
    def classes(self) -> list[str]:
        """The names of the classes, by number, where the source has them."""
        return list(self._facts.get("classes", []))

    @property
    def class_to_idx(self) -> dict[str, int]:
        """The numbers of the classes, by name."""
        return {name: number for number, name in enumerate(self.classes)}

    def subset(self, items: Iterable[int]) -> Source:
        """A source of these items only, in this order; an item may come several times."""
        numbers = [int(item) for item in items]
        array = (ctypes.c_int64 * max(1, len(numbers)))(*numbers)
        handle = _native.library().unidle_source_subset(self._handle, array, len(numbers))
        return Source(handle, (self,), self.transform)


def _close(library: Any, handle: int, keep: Any) -> None:
    library.unidle_source_close(handle)
    del keep


def _open(
    kind: str, options: dict, arrays: Sequence[Any] = (), transform: Optional[Transform] = None
) -> Source:
    library = _native.library()
    tensors = _tensors.describe_arrays(arrays)
    handle = library.unidle_source_open(kind.encode(), json.dumps(options).encode(), tensors, len(arrays))
    return Source(handle, arrays, transform)


def images(
    path: PathLike,
    size: int = 224,
    train: bool = True,
    transform: Optional[Transform] = None,
    *,
    scale: Tuple[float, float] = (0.08, 1.0),
    ratio: Tuple[float, float] = (3 / 4, 4 / 3),
    flip: float = 0.5,
    resize: Optional[int] = None,
    normalize: bool = True,
    mean: Sequence[float] = (0.485, 0.456, 0.406),
    std: Sequence[float] = (0.229, 0.224, 0.225),
    scaled_decode: bool = False,
    tell_crop: bool = False,
) -> Source:
    """Pictures with their class: (float32 [3, size, size], int64 class).

    `path` is a folder with a folder for each class, as torchvision's ImageFolder has it and in its order,
    or a text file of lines "PATH LABEL". JPEG and PNG.

    Training: RandomResizedCrop(size, scale, ratio) and RandomHorizontalFlip(flip). Otherwise Resize(resize)
    and CenterCrop(size), where `resize` is size * 256 // 224 unless given. Then, with `normalize`, x / 255
    less `mean` over `std`; without, the uint8 values themselves. The pixels are those that torchvision
    makes of Pillow's pictures: bit for bit with Pillow up to 12, within 1 of 255 with later ones and with
    torchvision's tensors. With `scaled_decode` JPEG is decoded at 1/2, 1/4 or 1/8 of its size where the
    sample is that much smaller, which is faster and only nearly the same.

    `transform` takes the tensor of one picture and returns another. It is called in the thread that takes
    batches, so that what it costs is not hidden. `tell_crop` adds a field int64 [5]: top, left, height and
    width of the part that is shown, and 1 where it is mirrored.
    """
    options = {
        "path": os.fspath(path),
        "size": size,
        "train": train,
        "scale": list(scale),
        "ratio": list(ratio),
        "flip": flip,
        "resize": resize,
        "normalize": normalize,
        "mean": list(mean),
        "std": list(std),
        "scaled_decode": scaled_decode,
        "tell_crop": tell_crop,
    }
    return _open("images", options, transform=transform)


def pairs(
    path: PathLike,
    crop: int = 128,
    scale: int = 4,
    *,
    crops_per_item: int = 1,
    flip: bool = True,
    cache_bytes: int = 0,
) -> Source:
    """Pictures in two resolutions, the same part of both: (uint8 low [crop / scale, crop / scale, 3],
    uint8 high [crop, crop, 3]), of FOLDER/low/NAME and FOLDER/high/NAME.

    `crops_per_item` parts are cut out of each decoded pair. `cache_bytes` keeps decoded pictures.
    """
    options = {
        "path": os.fspath(path),
        "crop": crop,
        "scale": scale,
        "crops_per_item": crops_per_item,
        "flip": flip,
        "cache_bytes": cache_bytes,
    }
    return _open("pairs", options)


def arrays(*arrays: Any, names: Optional[Sequence[str]] = None) -> Source:
    """Rows of arrays or tensors in the host's memory: one field an array, of its type and the shape of its
    rows.

    They are not copied, as long as each row is in one piece, and must not be changed in place while batches
    are made.
    """
    held = [_tensors.as_numpy(array) for array in arrays]
    return _open("arrays", {"names": None if names is None else list(names)}, held)


def npy(path: PathLike, fields: Optional[Sequence[str]] = None) -> Source:
    """Rows of .npy shards or uncompressed .npz files: one tensor a field, of the file's type and row shape.

    The shards of the field F, in the natural order of their names: F.npy and F_*.npy, or *_F.npy, or
    F/*.npy, or the members F.npy of all *.npz. For one .npy file the field has the file's name. Rows are
    read when they are needed.
    """
    if isinstance(fields, str):
        raise UsageError(f"npy option fields: expected a list of names, found {fields!r}")
    return _open("npy", {"path": os.fspath(path), "fields": None if fields is None else list(fields)})


def windows(
    arrays: Any,
    length: int,
    horizon: int = 1,
    stride: int = 1,
    *,
    targets: Optional[Sequence[int]] = None,
    skip_gaps: bool = True,
) -> Source:
    """Windows of time series: (float32 [length, columns], float32 [horizon, columns or targets]).

    `arrays` is one series [steps, columns] or [steps], or a list of them of any lengths. The second tensor
    holds what follows the first, of the columns `targets` or of all. Steps with a NaN are gaps: no window
    reaches over one, unless `skip_gaps` is false. Series that are float32 already are not copied.
    """
    np = _tensors.numpy()
    series = list(arrays) if isinstance(arrays, (list, tuple)) else [arrays]
    held = [np.ascontiguousarray(_tensors.as_numpy(one), dtype=np.float32) for one in series]
    options = {
        "length": length,
        "horizon": horizon,
        "stride": stride,
        "targets": None if targets is None else list(targets),
        "skip_gaps": skip_gaps,
    }
    return _open("windows", options, held)


def sequences(
    path: PathLike,
    tokens_per_batch: int = 4096,
    *,
    column: Optional[str] = None,
    label: Optional[str] = None,
    alphabet: Optional[str] = None,
    padding: float = 0.05,
) -> Source:
    """Texts as token ids, in whole batches of like lengths: (int64 tokens [rows, length], int64 lengths
    [rows]),
    and int64 labels [rows] where `label` names a column.

    `path` is a CSV file with a `column` of texts, a FASTA file (.fasta, .fa, .faa, .fna) or a file with a
    text in each line. A token is a byte: its number in `alphabet`, from 1, and 0 where a row is filled up.
    Without an alphabet it is the characters of the file in their order.

    A batch has at most `tokens_per_batch` tokens, filled up ones counted, and at most the share `padding`
    of them is filled up. Each epoch deals the texts out anew. A sample of this source is a whole batch:
    len(source) is their number an epoch, and a loader takes it with batch_size=1. `facts` has "texts",
    "alphabet", "padding" (what is filled up, as a share of all) and "buckets".
    """
    options = {
        "path": os.fspath(path),
        "tokens_per_batch": tokens_per_batch,
        "column": column,
        "label": label,
        "alphabet": alphabet,
        "padding": padding,
    }
    return _open("sequences", options)
