"""Changes settings of the running program (`unidle run --apply KNOB=VALUE`) and reports the outcome of
each."""

import contextlib
import functools
import json
import os
import weakref

from _unidle_shim.facts import live_settings
from _unidle_shim.host.exception_origin import pass_on
from _unidle_shim.host.guard import caught
from _unidle_shim.host.notes import write_line
from _unidle_shim.host.patching import around
from _unidle_shim.knobs import (
    autocast_off,
    fetching,
    fp16,
    fused,
    kept_memory,
    package_options,
    trimmed_padding,
    validation_interval,
)
from _unidle_shim.knobs.results import to_contiguous, to_float

_TRUE = (True, 1, "true", "on", "yes", "1", "True")
_LOADER = {
    "loader.workers": "num_workers",
    "loader.pin_memory": "pin_memory",
    "loader.persistent_workers": "persistent_workers",
    "loader.prefetch_factor": "prefetch_factor",
}

# Settings of a running program; the catalogue of knobs has the same ones (at_run_time).
KNOWN = set(_LOADER) | {
    "transfer.non_blocking",
    "precision.tf32",
    "precision.amp",
    "cudnn.benchmark",
    "layout.channels_last",
    fused.KNOB,
    "optimizer.zero_to_none",
    "compile.mode",
    "cpu.threads",
    "cache.features",
    "loader.gather",
    kept_memory.KNOB,
    trimmed_padding.KNOB,
    validation_interval.KNOB,
}

# Knobs that cannot be changed here, with the reason.
_BATCH = "a running program makes its own batches: change them by an option of the program, or in its code"
_NEVER = {
    "validation.interval": "it is unknown whether the interval counts steps or epochs: use an option of the "
    "program, or validation.every",
    "batch.size": _BATCH,
    "batch.accumulation": _BATCH,
    "data.on_device": "only the program can do that: move the whole data set once, before the loop",
    "loader.replace": "the lines that unidle diagnose shows are for you to review",
    "metrics.interval": "only the program knows what it does with a value that it reads; "
    "add up the loss on the device",
}


class Actuators:
    def __init__(self, state, asked):
        self.state = state
        self.asked = {}
        self.said = set()
        self.zero_to_none = False
        self.non_blocking = None  # non_blocking.Sources
        self.adapted = {}  # id of a model -> what wraps its forward pass
        self.amp = self.channels_last = self.compile_mode = None
        self.scaling = None  # fp16.LossScaling
        self.adapts = False  # some forward pass is wrapped
        self.fetching = None  # fetching.Fetching
        self.trimming = None  # trimmed_padding.Trimming
        self.kept_memory = kept_memory.KeptMemory()
        self.validating = validation_interval.Validating(state, self)
        state.actor_notes.append(self.notes)
        try:
            self.asked = dict(json.loads(asked)) if asked else {}
        except (ValueError, TypeError):
            self.say("*", asked, "refused", "UNIDLE_APPLY is not a JSON object")

    def package_options(self, Loader):
        """For loaders.patch_loader: the requested options of a Loader of unidle.data, which is not patched
        yet."""
        return functools.partial(package_options.asked_of, self, package_options.by_position(Loader))

    def say(self, knob, asked, status, why=None, value=None):
        if (knob, status, why) in self.said:
            return
        self.said.add((knob, status, why))
        body = {"knob": knob, "asked": asked, "status": status, "why": why, "value": value}
        write_line('"type":"apply",' + json.dumps(body, default=str)[1:-1])

    def on(self, knob):
        return self.asked.get(knob) in _TRUE

    def install_precision(self):
        """Called before torch.autograd.backward is patched."""
        torch = self.state.torch
        asked = str(self.asked.get("precision.amp", "off")).lower()
        if asked in ("bf16", "bfloat16"):
            self.amp = torch.bfloat16
        elif asked in ("fp16", "float16"):
            self.scaling = fp16.install(
                torch, lambda: self.state.facts.all_optimizers(), functools.partial(self._no_fp16, "broken")
            )
            if self.scaling is not None:
                self.amp = torch.float16
            else:
                self.say(
                    "precision.amp",
                    asked,
                    "refused",
                    "gradients cannot be scaled with this torch; bf16 needs no scaling",
                )
        elif asked not in ("off", "false"):
            self.say("precision.amp", asked, "refused", "off, bf16 and fp16 are known")
        elif "precision.amp" in self.asked:
            autocast_off.install(torch)

    def install_trimming(self):
        """Called before the fetch of a batch is patched."""
        if self.on(trimmed_padding.KNOB):
            self.trimming = trimmed_padding.install(self.state, self.say)

    def install(self):
        """Called when torch has been imported and before the program uses it."""
        for knob in self.asked:
            if knob not in KNOWN:
                self.say(
                    knob,
                    self.asked[knob],
                    "refused",
                    _NEVER.get(knob, "cannot be changed in a running program"),
                )
        torch = self.state.torch
        if os.environ.get("UNIDLE_LONGEST"):
            from _unidle_shim.trial import longest_batch

            longest_batch.install()
        if not self.asked:
            return
        self.state.read_back = self.read_back
        self.zero_to_none = self.on("optimizer.zero_to_none")
        if self.on("transfer.non_blocking"):
            from _unidle_shim.knobs import non_blocking  # imports a part of torch

            self.non_blocking = non_blocking.Sources(torch, self.say)
            self.state.on_training_forward.append(self.non_blocking.forward_begins)
        if "cpu.threads" in self.asked:
            self._threads(torch, int(self.asked["cpu.threads"]))
        if self.on(kept_memory.KNOB) and not self.kept_memory.keep():
            self.say(kept_memory.KNOB, True, "refused", "this C library has no mallopt()")
        if "precision.tf32" in self.asked:
            torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = self.on(
                "precision.tf32"
            )
            self.state.on_training_forward.append(lambda frame: self._follow_tf32(torch))
        if "cudnn.benchmark" in self.asked:
            torch.backends.cudnn.benchmark = self.on("cudnn.benchmark")
        self.channels_last = self.on("layout.channels_last")
        mode = str(self.asked.get("compile.mode", "off"))
        self.compile_mode = None if mode in ("off", "False", "false") else mode
        self.adapts = bool(self.amp is not None or self.channels_last or self.compile_mode)
        if validation_interval.KNOB in self.asked:
            self.validating.ask(self.asked[validation_interval.KNOB])
        if fused.KNOB in self.asked:
            fused.install(torch, self.on(fused.KNOB), functools.partial(self.say, fused.KNOB, True))
        if self.on("loader.gather") or self.asked.get("cache.features") in fetching.PLACES:
            self.fetching = fetching.install(self)

    def _follow_tf32(self, torch):
        """The setting has two names. A value for the older one sets both. If the program has since used the
        newer one, reading the older one would raise, because they differ."""
        wanted = self.on("precision.tf32")
        for newer, older in (
            (torch.backends.cuda.matmul, torch.backends.cuda.matmul),
            (getattr(torch.backends.cudnn, "conv", None), torch.backends.cudnn),
        ):
            precision = getattr(newer, "fp32_precision", None)
            if precision in ("tf32", "ieee") and (precision == "tf32") != wanted:
                older.allow_tf32 = precision == "tf32"

    # -- loaders --

    def loader_options(self, real, args, kwargs):
        """Keyword arguments of a DataLoader with the requested ones added. Positional ones stay the
        program's."""
        changes = {name: self.asked[knob] for knob, name in _LOADER.items() if knob in self.asked}
        if not changes or type(real).__init__ is None:
            return kwargs
        kwargs = dict(kwargs)
        # dataset, batch_size, shuffle, sampler, batch_sampler, num_workers come first
        positional = (
            "dataset",
            "batch_size",
            "shuffle",
            "sampler",
            "batch_sampler",
            "num_workers",
            "collate_fn",
            "pin_memory",
        )[: len(args)]
        for knob, name in _LOADER.items():
            if name not in changes:
                continue
            if name in positional:
                self.say(knob, changes[name], "refused", "given by position in the program")
                continue
            value = changes[name]
            if name == "pin_memory" and value in _TRUE and not self.state.has_device:
                self.say(knob, value, "ignored", "there is no GPU to copy to")  # torch would warn
                continue
            kwargs[name] = (value in _TRUE) if name in ("pin_memory", "persistent_workers") else int(value)
        workers = kwargs.get("num_workers", args[5] if len(args) > 5 else 0)
        if not workers:
            for name in ("persistent_workers", "prefetch_factor"):
                if name in changes:
                    kwargs.pop(name, None)
                    self.say("loader." + name, changes[name], "ignored", "there are no workers")
                elif kwargs.get(name):
                    kwargs.pop(name)
            if kwargs.get("timeout"):
                kwargs.pop("timeout")
        return kwargs

    # -- model --

    def forward_begins(self, module, args, kwargs, kind):
        """Returns None, or a function that runs the outermost forward pass in place of the plain call."""
        known = self.adapted.get(id(module))
        if known is None or known() is not module:
            if not kind:
                return None
            self.adapted[id(module)] = weakref.ref(module)
            self._prepare(module)
        return lambda call, target: self._run(call, target, args, kwargs)

    def _prepare(self, module):
        torch = self.state.torch
        why = (
            fp16.why_not_scaled(module, self.state.facts.all_optimizers())
            if self.scaling is not None
            else None
        )
        if why:
            self._no_fp16("refused", why)
        if self.channels_last and _exchanges_gradients(torch):
            # DistributedDataParallel of torch 2.11 permutes gradients of parameters whose layout changed
            # after it made its buckets, and only warns.
            self.channels_last = False
            self.adapts = bool(self.amp is not None or self.compile_mode)
            self.say(
                "layout.channels_last",
                True,
                "refused",
                "gradients are exchanged in the layout that parameters had when the model was wrapped; "
                "model.to(memory_format=torch.channels_last) before that is right",
            )
        if self.channels_last:
            module.to(memory_format=torch.channels_last)
            self.state.facts.model_ref = None  # values read before are no longer valid
        if self.compile_mode is not None:
            self._compile(torch, module)

    def _no_fp16(self, status, why):
        """Ends fp16 for the rest of the run."""
        if self.scaling is not None:
            self.scaling.used = False
        self.amp = self.scaling = None
        self.adapts = bool(self.channels_last or self.compile_mode)
        self.say("precision.amp", "fp16", status, why + "; bf16 needs no scaling")

    def _compile(self, torch, module):
        asked = self.compile_mode
        if asked == "graph" or not hasattr(module, "compile"):
            self.say(
                "compile.mode", asked, "refused", "this torch or this mode cannot compile a model in place"
            )
            return
        try:
            mode = None if asked == "default" else asked
            if type(module).forward.__module__.startswith("torch.nn."):
                # torch compiles no frame of its own classes, so wrap it in another frame, as
                # torch.compile(module) does.
                from torch._dynamo.external_utils import wrap_inline

                module._compiled_call_impl = torch.compile(wrap_inline(module._call_impl), mode=mode)
            else:
                module.compile(mode=mode)
            self.state.compiled = (asked, "inductor")
        except Exception as error:
            pass_on(error)
            self.say("compile.mode", asked, "refused", str(error)[:300])

    def _run(self, call, module, args, kwargs):
        """Runs the outermost forward pass as requested, or as the program's own if that fails."""
        inside = contextlib.ExitStack()
        try:
            if self.amp is not None:
                self._enter_autocast(inside, module, args, kwargs)
        except BaseException as failure:
            inside.close()
            caught(failure)
        with inside:
            out = call(module, *args, **kwargs)
        try:
            if self.channels_last:  # convolutions pass the layout of their weights on
                out = to_contiguous(self.state.torch, out)
            if self.amp is not None:
                out = to_float(self.state.torch, out)
                if self.scaling is not None:
                    self.scaling.used = True
        except BaseException as failure:
            caught(failure)
        return out

    def _enter_autocast(self, inside, module, args, kwargs):
        torch = self.state.torch
        tensors = [a for a in list(args) + list(kwargs.values()) if isinstance(a, torch.Tensor)]
        if self.scaling is not None and any(one.is_leaf and one.requires_grad for one in tensors):
            self._no_fp16("broken" if self.scaling.used else "refused", "gradients of inputs are asked for")
            return
        first = next(iter(tensors), None)
        kind = live_settings.kind_of(torch, module, first)
        inside.enter_context(torch.autocast(kind, dtype=self.amp))
        if self.state.read_back is not None:
            # Read now, before anything inspects the model.
            self.state.facts.amp = live_settings.amp_of(torch, kind)

    # -- the rest --

    def _threads(self, torch, wanted):
        original = torch.set_num_threads

        def before(args, kwargs):
            # A loader's worker sets one thread for itself; only the program's own choice may be changed.
            return None if self.state.role == "worker" else [None]

        original(wanted)
        around(torch, "set_num_threads", before, None)

    def notes(self, settings):
        """Notes about the program beside its own settings. Adds the settings that are in effect because of us
        to `settings`."""
        settings[kept_memory.KNOB] = self.kept_memory.in_effect()
        if self.fetching is not None:
            settings.update((knob, self.fetching.value(knob)) for knob in fetching.KNOBS)
        if self.trimming is not None and self.trimming.trimmed:
            settings[trimmed_padding.KNOB] = True
        yield ("validation",), self.validating.note()
        if self.validating.place is not None:
            settings[validation_interval.KNOB] = self.validating.in_force()

    def read_back(self):
        """Reads back the live program's values, after the first steps."""
        if self.state.loop.steps < 2:
            return
        self.state.read_back = None
        try:
            live = {
                body["knob"]: body["value"]
                for _, body in live_settings.training_notes(self.state, self.state.facts)
                if body and body.get("type") == "setting"
            }
            for knob, asked in self.asked.items():
                if knob in (validation_interval.KNOB, trimmed_padding.KNOB):
                    continue  # the program may validate much later, and the next batches have padding
                if (
                    any(said[0] == knob for said in self.said)
                    or self.fetching is not None
                    and self.fetching.will_say(knob)
                    or knob == "transfer.non_blocking"
                    and self.non_blocking is not None
                    and self.non_blocking.will_say()
                ):
                    continue
                value = live.get(knob)
                if value is None or (knob == "cudnn.benchmark" and not self.state.has_device):
                    self.say(knob, asked, "ignored", "the program has nothing that it applies to")
                else:
                    same = str(value).lower() == str(asked).lower() or (value is True and asked in _TRUE)
                    self.say(
                        knob,
                        asked,
                        "taken" if same else "ignored",
                        None if same else "the program has another value",
                        value,
                    )
        except BaseException as failure:
            caught(failure)


def _exchanges_gradients(torch):
    return torch.distributed.is_available() and torch.distributed.is_initialized()
