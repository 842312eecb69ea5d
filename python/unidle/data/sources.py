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

    `path` is a folder with a folder for each class, as torchvision's ImageFolder has it and in its order,
    or a text file of lines "PATH LABEL". JPEG, PNG and WebP.

    Training: RandomResizedCrop(size, scale, ratio) and RandomHorizontalFlip(flip). Otherwise Resize(resize)
    and CenterCrop(size), where `resize` is size * 256 // 224 unless given. Then, with `normalize`, x / 255
    less `mean` over `std`; without, the uint8 values themselves. The pixels are those that torchvision
    makes of Pillow's pictures: bit for bit with Pillow up to 12, within 1 of 255 with later ones and with
    torchvision's tensors. With `scaled_decode` JPEG is decoded at 1/2, 1/4 or 1/8 of its size where the
    sample is that much smaller, which is faster and only nearly the same.

    `orient` turns photographs the way up that their EXIF says, as Pillow's ImageOps.exif_transpose does.
    Without it they are as they are stored, which is what torchvision's ImageFolder shows.

    `brightness`, `contrast`, `saturation` and `hue` change the colours of training samples at random, in a
    random order, by the rules of torchvision's v2.ColorJitter for tensors of uint8: a number x stands for
    factors from 1 - x to 1 + x (of hue: for turns from -x to x), and two numbers for the least and the most.

    `transform` takes the tensor of one picture and returns another. It is called in the thread that takes
    batches, so that what it costs is not hidden. `tell_crop` adds a field int64 [5]: top, left, height and
    width of the part that is shown, and 1 where it is mirrored; where colours are changed, also float32 [8]:
    the factors of brightness, contrast, saturation and hue, and the order of these four by their numbers.
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
    """Samples out of tar archives, as WebDataset writes them: members that follow each other and have the
    same name up to the first point are a sample. One tensor a field.

    `paths` is an archive, a list of them, or a folder of *.tar. `fields` names what stands behind the point.
    Its last part says what it is, as "jpg" of "left.jpg": "jpg", "jpeg", "png" and "webp" are pictures, "npy"
    a tensor of one type and shape, and "cls", "class", "count", "index" or "id" a whole number; "jpg;png" is
    the one that a sample has, and "json:box.x" the number at that key of the member "json". Without `fields`
    it is all of these that the first sample has, but what is in its json.

    Pictures take the options of `images` (size, train, scale, normalize, orient ...); all pictures of a
    sample are cut out alike. `transform` takes the first field of each sample, as there.

    Members are read at random, so that nothing is shuffled in a buffer. Where they lie is kept in an index
    beside each archive, NAME.tar.unidle-index, made when the archive is first opened and when it changes.
    `facts` has "shards", and "left_out", what the first sample has beside the fields.

    Raises InputError with archive and member for damage, a sample that lacks a field, a tensor of another
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
    """Pictures in two resolutions, the same part of both: (uint8 low [crop / scale, crop / scale, 3],
    uint8 high [crop, crop, 3]), of FOLDER/low/NAME and FOLDER/high/NAME.

    `crops_per_item` parts are cut out of each decoded pair. `cache_bytes` keeps decoded pictures.
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
    """Rows of arrays or tensors in the host's memory: one field an array, of its type and the shape of its
    rows.

    They are not copied, as long as each row is in one piece, and must not be changed in place while batches
    are made. bfloat16 is torch's alone: its batches are tensors of torch.

    A list of arrays of different lengths is one field too, with an array a sample; it is copied once. A
    batch is as long as its longest sample, filled up with zeros, and the loader's `extents` says how long
    each one is.
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
    """Rows of .npy shards or uncompressed .npz files: one tensor a field, of the file's type and row shape.

    The shards of the field F, in the natural order of their names: F.npy and F_*.npy, or *_F.npy, or
    F/*.npy, or the members F.npy of all *.npz. For one .npy file the field has the file's name. Without
    `fields` it is all that the names tell, the largest rows first. Rows are read when they are needed.
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
    [rows]), and int64 labels [rows] where `label` names a column.

    `path` is a CSV file with a `column` of texts, a FASTA file (.fasta, .fa, .faa, .fna) or a file with a
    text in each line. A CSV file needs a `column`. A token is a byte: its number in `alphabet`, from 1; 0 is
    padding. Without an alphabet it is the characters of the file in their order.

    A batch has at most `tokens_per_batch` tokens, padding included, and at most the share `padding` of them
    is padding. Each epoch shuffles the texts anew. A sample of this source is a whole batch: len(source) is
    their number an epoch, and a loader takes it with batch_size=1. `facts` has "texts", "alphabet",
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
    """A map-style data set of the program's own: what has __len__ and __getitem__ (or __getitems__).

    Its samples are made by threads of this process: nothing is forked or pickled, and the data set is there
    once. That helps where __getitem__ waits (files, network) or works in calls that release the lock of the
    interpreter (numpy on large arrays, Pillow, zlib), or where the interpreter has no such lock. Where it
    cannot help, the loader says so, once, with a RuntimeWarning. __getitem__ is called from several threads
    at once.

    A batch is what `collate` makes of the list of its samples; otherwise what torch's default_collate makes
    of it, with a tuple for a list. Order, ranks and resuming are those of every source. What is random in
    __getitem__ is the data set's business: draw it from a generator that is seeded by the item.
    """
    for name in ("__len__", "__getitem__"):
        if not hasattr(dataset, name):
            raise UsageError(
                f"wrap: expected a data set with __len__ and __getitem__, found {type(dataset).__name__}"
            )
    numbers = _tensors.numpy().arange(len(dataset), dtype="int64")
    return Wrapped(native_source("arrays", {"names": ["item"]}, [numbers]), [numbers], dataset, collate)
