"""torchvision's data sets of pictures, with the transforms that unidle.data.images has."""

from __future__ import annotations

import sys
from typing import Any, List, Optional, Tuple

from .found import Found, is_of

_MEAN, _STD = (
    (0.485, 0.456, 0.406),
    (0.229, 0.224, 0.225),
)  # that unidle.data.images has unless told otherwise
_TRANSFORMS = "torchvision.transforms"
_MOST_BYTES = 2**30  # of pictures that are all made at once


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
    if dataset.extensions is None:
        left.append("is_valid_file chooses the pictures (a text file of lines PATH LABEL does that)")

    def open_source() -> Any:
        from unidle.data.sources import images
        from unidle.errors import UsageError

        source = images(dataset.root, **options)
        if source.class_to_idx != dataset.class_to_idx:
            raise UsageError("like: the classes of the ImageFolder are not those of its folders")
        return source

    return Found(
        source="images",
        code=_call("images", repr(dataset.root), options),
        left=left,
        open=None if left else open_source,
        random=options.get("train", True),
        tolerance=1.001 / 255 / min(options.get("std", _STD)),
    )


def options_of(transform: Any) -> Tuple[dict, List[str]]:
    """Options of unidle.data.images that do what the transform does, and what they do not."""
    steps = _steps(transform)
    options: dict = {}
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
    if not _is_to_float(steps):
        named = ", ".join(type(one).__name__ for one in steps) or "nothing"
        return {}, left + [f"ToTensor and Normalize are to follow the crop, where the data set has {named}"]
    _of_values(steps, options)
    left += [f"{type(one).__name__} comes after it (transform= takes it)" for one in steps]
    return _without_defaults(options), left


def _steps(transform: Any) -> list:
    if is_of(transform, _TRANSFORMS, "Compose"):
        return [step for one in transform.transforms for step in _steps(one)]
    return [] if transform is None else [transform]


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


def _is_to_float(steps: list) -> bool:
    """Takes what makes tensors of 0 to 1 from the front."""
    if steps and is_of(steps[0], _TRANSFORMS, "ToTensor"):
        steps.pop(0)
        return True
    if len(steps) > 1 and (
        is_of(steps[0], _TRANSFORMS, "ToImage") or is_of(steps[0], _TRANSFORMS, "PILToTensor")
    ):
        kind = steps[1]
        if is_of(kind, _TRANSFORMS, "ToDtype") and str(kind.dtype) == "torch.float32" and kind.scale:
            del steps[:2]
            return True
        if is_of(kind, _TRANSFORMS, "ConvertImageDtype") and str(kind.dtype) == "torch.float32":
            del steps[:2]
            return True
    return False


def _of_values(steps: list, options: dict) -> None:
    options.update(mean=(0.0, 0.0, 0.0), std=(1.0, 1.0, 1.0))
    if steps and is_of(steps[0], _TRANSFORMS, "Normalize") and len(steps[0].mean) == 3:
        step = steps.pop(0)
        options.update(mean=tuple(map(float, step.mean)), std=tuple(map(float, step.std)))


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
    """Pictures of one size in memory. They are made once, as float32, where there is room for that."""
    steps = _steps(dataset.transform)
    left = []
    if not _is_to_float(steps):
        left.append("its transform does not begin with ToTensor")
        steps = []
    mean, std = 0.0, 1.0
    if not left and steps and is_of(steps[0], _TRANSFORMS, "Normalize") and len(steps[0].mean) == 1:
        step = steps.pop(0)
        mean, std = float(step.mean[0]), float(step.std[0])
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
