"""Reads settings and properties from torch's own objects, without changing them."""

import os
import sys

from _unidle_shim.facts import loading, ranks
from _unidle_shim.host import places, signatures
from _unidle_shim.host.exception_origin import pass_on
from _unidle_shim.host.guard import caught, value_or_none
from _unidle_shim.host.shapes import hidden_queries, shape_of

_AMP_NAMES = {"torch.bfloat16": "bf16", "torch.float16": "fp16"}
_MOST_PLACES = 4
_TIME_MAJOR = ("RNN", "LSTM", "GRU", "MultiheadAttention")
_CONVOLUTIONS = ("Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d")


def caller():
    """Where the program calls the model. Some call its forward() themselves: then our call is within that."""
    inner = frame = places.own_frame(sys._getframe(3))
    while frame is not None and frame.f_code.co_name == "forward":
        frame = places.own_frame(frame.f_back)
    frame = frame or inner
    return None if frame is None else places.text(frame.f_code, places.line_of(frame))


def default_of(function, name):
    try:
        default = signatures.signature_of(function).parameters[name].default
        return default if isinstance(default, bool) else None
    except (KeyError, TypeError, ValueError):
        return None


def device_of(module):
    """The device of its parameters; None without parameters."""
    first = next(module.parameters(), None)
    return first.device if first is not None else None


def kind_of(torch, module, tensor):
    """The kind of device on which a model computes: that of its parameters, because a model may move its
    batch."""
    with hidden_queries(torch):
        device = device_of(module) or getattr(tensor, "device", None)
        return getattr(device, "type", "cpu")


def amp_of(torch, kind):
    """ "off", "bf16" or "fp16": the current state of autocast on that kind of device."""
    if hasattr(torch, "get_autocast_dtype"):
        known = torch.amp.is_autocast_available(kind)
        on = known and torch.is_autocast_enabled(kind)
        kept = torch.get_autocast_dtype(kind) if on else None
    elif kind == "cpu":  # functions that newer torch warns about
        on, kept = torch.is_autocast_cpu_enabled(), torch.get_autocast_cpu_dtype()
    else:
        on, kept = torch.is_autocast_enabled(), torch.get_autocast_gpu_dtype()
    return _AMP_NAMES.get(str(kept), str(kept)) if on else "off"


def tf32_of(torch):
    """Whether float32 matrices are multiplied in TF32. The older name of the setting warns, and raises in a
    program that used the newer one."""
    matmul = torch.backends.cuda.matmul
    precision = getattr(matmul, "fp32_precision", None)
    return bool(matmul.allow_tf32) if precision is None else precision == "tf32"


def _convolutions_tf32(torch):
    """Returns None if only the older name exists, which may raise."""
    precision = getattr(getattr(torch.backends.cudnn, "conv", None), "fp32_precision", None)
    return None if precision is None else precision == "tf32"


def _ask(layer, question):
    """Calls `question(args)` once, before the layer runs. Returns the handle of the hook. Remove it after the
    forward pass, which may not reach the layer: a model that keeps our hook could not be pickled."""

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


class AutocastInside:
    """Watches one forward pass for autocast that is switched on within it: frameworks do that inside the
    outermost call. It is seen where it is entered, whatever layers the pass then reaches; code that is
    compiled enters it meanwhile."""

    def __init__(self, facts, torch, kind):
        self.autocast = torch.autocast
        original = self.original = torch.autocast.__enter__

        def enter(autocast):
            result = original(autocast)
            try:
                found = amp_of(torch, kind)
                if found != "off":
                    facts.amp = found
            except BaseException as failure:
                caught(failure)
            return result

        self.enter = torch.autocast.__enter__ = enter

    def remove(self):
        if self.autocast.__enter__ is self.enter:
            self.autocast.__enter__ = self.original


def look_for_time_major(loop, module, first):
    """Torch's recurrent and attention layers take (time, batch, ...) by default. If such a layer receives the
    model's input in that order, the second dimension counts the samples. Returns the handles of hooks."""
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
    with hidden_queries(torch):
        return _model_note(torch, module)


def _model_note(torch, module):
    real = getattr(module, "_orig_mod", module)
    wrapped = type(real).__name__ in ranks.KINDS
    inner = getattr(real, "module", real) if wrapped else real
    parameters = [p for p in inner.parameters()]
    first = parameters[0] if parameters else None
    convolutions = [m for m in inner.modules() if type(m).__name__ in _CONVOLUTIONS]
    orders = [channels_last(torch, m.weight) for m in convolutions if _slides(m)]
    orders = [last for last in orders if last is not None]
    return {
        "type": "model",
        "class": type(inner).__name__,
        "wrapper": type(real).__name__ if wrapped else ranks.shards_itself(real),
        "parameters": sum(p.numel() for p in parameters),
        "dtype": str(first.dtype).replace("torch.", "") if first is not None else None,
        "device": str(first.device) if first is not None else None,
        "convolutions": bool(convolutions),
        "convolution_parameters": sum(p.numel() for m in convolutions for p in m.parameters(False)),
        "convolutions_tf32": _convolutions_tf32(torch),
        "depthwise": any(m.groups > 1 and m.groups == m.in_channels for m in convolutions),
        "channels_last": all(orders) if orders else None,  # one-dimensional convolutions have one layout
        "sparse_gradients": any(getattr(m, "sparse", False) is True for m in inner.modules()),
    }


def _slides(convolution):
    """False for one that cuts its input into patches, as in a vision transformer: a matrix product, whose
    layout costs nothing."""
    kernel = getattr(convolution, "kernel_size", None)
    patches = kernel is not None and kernel == getattr(convolution, "stride", None) and max(kernel) > 1
    return getattr(convolution, "weight", None) is not None and not patches


def channels_last(torch, tensor):
    """Returns None if the order is ambiguous: with one channel, or one pixel, both orders are the same."""
    if not isinstance(tensor, torch.Tensor):
        return None
    with hidden_queries(torch):
        if tensor.dim() != 4:
            return None
        last = tensor.is_contiguous(memory_format=torch.channels_last)
        return None if last and tensor.is_contiguous() else last


def all_samples(state):
    if state.role == "worker":
        return [state.samples] if state.samples is not None else []
    return [loader.samples for loader in list(state.all_loaders)]


def train_loader(state):
    known = [
        loader for loader in list(state.all_loaders) if loader.facts is not None and loader.use != "validate"
    ]
    return max(known, key=lambda loader: (loader.use == "train", loader.batches), default=None)


def training_notes(state, facts):
    torch = state.torch
    settings = {"cpu.threads": torch.get_num_threads()}
    yield from _threads_asked_for()
    loaders = list(state.all_loaders)
    unused = "unknown" if any(loader.use == "train" for loader in loaders) else "train"
    for loader in loaders:
        yield from loading.loader_notes(loader, loader.use or unused)
    loader = train_loader(state)
    if loader is not None:
        known = {**loader.facts, **loading.measured(loader)}
        settings.update(loading.loader_settings(known))
        if known["samples_per_epoch"]:
            yield ("data",), {"type": "data", "samples_per_epoch": known["samples_per_epoch"]}
    if facts.model_note is not None:
        note = facts.model_note
        yield ("model",), {key: value for key, value in note.items() if value is not None}
        settings["device"] = note["device"]
        yield from _gpus_hidden()
        if note["channels_last"] is not None:
            settings["layout.channels_last"] = bool(note["channels_last"] or note.get("input_channels_last"))
    if facts.amp is not None:
        settings["precision.amp"] = facts.amp
    living = facts.living_optimizers()
    if living:
        spent_ns = state.loop.optimizer_ns if state.loop is not None else {}
        living.sort(key=lambda one: spent_ns.get(id(one), 0))  # the newest comes last among equal ones
        found = value_or_none(optimizer_note, living[-1])
        if found is not None:
            part = value_or_none(_part_to_fuse, living, spent_ns)
            facts.optimizer_note = dict(found, part=part, **_places_of(living, facts.made_at))
    if facts.optimizer_note is not None:
        note = dict(
            facts.optimizer_note, zero_to_none=facts.zero_to_none, zero_grad_where=facts.zero_grad_where
        )
        yield ("optimizer",), note
        settings["optimizer.fused"] = bool(note["fused"])
        if facts.zero_to_none is not None:
            settings["optimizer.zero_to_none"] = facts.zero_to_none
    compiled = compile_note(state, facts)
    yield ("compile",), compiled
    settings["compile.mode"] = compiled["mode"] if compiled["compiled"] else "off"
    if facts.exchange is not None:
        yield ("parallel",), dict(facts.parallel, **facts.exchange.settings)
        yield ("rank",), facts.exchange.note(facts.parallel["rank"])
    else:
        yield ("parallel",), facts.parallel
    yield from measured_settings(state, facts, settings)
    for notes in state.actor_notes:
        yield from notes(settings)
    yield from facts.padding.notes()
    yield from facts.debugging.notes()
    if state.loop is not None:
        yield from facts.page_faults.notes(state.loop.steps)
    skipped = state.loop.first_fetches.skipped
    if skipped is not None:
        yield ("skipped",), {"type": "skipped", "batches": skipped[0], "seconds": skipped[1] * 1e-9}
    if facts.batches:
        yield ("shapes",), {"type": "shapes", "distinct": len(facts.shapes), "of": facts.batches}
    yield ("memory",), facts.memory.note()
    if state.has_device:
        from _unidle_shim.facts import device_time

        yield from device_time.notes(state, settings)
    elif facts.model_note is not None:
        yield ("device",), {"type": "device", "kind": "cpu", "index": 0, "name": None}
    for knob, value in settings.items():
        if value is not None:
            note = {"type": "setting", "knob": knob, "value": value, "source": "effective"}
            if knob == "cpu.threads" and facts.threads_where is not None:
                note["location"] = facts.threads_where
            yield ("setting", knob), note


def _threads_asked_for():
    """Variables that torch reads when it is imported: launchers set them, too."""
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        value = os.environ.get(name, "")
        if value.isdigit():
            note = {"type": "setting", "knob": "cpu.threads", "value": int(value), "source": "environment"}
            yield ("setting", "cpu.threads", name), dict(note, location=name)


def _gpus_hidden():
    """Variables that hide every GPU, whether set by a wrapper of the command, a scheduler, or the program."""
    for name in ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"):
        value = os.environ.get(name)
        if value is not None and not _names_a_gpu(value.split(",")[0].strip()):
            note = {"type": "setting", "knob": "device", "value": "cpu", "source": "environment"}
            yield ("setting", "device", name), dict(note, location=name)


def _names_a_gpu(word):
    """The first word decides: CUDA ignores all after an invalid one (-1, or Slurm's NoDevFiles)."""
    return word[:1].isdigit() or word.startswith(("GPU-", "MIG-"))


def measured_settings(state, facts, settings):
    """Settings that no object holds, but that the loop's behaviour shows."""
    loop = state.loop
    micro = dict(loop.micro)
    if micro and loop.steps >= 3:
        settings["batch.accumulation"] = max(micro, key=micro.get)
        if "batch.size" not in settings and loop.samples:
            settings["batch.size"] = round(loop.samples / loop.steps / settings["batch.accumulation"])
    if loop.marking is None:  # steps that are only marked are counted when their stretch ends
        reads = [entry[2] for key, entry in list(state.waits.places.items()) if key[0] == "item"]
        if reads and max(reads) and loop.steps >= 10:
            settings["metrics.interval"] = max(1, round(loop.steps / max(reads)))
        if loop.validated_steps >= 2:
            settings["validation.interval"] = round(loop.steps / loop.validated_steps)
    moved = list(state.waits.transfers.values())
    if moved:
        settings["transfer.non_blocking"] = sum(m[3] for m in moved) > sum(m[2] for m in moved)
    if facts.scaler is not None:
        yield ("scaler",), {"type": "scaler", "enabled": facts.scaler}
    torch = state.torch
    yield (
        ("cudnn",),
        {
            "type": "setting",
            "knob": "cudnn.deterministic",
            "value": bool(torch.backends.cudnn.deterministic),
            "source": "effective",
        },
    )
    settings["cudnn.benchmark"] = bool(torch.backends.cudnn.benchmark)
    if state.has_device:
        settings["precision.tf32"] = tf32_of(torch)


def _part_to_fuse(optimizers, spent_ns):
    """The share of the optimisers' time in those that have a fused form and do not use it."""
    first = {id(one): one.param_groups[0] for one in optimizers}
    all_ns = sum(spent_ns.get(key, 0) for key in first)
    to_fuse = [key for key, group in first.items() if "fused" in group and not group["fused"]]
    return sum(spent_ns.get(key, 0) for key in to_fuse) / all_ns if all_ns else None


def _places_of(optimizers, made_at):
    """Where the last one was made, and other lines that made one of them."""
    places = list(dict.fromkeys(made_at.get(id(one)) for one in reversed(optimizers)))
    return {"where": places[0], "also": ", ".join(list(filter(None, places[1:]))[:_MOST_PLACES]) or None}


def optimizer_note(optimizer):
    groups = optimizer.param_groups
    tensors = [p for group in groups for p in group["params"]]
    with hidden_queries(sys.modules.get("torch")):
        parameters = sum(p.numel() for p in tensors)
    return {
        "type": "optimizer",
        "class": type(optimizer).__name__,
        "fused": groups[0].get("fused"),
        "foreach": groups[0].get("foreach"),
        "fusable": "fused" in groups[0],
        "tensors": len(tensors),
        "parameters": parameters,
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
        note.update(
            compilations=len(metrics),
            recompilations=again,
            seconds=sum(one.entire_frame_compile_time_s or 0 for one in metrics),
            reason=next((str(r)[:300] for r in reversed(reasons) if r), None),
        )
    except Exception as failure:  # other versions have other attributes
        pass_on(failure)
    return note
