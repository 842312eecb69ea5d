"""Reading settings and properties from torch's own objects. Nothing here changes them."""

import inspect
import sys
import types

from . import places, side_effects, validating
from .guard import caught, pass_on
from .tensors import shape_of

_AMP_NAMES = {"torch.bfloat16": "bf16", "torch.float16": "fp16"}
_DEEPEST_KEPT = 3
_DRAWS = {"random", "randint", "uniform", "choice", "choices", "shuffle", "sample", "gauss", "normal", "rand", "randn", "randperm", "bernoulli",
          "multinomial", "permutation", "standard_normal", "integers", "getrandbits", "RandomState", "default_rng"}
_TIME_MAJOR = ("RNN", "LSTM", "GRU", "MultiheadAttention")
_CONVOLUTIONS = ("Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d")


def caller():
    return places.here(4)


def default_of(function, name):
    try:
        default = inspect.signature(function).parameters[name].default
        return default if isinstance(default, bool) else None
    except (KeyError, TypeError, ValueError):
        return None


def amp_of(torch, tensor):
    kind = getattr(getattr(tensor, "device", None), "type", "cpu")
    if kind == "cpu":
        on = torch.is_autocast_cpu_enabled()
        kept = torch.get_autocast_cpu_dtype()
    else:
        on = torch.is_autocast_enabled()
        kept = torch.get_autocast_gpu_dtype()
    return _AMP_NAMES.get(str(kept), str(kept)) if on else "off"


def _ask(layer, question):
    """Calls `question(args)` before the layer is, once. Returns the handle of the hook: it is to be removed after the forward pass,
    which need not come to the layer; a model that keeps our hook could not be pickled."""
    def hook(_, args):
        try:
            handle.remove()
            question(args)
        except BaseException as failure:
            caught(failure)

    handle = layer.register_forward_pre_hook(hook)
    return handle


def _compiled(module):
    return hasattr(module, "_orig_mod") or getattr(module, "_compiled_call_impl", None) is not None


def look_inside(facts, torch, module):
    """Frameworks switch autocast on within the outermost call: one leaf is asked once. Returns the handles of hooks."""
    def question(args):
        found = amp_of(torch, args[0] if args else None)
        if found != "off":
            facts.amp = found

    if not _compiled(module):
        for leaf in module.modules():
            if not list(leaf.children()) and type(leaf).__name__ in ("Linear", "Conv1d", "Conv2d", "LSTM", "GRU"):
                return [_ask(leaf, question)]
    return []


def look_for_time_major(loop, module, first):
    """Recurrent and attention layers of torch take (time, batch, ...) unless they are told otherwise. Where such a layer gets what the
    model was given in that order, the second dimension counts the samples. Returns the handles of hooks."""
    given = shape_of(first) or ()

    def question(args):
        got = args and shape_of(args[0]) or ()
        if len(got) == 3 and got[:2] == given[:2]:
            loop.batch_axis = 1
            if loop.parts is not None:
                loop.parts.forward_samples = int(given[1])

    if len(given) >= 2 and not _compiled(module):
        for layer in module.modules():
            if type(layer).__name__ in _TIME_MAJOR and getattr(layer, "batch_first", True) is False:
                return [_ask(layer, question)]
    return []


def model_note(torch, module):
    real = getattr(module, "_orig_mod", module)
    wrapped = type(real).__name__ in ("DistributedDataParallel", "DataParallel", "FullyShardedDataParallel")
    inner = getattr(real, "module", real) if wrapped else real
    parameters = [p for p in inner.parameters()]
    first = parameters[0] if parameters else None
    convolutions = [m for m in inner.modules() if type(m).__name__ in _CONVOLUTIONS]
    orders = [channels_last(torch, m.weight) for m in convolutions if getattr(m, "weight", None) is not None]
    orders = [last for last in orders if last is not None]
    return {
        "type": "model", "class": type(inner).__name__, "wrapper": type(real).__name__ if wrapped else None,
        "parameters": sum(p.numel() for p in parameters),
        "dtype": str(first.dtype).replace("torch.", "") if first is not None else None,
        "device": str(first.device) if first is not None else None,
        "convolutions": bool(convolutions),
        "depthwise": any(m.groups > 1 and m.groups == m.in_channels for m in convolutions),
        "channels_last": bool(orders) and all(orders),
    }


def channels_last(torch, tensor):
    """None where the order cannot be told: of one channel, or of one pixel, both orders are the same."""
    if not isinstance(tensor, torch.Tensor) or tensor.dim() != 4:
        return None
    last = tensor.is_contiguous(memory_format=torch.channels_last)
    return None if last and tensor.is_contiguous() else last


def all_samples(state):
    if state.role == "worker":
        return [state.samples] if state.samples is not None else []
    return [loader.samples for loader in list(state.all_loaders)]


def train_loader(state):
    known = [loader for loader in list(state.all_loaders) if loader.facts is not None and loader.use != "validate"]
    return max(known, key=lambda loader: loader.batches, default=None)


def training_notes(state, facts):
    loop, torch = state.loop, state.torch
    settings = {"cpu.threads": torch.get_num_threads()}
    for loader in list(state.all_loaders):
        yield from loader_notes(loader)
    loader = train_loader(state)
    if loader is not None:
        settings.update(loader_settings(loader.facts))
        if loader.facts["samples_per_epoch"]:
            yield ("data",), {"type": "data", "samples_per_epoch": loader.facts["samples_per_epoch"]}
    if facts.model_note is not None:
        note = facts.model_note
        yield ("model",), {key: value for key, value in note.items() if value is not None}
        settings["device"] = note["device"]
        if note["convolutions"]:
            settings["layout.channels_last"] = bool(note["channels_last"] or note.get("input_channels_last"))
    if facts.amp is not None:
        settings["precision.amp"] = facts.amp
    optimizer = next((found for found in (ref() for ref in reversed(facts.optimizers)) if found is not None), None)
    if optimizer is not None:
        facts.optimizer_note = optimizer_note(optimizer)
    if facts.optimizer_note is not None:
        where = next(iter(facts.optimizer_places)) if len(facts.optimizer_places) == 1 else None
        note = dict(facts.optimizer_note, zero_to_none=facts.zero_to_none, where=where, zero_grad_where=facts.zero_grad_where)
        yield ("optimizer",), note
        settings["optimizer.fused"] = bool(note["fused"])
        if facts.zero_to_none is not None:
            settings["optimizer.zero_to_none"] = facts.zero_to_none
    if state.actuators.fetching is not None:
        settings.update((knob, state.actuators.fetching.value(knob)) for knob in ("cache.features", "loader.gather"))
    compiled = compile_note(state, facts)
    yield ("compile",), compiled
    settings["compile.mode"] = compiled["mode"] if compiled["compiled"] else "off"
    yield ("parallel",), facts.parallel
    if facts.exchange is not None and facts.exchange.wait_s() is not None:
        yield ("rank",), {"type": "rank", "rank": facts.parallel["rank"], "wait_seconds": facts.exchange.wait_s()}
    yield ("validation",), state.actuators.validating.note()
    if state.actuators.validating.place is not None:
        settings[validating.KNOB] = state.actuators.validating.in_force()
    yield from measured_settings(state, facts, settings)
    if facts.padding[1]:
        yield ("padding",), {"type": "padding", "real": facts.padding[0], "padded": facts.padding[1], "where": facts.padding[2]}
    if facts.batches:
        yield ("shapes",), {"type": "shapes", "distinct": len(facts.shapes), "of": facts.batches}
    if facts.ooms:
        yield ("memory",), {"type": "memory", "oom": facts.ooms, "message": facts.oom_message}
    if state.has_device:
        from . import device

        yield from device.notes(state, settings)
    elif facts.model_note is not None:
        yield ("device",), {"type": "device", "kind": "cpu", "index": 0, "name": None}
    for knob, value in settings.items():
        if value is not None:
            yield ("setting", knob), {"type": "setting", "knob": knob, "value": value, "source": "effective"}


def measured_settings(state, facts, settings):
    """Settings that are not written anywhere but show in what the loop does."""
    loop = state.loop
    micro = dict(loop.micro)
    if micro and loop.steps >= 3:
        settings["batch.accumulation"] = max(micro, key=micro.get)
        if "batch.size" not in settings and loop.samples:
            settings["batch.size"] = round(loop.samples / loop.steps / settings["batch.accumulation"])
    reads = [entry[2] for key, entry in list(state.waits.places.items()) if key[0] == "item"]
    if reads and max(reads) and loop.steps >= 10:
        settings["metrics.interval"] = max(1, round(loop.steps / max(reads)))
    later = state.actuators.reads
    if later is not None and later.said:
        settings["metrics.interval"] = later.interval
    if loop.validations >= 2:
        settings["validation.interval"] = round(loop.steps / loop.validations)
    moved = list(state.waits.transfers.values())
    if moved:
        settings["transfer.non_blocking"] = sum(m[3] for m in moved) > sum(m[2] for m in moved)
    if facts.scaler is not None:
        yield ("scaler",), {"type": "scaler", "enabled": facts.scaler}
    torch = state.torch
    yield ("cudnn",), {"type": "setting", "knob": "cudnn.deterministic", "value": bool(torch.backends.cudnn.deterministic), "source": "effective"}
    settings["cudnn.benchmark"] = bool(torch.backends.cudnn.benchmark)
    if state.has_device:
        settings["precision.tf32"] = bool(torch.backends.cuda.matmul.allow_tf32)


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


def samples_per_epoch(real):
    try:
        sampler = real.batch_sampler
        if sampler is not None and batch_size(real):
            each = getattr(sampler, "sampler", None)
            return len(each) if each is not None else len(sampler) * batch_size(real)
        return len(real.dataset)
    except (TypeError, AttributeError, NotImplementedError):
        return None


def length_of(value):
    try:
        return len(value)
    except Exception as failure:
        pass_on(failure)
        return None


def loader_facts(torch, loader):
    """What does not change while it runs; read once, when it is first iterated over. None when it is gone."""
    real = loader.real()
    if real is None:
        return None
    dataset = real.dataset
    iterable = isinstance(dataset, torch.utils.data.IterableDataset)
    length = None if iterable else length_of(dataset)
    in_memory, size = rows_in_memory(torch, dataset, length)
    getter = getattr(type(innermost(dataset)), "__iter__" if iterable else "__getitem__", None)
    return {
        "workers": real.num_workers, "batch_size": batch_size(real),
        "pin_memory": bool(real.pin_memory), "prefetch_factor": getattr(real, "prefetch_factor", None) if real.num_workers else None,
        "persistent_workers": bool(getattr(real, "persistent_workers", False)), "drop_last": bool(real.drop_last),
        "iterable": iterable, "map_style": not iterable, "collate": getattr(real.collate_fn, "__qualname__", type(real.collate_fn).__name__),
        "sampler": type(getattr(real, "sampler", None)).__name__, "dataset": type(innermost(dataset)).__name__,
        "dataset_where": places.of_function(getter), "dataset_len": length, "in_memory": in_memory, "in_memory_bytes": size,
        "batched_getitem": bool(getattr(dataset, "__getitems__", None)) or not real._auto_collation,
        "start_method": start_method(real), "where": loader.where, "samples_per_epoch": samples_per_epoch(real),
    }


def look_at_samples(facts, real):
    """Once a loader: whether rows of a table in memory could be fetched together, and which functions' results could be kept."""
    facts["keepable"] = []
    try:
        if not facts["iterable"]:
            facts["keepable"] = keepable(real.dataset)
    except Exception:
        pass  # code that cannot be read
    if not facts["in_memory"] or facts["iterable"]:
        return
    from . import gathering

    try:
        facts["gathers"], facts["gathers_not"] = gathering.tried(real, facts["dataset_len"])
    except Exception as error:  # rows of which not even two can be put together
        facts["gathers"], facts["gathers_not"] = False, type(error).__name__


def keepable(dataset):
    """Names of the program's functions within a sample whose results look as if they could be kept, see calls_kept.py."""
    found, ahead = [], [(getattr(type(dataset), "__getitem__", None), 1)]
    while ahead:
        function, depth = ahead.pop()
        for called in side_effects.calls_of(function, type(dataset)) if isinstance(function, types.FunctionType) and depth <= _DEEPEST_KEPT else ():
            if side_effects.stored(called, (dataset,)) or side_effects.used(called, (dataset,)) & _DRAWS:
                ahead.append((called, depth + 1))
            else:
                found.append(getattr(called.__code__, "co_qualname", called.__code__.co_name))
    return found


def loader_notes(loader):
    facts = loader.facts
    if facts is None:
        return
    in_memory = False if loader.samples.files else facts["in_memory"]
    yield ("loader", loader.id), dict(
        facts, type="loader", id=loader.id, use=loader.use or "train", in_memory=in_memory, epochs=loader.epochs,
        batches=loader.batches, wait_seconds=loader.wait_ns * 1e-9)
    if loader.starts:
        yield ("loader_start", loader.id), {
            "type": "loader_start", "id": loader.id, "count": loader.starts, "seconds_total": loader.start_ns * 1e-9,
            "seconds_last": loader.start_last_ns * 1e-9, "in_training": loader.start_waited_ns * 1e-9, "workers": facts["workers"]}


def start_method(real):
    context = getattr(real, "multiprocessing_context", None)
    if not real.num_workers:
        return None
    if context is not None:
        return context.get_start_method()
    multiprocessing = sys.modules.get("multiprocessing")
    return multiprocessing.get_start_method(allow_none=True) or multiprocessing.get_context().get_start_method()


def innermost(dataset):
    for _ in range(5):
        inner = getattr(dataset, "dataset", None)
        if inner is None or not type(dataset).__module__.startswith("torch.utils.data"):
            break
        dataset = inner
    return dataset


def rows_in_memory(torch, dataset, length):
    """Whether the dataset keeps about as many rows in memory as it has samples, and how many bytes those are."""
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


def optimizer_note(optimizer):
    groups = optimizer.param_groups
    tensors = [p for group in groups for p in group["params"]]
    return {
        "type": "optimizer", "class": type(optimizer).__name__, "fused": groups[0].get("fused"), "foreach": groups[0].get("foreach"),
        "tensors": len(tensors), "parameters": sum(p.numel() for p in tensors),
    }


def compile_note(state, facts):
    note = {"type": "compile", "compiled": False, "mode": None, "backend": None}
    if state.compiled is not None:
        note.update(compiled=True, mode=state.compiled[0] or "default", backend=state.compiled[1])
    utils = sys.modules.get("torch._dynamo.utils")
    if utils is None or state.compiled is None:
        return note
    try:
        metrics = utils.get_compilation_metrics()
        seen, again = set(), 0
        for one in metrics:
            frame = (one.co_name, one.co_filename, one.co_firstlineno)
            again += frame in seen
            seen.add(frame)
        reasons = [getattr(one, "recompile_reason", None) for one in metrics]
        note.update(compilations=len(metrics), recompilations=again,
                    seconds=sum(one.entire_frame_compile_time_s or 0 for one in metrics),
                    reason=next((str(r)[:300] for r in reversed(reasons) if r), None))
    except Exception as failure:  # other versions keep other books
        pass_on(failure)
    return note


def add_padding(facts, torch, batch):
    """Counts real and padded elements where the batch says which are which: a mask or lengths."""
    if not hasattr(batch, "keys"):
        return
    for key in batch.keys():
        mask = batch[key]
        if not isinstance(mask, torch.Tensor) or mask.device.type != "cpu" or mask.numel() > 1 << 20 or mask.dim() < 1:
            continue
        name = str(key).lower()
        if "mask" in name and mask.dim() == 2 and not mask.is_floating_point():
            real, total = int((mask != 0).sum()), mask.numel()
            if "pad" in name and "attention" not in name:
                real = total - real if real < total - real else real
        elif name in ("lengths", "length", "lens") and mask.dim() == 1 and not mask.is_floating_point():
            real, total = int(mask.sum()), int(mask.max()) * mask.numel()
        else:
            continue
        facts.padding[0] += real
        facts.padding[1] += total - real
        facts.padding[2] = facts.padding[2] or places.here(4)
        return
