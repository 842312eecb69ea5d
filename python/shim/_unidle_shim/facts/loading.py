"""Reads the settings of a DataLoader and the properties of its dataset, without changing them."""

import sys
import types

from _unidle_shim.facts import drawn_arguments, package_loading, random_draws, replaceable
from _unidle_shim.host import places
from _unidle_shim.host.exception_origin import pass_on
from _unidle_shim.host.shapes import hidden_queries
from _unidle_shim.samples import whole_batches
from _unidle_shim.source import side_effects

_DEEPEST_KEPT = 3


def loader_settings(facts):
    settings = {"loader." + name: facts[name] for name in ("workers", "pin_memory", "persistent_workers")}
    if facts["workers"]:
        settings["loader.prefetch_factor"] = facts["prefetch_factor"]
    if facts["batch_size"]:
        settings["batch.size"] = facts["batch_size"]
    return settings


def batch_size(real):
    size = real.batch_size
    if size is None:
        size = getattr(getattr(real, "batch_sampler", None), "batch_size", None)
    return size if isinstance(size, int) else None


def items_per_batch(real):
    """Items of the dataset in a batch; None if that depends on the program's batch sampler."""
    if real.batch_size is None and getattr(real, "batch_sampler", None) is None:
        return 1  # an item is a batch
    return batch_size(real)


def samples_per_epoch(real):
    """None if unknown. Items, where one of them may be a whole batch."""
    if items_per_batch(real) == 1:
        return length_of(real)
    try:
        sampler = real.batch_sampler
        with hidden_queries(sys.modules["torch"]):
            if sampler is not None and batch_size(real):
                each = getattr(sampler, "sampler", None)
                return len(each) if each is not None else len(sampler) * batch_size(real)
            return len(real.dataset)
    except (TypeError, AttributeError, NotImplementedError):
        return None


def length_of(value):
    try:
        with hidden_queries(sys.modules["torch"]):
            return len(value)
    except Exception as failure:
        pass_on(failure)
        return None


def loader_facts(torch, loader):
    """Properties that do not change; read once, when the loader is first iterated over. None when it is
    gone."""
    real = loader.real()
    if real is None:
        return None
    if loader.of_package:
        return package_loading.loader_facts(loader, real)
    dataset = real.dataset
    iterable = isinstance(dataset, torch.utils.data.IterableDataset)
    length = None if iterable else length_of(dataset)
    in_memory, size = rows_in_memory(torch, dataset, length)
    getter = getattr(type(innermost(dataset)), "__iter__" if iterable else "__getitem__", None)
    return {
        "made_with": "torch",
        "workers": real.num_workers,
        "batch_size": batch_size(real),
        "pin_memory": bool(real.pin_memory),
        "prefetch_factor": getattr(real, "prefetch_factor", None) if real.num_workers else None,
        "persistent_workers": bool(getattr(real, "persistent_workers", False)),
        "drop_last": bool(real.drop_last),
        "iterable": iterable,
        "map_style": not iterable,
        "collate": getattr(real.collate_fn, "__qualname__", type(real.collate_fn).__name__),
        "collate_where": collate_where(real.collate_fn),
        "sampler": type(getattr(real, "sampler", None)).__name__,
        "dataset": type(innermost(dataset)).__name__,
        "dataset_where": places.of_function(getter),
        "dataset_len": length,
        "dataset_anew": loader.dataset_anew,
        "in_memory": in_memory,
        "in_memory_bytes": size,
        "draws": None if iterable else random_draws.drawn_by(innermost(dataset)),
        "batched_getitem": whole_batches.gives_batches(dataset) or not real._auto_collation,
        "start_method": start_method(real),
        "where": loader.where,
        "samples_per_epoch": samples_per_epoch(real),
    }


def collate_where(collate):
    """ "file:line" of the program's own collate function; None for torch's and for those of packages."""
    function = getattr(collate, "func", collate)  # of a functools.partial
    return places.of_function(function) or places.of_function(type(function).__call__)


def measured(loader):
    """The facts that only the batches show, if one item of the dataset is a whole batch."""
    if loader.items != 1 or loader.largest <= 1:
        return {}
    items, mean = loader.facts["samples_per_epoch"], loader.measured_samples / loader.measured
    return {"batch_size": loader.largest, "samples_per_epoch": round(items * mean) if items else None}


def source_of(facts, loader, real):
    """Finds, once per loader, the source of unidle.data that could replace its data set."""
    if facts["made_with"] != "torch" or facts["iterable"]:
        return None
    try:
        return replaceable.note_of(real, loader.where)
    except Exception as failure:  # values that only resemble the expected ones
        pass_on(failure)
        return None


def look_at_samples(facts, real):
    """Finds, once per loader, whether rows of a table in memory could be fetched together, and which
    functions' results could be kept. Calls the program's code only in a trial."""
    facts["keepable"], facts["keepable_where"] = [], []
    if facts["made_with"] != "torch":
        return
    try:
        if not facts["iterable"]:
            found = keepable(real.dataset)
            facts["keepable"] = [getattr(one.__code__, "co_qualname", one.__code__.co_name) for one in found]
            facts["keepable_where"] = [where_to_cache(one) for one in found]
    except Exception as failure:  # code that cannot be parsed
        pass_on(failure)
    if not facts["in_memory"] or facts["iterable"]:
        return
    try:
        facts["gathers"], facts["gathers_not"] = whole_batches.known(real, facts["dataset_len"])
    except Exception as error:  # rows that cannot be combined
        pass_on(error)
        facts["gathers"], facts["gathers_not"] = False, type(error).__name__


def keepable(dataset):
    """The program's functions that make a sample and whose results seem suitable for keeping, see
    knobs/kept_calls.py."""
    found, ahead = [], [(getattr(type(dataset), "__getitem__", None), 1)]
    while ahead:
        function, depth = ahead.pop()
        if not isinstance(function, types.FunctionType) or depth > _DEEPEST_KEPT:
            continue
        never_again = drawn_arguments.called_with_drawn(function)
        for called in side_effects.calls_of(function, type(dataset)):
            if called.__name__ in never_again:
                continue
            if (
                side_effects.leaves_something(called, (dataset,))
                or side_effects.used(called, (dataset,)) & random_draws.NAMES
            ):
                ahead.append((called, depth + 1))
            else:
                found.append(called)
    return found


def where_to_cache(function):
    """Where a user can write @unidle.cached above it. None for a method, whose object has no value usable as
    key, and for functions that only exist during a call."""
    of_module = function.__qualname__ == function.__name__ == function.__code__.co_name
    return places.of_function(function) if of_module else None


def loader_notes(loader, use):
    """`use`: "train", "validate", or "unknown" for one whose batches no model got, beside one that trains."""
    facts = loader.facts
    if facts is None:
        return
    in_memory = False if loader.samples.files else facts["in_memory"]
    yield (
        ("loader", loader.id),
        dict(
            facts,
            **measured(loader),
            type="loader",
            id=loader.id,
            use=use,
            in_memory=in_memory,
            epochs=loader.epochs,
            iterated_where=loader.iterated_where,
            batches=loader.batches,
            fetched_elsewhere=loader.fetched_elsewhere,
            wait_seconds=loader.wait_ns * 1e-9,
        ),
    )
    if loader.source:
        yield ("source", loader.id), dict(loader.source, type="source", id=loader.id)
    if loader.starts:
        yield (
            ("loader_start", loader.id),
            {
                "type": "loader_start",
                "id": loader.id,
                "count": loader.starts,
                "seconds_total": loader.start_ns * 1e-9,
                "seconds_last": loader.start_last_ns * 1e-9,
                "in_training": loader.start_waited_ns * 1e-9,
                "workers": facts["workers"],
            },
        )


def start_method(real):
    context = getattr(real, "multiprocessing_context", None)
    if not real.num_workers:
        return None
    if context is not None:
        return context.get_start_method()
    multiprocessing = sys.modules.get("multiprocessing")
    return (
        multiprocessing.get_start_method(allow_none=True) or multiprocessing.get_context().get_start_method()
    )


def innermost(dataset):
    for _ in range(5):
        inner = getattr(dataset, "dataset", None)
        if inner is None or not type(dataset).__module__.startswith("torch.utils.data"):
            break
        dataset = inner
    return dataset


def rows_in_memory(torch, dataset, length):
    """Whether the dataset holds about as many rows in memory as it has samples, and the bytes of those
    rows."""
    size, rows = 0, False
    for value in members(innermost(dataset)):
        count, width = rows_of(torch, value)
        size += width
        if length and count and width and count >= 0.5 * length:
            rows = True
    return rows, size


def members(dataset):
    values = list(getattr(dataset, "__dict__", {}).values())
    for value in values[:64]:
        if isinstance(value, (tuple, dict)) and len(value) <= 64:
            yield from (value.values() if isinstance(value, dict) else value)
        else:
            yield value


def rows_of(torch, value):
    """(rows, bytes) of a tensor, array, data frame or list of numbers and arrays."""
    if isinstance(value, torch.Tensor):
        with hidden_queries(torch):
            return (value.shape[0] if value.dim() else 0), value.numel() * value.element_size()
    kind = type(value).__module__.split(".")[0]
    if kind == "numpy" and hasattr(value, "nbytes"):
        if type(value).__name__ == "memmap":
            return 0, 0
        return (value.shape[0] if value.shape else 0), int(value.nbytes)
    if kind in ("pandas", "polars", "pyarrow") and hasattr(value, "__len__"):
        width = getattr(value, "nbytes", None)
        if width is None and hasattr(value, "dtypes") and hasattr(value, "values"):
            try:
                width = int(value.memory_usage().sum())
            except Exception as failure:
                pass_on(failure)
                width = 0
        return len(value), int(width or 0)
    if isinstance(value, list) and value and not isinstance(value[0], (str, bytes)):
        count, width = rows_of(torch, value[0])
        return len(value), len(value) * (width or (8 if isinstance(value[0], (int, float)) else 0))
    return 0, 0
