"""Sources of samples. A source is opened once; any number of loaders may read it."""

from __future__ import annotations

from typing import Any, Callable, Iterable, Optional, Sequence, Tuple, Union

from unidle import _tensors
from unidle.data import options as check
from unidle.data.opening import PathLike, Paths, native_source, opened, paths_of
from unidle.data.source import Source, Transform, Wrapped
from unidle.data.tables import table
from unidle.errors import UsageError

__all__ = ["arrays", "images", "npy", "pairs", "sequences", "table", "tar", "windows", "wrap"]

Jitter = Union[float, Sequence[float]]


def _pictures(kind: str, options: dict) -> dict:
    """Converts picture options for the library."""
    taken = dict(options)
    for name in ("scale", "ratio", "mean", "std"):
        if name in options:
            taken[name] = check.several(kind, name, options[name])
    for name, still in (("brightness", 1.0), ("contrast", 1.0), ("saturation", 1.0), ("hue", 0.0)):
        if name in options:
            taken[name] = _factors(kind, name, options[name], still)
    return taken


def _factors(kind: str, name: str, amount: Any, still: float) -> list:
    """Returns the range of a colour change, as torchvision defines it."""
    if isinstance(amount, Iterable):
        return check.several(kind, name, amount) or []
    try:
        most = float(amount)
    except (TypeError, ValueError):
        raise check.refuse(kind, name, "a number or two", amount) from None
    if not most >= 0:
        raise check.refuse(kind, name, "0 or more", amount)
    return [max(0.0, still - most) if still else -most, still + most]


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
    orient: bool = False,
    brightness: Jitter = 0.0,
    contrast: Jitter = 0.0,
    saturation: Jitter = 0.0,
    hue: Jitter = 0.0,
    scaled_decode: bool = False,
    tell_crop: bool = False,
) -> Source:
    """Pictures with their class: (float32 [3, size, size], int64 class).

    `path` is a folder with one subfolder per class, in the layout and order of torchvision's ImageFolder, or
    a text file of lines "PATH LABEL". Supports JPEG, PNG and WebP.

    Training: RandomResizedCrop(size, scale, ratio) and RandomHorizontalFlip(flip). Otherwise Resize(resize)
    and CenterCrop(size); the default of `resize` is size * 256 // 224. Then, with `normalize`, (x / 255 -
    `mean`) / `std`; without, the uint8 values. The pixels equal those of torchvision with Pillow pictures:
    bit for bit up to Pillow 12, within 1 of 255 for later versions and for torchvision's tensors.
    `scaled_decode` decodes JPEG at 1/2, 1/4 or 1/8 of its size if the sample is that much smaller, which is
    faster but only approximately the same.

    `orient` applies the EXIF orientation of photographs, like Pillow's ImageOps.exif_transpose. torchvision's
    ImageFolder ignores it, which is the default.

    `brightness`, `contrast`, `saturation` and `hue` change the colours of training samples randomly, in
    random order, like torchvision's v2.ColorJitter for uint8 tensors: a number x means factors from 1 - x to
    1 + x (for hue, rotations from -x to x), two numbers mean minimum and maximum.

    `transform` receives the tensor of one picture and returns another. It is called in the thread that takes
    batches, so its cost is not hidden. `tell_crop` adds a field int64 [5]: top, left, height and width of the
    crop, and 1 if mirrored; with colour changes, also float32 [8]: the factors of brightness, contrast,
    saturation and hue, and the order of these four by number.
    """
    pictures = {
        "size": size,
        "train": train,
        "scale": scale,
        "ratio": ratio,
        "flip": flip,
        "resize": resize,
        "normalize": normalize,
        "mean": mean,
        "std": std,
        "orient": orient,
        "brightness": brightness,
        "contrast": contrast,
        "saturation": saturation,
        "hue": hue,
        "scaled_decode": scaled_decode,
        "tell_crop": tell_crop,
    }
    options = {"path": check.path("images", path), **_pictures("images", pictures)}
    return opened("images", options, transform=check.function("images", "transform", transform))


def tar(
    paths: Paths,
    fields: Optional[Sequence[str]] = None,
    transform: Optional[Transform] = None,
    **pictures: Any,
) -> Source:
    """Samples from tar archives in WebDataset's layout: consecutive members with the same name up to the
    first dot form a sample. One tensor per field.

    `paths` is an archive, a list of them, or a folder of *.tar. `fields` names the suffixes after the dot.
    The last part of a suffix gives its type, such as "jpg" in "left.jpg": "jpg", "jpeg", "png" and "webp" are
    pictures, "npy" a tensor of one type and shape, and "cls", "class", "count", "index" or "id" a whole
    number; "jpg;png" is whichever the sample has, and "json:box.x" the number under that key of the member
    "json". By default, all of these in the first sample, except JSON.

    Pictures take the options of `images` (size, train, scale, normalize, orient ...); all pictures of a
    sample get the same crop. `transform` receives the first field of each sample, as in `images`.

    Members are read at random, so no shuffle buffer is needed. Their positions are kept in an index beside
    each archive, NAME.tar.unidle-index, created when the archive is first opened and when it changes. `facts`
    has "shards" and "left_out", the members of the first sample that are not fields.

    Raises InputError with archive and member for damage, a sample without a field, and a tensor of another
    shape.
    """
    options = {
        "paths": paths_of("tar", "paths", paths),
        "fields": check.several("tar", "fields", fields),
        **_pictures("tar", pictures),
    }
    return opened("tar", options, transform=check.function("tar", "transform", transform))


def pairs(
    path: PathLike,
    crop: int = 128,
    scale: int = 4,
    *,
    crops_per_item: int = 1,
    flip: bool = True,
    cache_bytes: int = 0,
) -> Source:
    """Pictures in two resolutions with the same crop: (uint8 low [crop / scale, crop / scale, 3], uint8 high
    [crop, crop, 3]), from FOLDER/low/NAME and FOLDER/high/NAME.

    Takes `crops_per_item` crops from each decoded pair. `cache_bytes` limits the cache of decoded pictures.
    """
    options = {
        "path": check.path("pairs", path),
        "crop": crop,
        "scale": scale,
        "crops_per_item": crops_per_item,
        "flip": flip,
        "cache_bytes": cache_bytes,
    }
    return opened("pairs", options)


def arrays(*arrays: Any, names: Optional[Sequence[str]] = None) -> Source:
    """Rows of arrays or tensors in host memory: one field per array, with its type and row shape.

    Arrays with contiguous rows are not copied, and must not be modified while batches are made. bfloat16
    needs torch: its batches are torch tensors.

    A list of arrays of different lengths, one per sample, is also one field; it is copied once. A batch is
    padded with zeros to its longest sample, and the loader's `extents` has the length of each.
    """
    held: list = []
    ragged = []
    for number, array in enumerate(arrays):
        rows = _tensors.as_ragged(array)
        if rows is not None:
            ragged.append(number)
        held.extend(rows or [_tensors.as_host(array)])
    return opened("arrays", {"names": check.several("arrays", "names", names), "ragged": ragged}, held)


def npy(path: PathLike, fields: Optional[Sequence[str]] = None) -> Source:
    """Rows of .npy shards or uncompressed .npz files: one tensor per field, with the file's type and row
    shape.

    The shards of field F, in natural order of their names: F.npy and F_*.npy, or *_F.npy, or F/*.npy, or the
    members F.npy of all *.npz. For a single .npy file, the field has the file's name. By default, `fields`
    are all fields found by their names, those with the largest rows first. Rows are read on demand.
    """
    return opened("npy", {"path": check.path("npy", path), "fields": check.several("npy", "fields", fields)})


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

    `arrays` is one series [steps, columns] or [steps], or a list of them with any lengths. The second tensor
    holds the steps after the first, for the columns `targets` or all. Steps with a NaN are gaps: no window
    spans one, unless `skip_gaps` is false. float32 series are not copied.
    """
    np = _tensors.numpy()
    series = list(arrays) if isinstance(arrays, (list, tuple)) else [arrays]
    held = [np.ascontiguousarray(_tensors.as_numpy(one), dtype=np.float32) for one in series]
    options = {
        "length": length,
        "horizon": horizon,
        "stride": stride,
        "targets": check.several("windows", "targets", targets),
        "skip_gaps": skip_gaps,
    }
    return opened("windows", options, held)


def sequences(
    path: PathLike,
    tokens_per_batch: int = 4096,
    *,
    column: Optional[str] = None,
    label: Optional[str] = None,
    alphabet: Optional[str] = None,
    padding: float = 0.05,
) -> Source:
    """Texts as token ids, in whole batches of similar length: (int64 tokens [rows, length], int64 lengths
    [rows]), and int64 labels [rows] if `label` names a column.

    `path` is a CSV file with a `column` of texts, a FASTA file (.fasta, .fa, .faa, .fna) or a file with one
    text per line. A token is a byte: its number in `alphabet`, from 1; 0 is padding. The default alphabet is
    the file's characters in order.

    A batch has at most `tokens_per_batch` tokens including padding, of which at most the share `padding` is
    padding. Each epoch shuffles the texts again. A sample of this source is a whole batch: len(source) is the
    number of batches per epoch, and a loader takes it with batch_size=1. `facts` has "texts", "alphabet",
    "padding" (as a share of all tokens) and "buckets".
    """
    options = {
        "path": check.path("sequences", path),
        "tokens_per_batch": tokens_per_batch,
        "column": column,
        "label": label,
        "alphabet": alphabet,
        "padding": padding,
    }
    return opened("sequences", options)


def wrap(dataset: Any, collate: Optional[Callable[[list], Any]] = None) -> Source:
    """A map-style data set of the program, with __len__ and __getitem__ (or __getitems__).

    Threads of this process make the samples: nothing is forked or pickled, and the data set exists once. This
    helps if __getitem__ waits (files, network) or calls functions that release the interpreter lock (numpy on
    large arrays, Pillow, zlib), or if the interpreter has no such lock. When it cannot help, the loader warns
    once with a RuntimeWarning. __getitem__ is called from several threads at once.

    A batch is the result of `collate` for the list of its samples; by default that of torch's
    default_collate, with tuples for lists. Order, ranks and resuming work as for every source. Randomness in
    __getitem__ is up to the data set: draw it from a generator seeded by the item.
    """
    for name in ("__len__", "__getitem__"):
        if not hasattr(dataset, name):
            raise UsageError(
                f"wrap: expected a data set with __len__ and __getitem__, found {type(dataset).__name__}"
            )
    numbers = _tensors.numpy().arange(len(dataset), dtype="int64")
    return Wrapped(native_source("arrays", {"names": ["item"]}, [numbers]), [numbers], dataset, collate)
