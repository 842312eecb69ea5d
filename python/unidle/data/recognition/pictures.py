"""torchvision's picture data sets, with the transforms that unidle.data.images supports."""

from __future__ import annotations

import sys
from typing import Any, List, Optional, Tuple

from .found import Found, is_of

_MEAN, _STD = (
    (0.485, 0.456, 0.406),
    (0.229, 0.224, 0.225),
)  # the defaults of unidle.data.images
_TRANSFORMS = "torchvision.transforms"
_MOST_BYTES = 2**30  # limit for pictures that are all made at once


def recognize(dataset: Any) -> Optional[Found]:
    if is_of(dataset, "torchvision.datasets.folder", "ImageFolder"):
        return _folder(dataset)
    getter = getattr(type(dataset), "__getitem__", None)
    if type(dataset).__module__ == "torchvision.datasets.mnist" and (
        getattr(getter, "__qualname__", "") == "MNIST.__getitem__"
    ):
        return _digits(dataset)
    return None


def _folder(dataset: Any) -> Found:
    options, left = options_of(dataset.transform)
    if dataset.target_transform is not None:
        left.append("its target_transform is the program's own (give the loader a batch_transform)")
    reader = getattr(dataset, "loader", None)
    if getattr(reader, "__module__", "") != "torchvision.datasets.folder" or (
        getattr(reader, "__name__", "") != "default_loader"
    ):
        left.append("its loader is the program's own")
    if _was_changed(dataset):
        left.append("its samples were changed after it was made (a text file of lines PATH LABEL does that)")
    if dataset.extensions is None:
        left.append("is_valid_file chooses the pictures (a text file of lines PATH LABEL does that)")

    def open_source() -> Any:
        from unidle.data.sources import images
        from unidle.errors import UsageError

        source = images(dataset.root, **options)
        if source.class_to_idx != dataset.class_to_idx:
            raise UsageError("like: the classes of the ImageFolder are not those of its folders")
        if dataset.samples != _listed(dataset):
            raise UsageError("like: the samples of the ImageFolder are not those of its folders")
        return source

    return Found(
        source="images",
        code=_call("images", repr(dataset.root), options),
        left=left,
        open=None if left else open_source,
        random=options.get("train", True),
        tolerance=1.001 / 255 / min(options.get("std", _STD)),
    )


def _listed(dataset: Any) -> list:
    """Returns what an ImageFolder finds in its folders now."""
    try:
        return dataset.make_dataset(dataset.root, dataset.class_to_idx, dataset.extensions)
    except FileNotFoundError:  # a class without pictures
        return []


def _was_changed(dataset: Any) -> bool:
    """True if `samples` differs from what the ImageFolder found: it keeps two more lists of them."""
    samples = dataset.samples
    return dataset.imgs is not samples or dataset.targets != [label for _, label in samples]


def options_of(transform: Any) -> Tuple[dict, List[str]]:
    """Returns the options of unidle.data.images for a transform, and its unsupported parts."""
    steps = _steps(transform)
    options: dict = {}
    is_tensor = bool(steps) and is_of(steps[0], _TRANSFORMS, "ToImage")  # before the crop, as in v2's guide
    if is_tensor:
        steps.pop(0)
    if steps and is_of(steps[0], _TRANSFORMS, "RandomResizedCrop"):
        _of_random_crop(steps.pop(0), options)
        options["flip"] = 0.0
        if steps and is_of(steps[0], _TRANSFORMS, "RandomHorizontalFlip"):
            options["flip"] = float(steps.pop(0).p)
    elif (
        len(steps) > 1
        and is_of(steps[0], _TRANSFORMS, "Resize")
        and (is_of(steps[1], _TRANSFORMS, "CenterCrop"))
    ):
        options["train"] = False
        _of_resize(steps.pop(0), options)
        _of_centre(steps.pop(0), options)
    else:
        first = type(steps[0]).__name__ if steps else "no transform"
        return {}, [
            "unidle.data.images begins with RandomResizedCrop, or with Resize and CenterCrop, where the "
            f"data set begins with {first}"
        ]
    left = [f"{one} is not the same there" for one in options.pop("differs", ())]
    if not _is_to_float(steps, is_tensor):
        named = ", ".join(type(one).__name__ for one in steps) or "nothing"
        return {}, left + [f"ToTensor and Normalize are to follow the crop, where the data set has {named}"]
    _of_values(steps, options)
    left += [f"{type(one).__name__} comes after it (transform= takes it)" for one in steps]
    return _without_defaults(options), left


def _steps(transform: Any) -> list:
    if is_of(transform, _TRANSFORMS, "ImageClassification"):  # preset of pretrained weights
        return _of_preset(transform)
    if is_of(transform, _TRANSFORMS, "Compose"):
        return [step for one in transform.transforms for step in _steps(one)]
    return [] if transform is None else [transform]


def _of_preset(preset: Any) -> list:
    """Returns the preset's steps as separate transforms."""
    steps = sys.modules["torchvision.transforms"]
    how = preset.interpolation
    return [
        steps.Resize(preset.resize_size, how),
        steps.CenterCrop(preset.crop_size),
        steps.ToTensor(),
        steps.Normalize(preset.mean, preset.std),
    ]


def _square(size: Any) -> Optional[int]:
    sizes = [size] if isinstance(size, int) else list(size)
    return sizes[0] if len(set(sizes)) == 1 else None


def _differs(options: dict, what: str) -> None:
    options.setdefault("differs", []).append(what)


def _is_bilinear(step: Any) -> bool:
    return str(getattr(step.interpolation, "value", step.interpolation)) in ("bilinear", "2")


def _of_random_crop(step: Any, options: dict) -> None:
    size = _square(step.size)
    if size is None:
        _differs(options, f"RandomResizedCrop to {tuple(step.size)}, which is no square,")
    if not _is_bilinear(step):
        _differs(options, f"interpolation={step.interpolation}")
    options.update(size=size, scale=tuple(step.scale), ratio=tuple(step.ratio))


def _of_resize(step: Any, options: dict) -> None:
    sizes = [step.size] if isinstance(step.size, int) else list(step.size)
    if len(sizes) != 1:
        _differs(options, f"Resize to {tuple(sizes)}, which changes the shape of pictures,")
    if getattr(step, "max_size", None) is not None or not _is_bilinear(step):
        _differs(options, "Resize with max_size or another interpolation")
    options["resize"] = sizes[0]


def _of_centre(step: Any, options: dict) -> None:
    options["size"] = _square(step.size)
    if options["size"] is None or options["size"] > options["resize"]:
        _differs(options, f"CenterCrop to {step.size}")


def _is_to_float(steps: list, is_tensor: bool = False) -> bool:
    """Removes the leading steps that make tensors of 0 to 1. `is_tensor`: their input is a tensor, not a
    picture."""
    if steps and not is_tensor and is_of(steps[0], _TRANSFORMS, "ToTensor"):
        steps.pop(0)
        return True
    first = 0 if is_tensor else 1
    if not is_tensor and not (
        steps and (is_of(steps[0], _TRANSFORMS, "ToImage") or is_of(steps[0], _TRANSFORMS, "PILToTensor"))
    ):
        return False
    if len(steps) <= first or str(getattr(steps[first], "dtype", "")) != "torch.float32":
        return False
    kind = steps[first]
    scales = is_of(kind, _TRANSFORMS, "ToDtype") and kind.scale
    if not scales and not is_of(kind, _TRANSFORMS, "ConvertImageDtype"):
        return False
    del steps[: first + 1]
    return True


def _of_values(steps: list, options: dict) -> None:
    options.update(mean=(0.0, 0.0, 0.0), std=(1.0, 1.0, 1.0))
    normalized = _normalized(steps, 3)
    if normalized:
        steps.pop(0)
        options.update(mean=normalized[0], std=normalized[1])


def _normalized(steps: list, channels: int) -> Optional[Tuple[tuple, tuple]]:
    """Returns mean and deviation per channel if the first step is a Normalize of this many channels. One
    value applies to all channels."""
    if not steps or not is_of(steps[0], _TRANSFORMS, "Normalize"):
        return None
    torch = sys.modules["torch"]
    both = [
        torch.as_tensor(values, dtype=torch.float64).flatten().tolist()
        for values in (steps[0].mean, steps[0].std)
    ]
    mean, std = [tuple(values * channels if len(values) == 1 else values) for values in both]
    return (mean, std) if len(mean) == len(std) == channels else None


def _without_defaults(options: dict) -> dict:
    size = options["size"]
    usual = {
        "size": 224,
        "train": True,
        "scale": (0.08, 1.0),
        "ratio": (3 / 4, 4 / 3),
        "flip": 0.5,
        "mean": _MEAN,
        "std": _STD,
        "resize": None if size is None else size * 256 // 224,
    }
    return {name: value for name, value in options.items() if usual[name] != value}


def _call(source: str, first: str, options: dict) -> str:
    return f"unidle.data.{source}({', '.join([first, *(f'{k}={v!r}' for k, v in options.items())])})"


def _digits(dataset: Any) -> Found:
    """Recognises pictures of equal size in memory. They are made once, as float32, if memory allows."""
    steps = _steps(dataset.transform)
    left = []
    if not _is_to_float(steps):
        left.append("its transform does not begin with ToTensor")
        steps = []
    mean, std = 0.0, 1.0
    normalized = None if left else _normalized(steps, 1)
    if normalized:
        steps.pop(0)
        (mean,), (std,) = normalized
    left += [f"{type(one).__name__} is not done ahead" for one in steps]
    if dataset.target_transform is not None:
        left.append("its target_transform is the program's own")
    if 4 * dataset.data.numel() > _MOST_BYTES:
        left.append("all pictures as float32 are more than a GiB")

    def open_source() -> Any:
        from unidle.data.sources import arrays

        torch = sys.modules["torch"]
        pictures = dataset.data[:, None].to(torch.float32).div_(255)
        return arrays(pictures.sub_(mean).div_(std), dataset.targets.to(torch.int64))

    values = "dataset.data[:, None] / 255"
    values = values if (mean, std) == (0.0, 1.0) else f"({values} - {mean}) / {std}"
    return Found(
        source="arrays",
        code=f"unidle.data.arrays({values}, dataset.targets)",
        left=left,
        open=None if left else open_source,
        tolerance=1e-6 / std,
    )
