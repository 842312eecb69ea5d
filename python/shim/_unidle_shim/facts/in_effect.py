"""Collects the settings in effect in the running program, and writes them as notes.

The training thread only leaves references and counts here; expensive work is done by the background thread,
or once at the first forward pass.
"""

import json
import sys
import time
import weakref

from _unidle_shim.facts import (
    arguments,
    debugging,
    growing,
    live_settings,
    memory_errors,
    operations,
    padding,
    page_faults,
    program_files,
    ranks,
    slices,
    validation_call,
)
from _unidle_shim.host import exceptions, places
from _unidle_shim.host.guard import caught, value_or_none
from _unidle_shim.host.notes import write_notes
from _unidle_shim.host.shapes import shape_of

_MAX_SHAPES = 1000
_MANY_OPTIMIZERS = 64


class Facts:
    def __init__(self, state, inherited=None):
        self.state = state
        self.sent = {}  # key -> value last written
        self.model_note = None
        self.model_ref = None
        self.asking = []  # handles of what watches one forward pass
        self.parallel = None
        self.exchange = None  # gradient exchange with other ranks
        self.forwards = 0
        self.growing = growing.Growing(state)
        self.amp = None  # "off", "bf16", "fp16" inside the forward pass
        self.scaler = None  # whether the newest gradient scaler is enabled; None: no scaler seen
        self.optimizers = []  # weak references
        self.inherited = inherited or []  # the same for the processes that this one was forked from
        self.optimizer_note = None  # of the newest one, as last seen: the object is often gone at the end
        self.made_at = {}  # id of an optimiser -> file:line of the program, as below
        self.zero_grad_where = None
        self.zero_to_none = None
        self.debugging = debugging.Debugging()
        self.threads_where = None  # file:line of the last call of torch.set_num_threads
        self.shapes, self.batches, self.shape = set(), 0, None
        self.padding = padding.Padding()
        self.page_faults = page_faults.PageFaults()
        self.operations = operations.Operations(state.torch)
        self.slices = slices.Slices()
        self.validation_call = validation_call.ValidationCall()
        self.seen_lengths = 0
        self.memory = memory_errors.MemoryErrors(state)
        self.began = time.monotonic()
        self.last_sample = None

    # -- called by the training thread --

    def forward_seen(self, module, args, kwargs):
        self.forwards = forwards = self.forwards + 1
        first = args[0] if args else next(iter(kwargs.values()), None)
        shape = shape_of(first)
        if shape is not None:
            self.batches += 1
            if shape != self.shape:
                self.shape = shape
                if len(self.shapes) < _MAX_SHAPES:
                    self.shapes.add(tuple(shape))
        exchange = self.exchange
        if exchange is not None and (forwards <= exchange.SAMPLED_FIRST or not forwards & exchange.BETWEEN):
            exchange.look(module, self.state.loop.steps if self.state.loop is not None else None)
        if forwards >= 16 and self.state.loop is not None and growing.is_time(forwards):
            self.growing.look(sys._getframe(1), self.state.loop.steps)
        if forwards <= 3 or not forwards & 15:
            value_or_none(self.debugging.look, self.state.torch)
        if forwards > 3 and forwards & 255:
            return
        for seen in self.state.on_training_forward:
            seen(sys._getframe(1))
        value_or_none(self._look_at_model, forwards, module, first)
        value_or_none(self.padding.call_seen, self.state.torch, module, args, kwargs)

    def _look_at_model(self, forwards, module, first):
        torch = self.state.torch
        kind = live_settings.kind_of(torch, module, first)
        amp = live_settings.amp_of(torch, kind)
        if amp != "off" or self.amp is None:
            self.amp = amp
        if self.amp == "off":
            self.asking.append(live_settings.AutocastInside(self, torch, kind))
        known = self.model_ref() if self.model_ref is not None else None
        # The first passes may be dry runs on the CPU, before the model is moved.
        note = live_settings.model_note(torch, module)
        # The largest model is reported: a GAN has two, a loss may be a module.
        if self.model_note is None or known is module or note["parameters"] >= self.model_note["parameters"]:
            self.model_note, self.model_ref = note, weakref.ref(module)
            note["input_channels_last"] = live_settings.channels_last(torch, first)
            note["training_where"] = live_settings.caller()
            if known is not module:
                self.asking += live_settings.look_for_time_major(self.state.loop, module, first)
            self.parallel = ranks.parallel_note(torch, note)  # the process group no longer exists at the end
            if self.parallel["kind"] == "ddp" and self.exchange is None:
                self.exchange = ranks.Exchange()

    def device_now(self):
        """The device of the model that trains, which may have moved since it was inspected. None without a
        known model."""
        model = self.model_ref() if self.model_ref is not None else None
        if model is None or self.model_note is None:
            return None
        device = live_settings.device_of(model)
        if device is not None and str(device) != self.model_note["device"]:
            self.model_note = dict(self.model_note, device=str(device))
        return device

    def batch_seen(self, loader, batch):
        """A loader whose use is not known yet validates if its first batches need no gradients."""
        torch = self.state.torch
        if loader.use == "train" or (loader.use is None and torch.is_grad_enabled()):
            self.padding.batch_seen(torch, batch)

    def optimizer_made(self, optimizer, where):
        if len(self.optimizers) >= _MANY_OPTIMIZERS:  # some programs make an optimiser in every step
            self.optimizers = [reference for reference in self.optimizers if reference() is not None]
            living = {id(one) for one in self.living_optimizers()}
            self.made_at = {one: place for one, place in self.made_at.items() if one in living}
        self.optimizers.append(weakref.ref(optimizer))
        self.made_at[id(optimizer)] = where
        note = value_or_none(live_settings.optimizer_note, optimizer)
        self.optimizer_note = dict(note, where=where) if note is not None else None

    def all_optimizers(self):
        """Includes those that this process inherited by fork: it may train with one."""
        references = self.inherited + self.optimizers
        return [optimizer for optimizer in (reference() for reference in references) if optimizer is not None]

    def living_optimizers(self):
        return [
            optimizer for optimizer in (reference() for reference in self.optimizers) if optimizer is not None
        ]

    def scaler_seen(self, scaler):
        self.scaler = bool(scaler.is_enabled())

    def zero_grad_called(self, original, args, kwargs, where):
        self.zero_grad_where = where
        if "set_to_none" in kwargs:
            self.zero_to_none = bool(kwargs["set_to_none"])
        elif args:
            self.zero_to_none = bool(args[0])
        else:
            self.zero_to_none = live_settings.default_of(original, "set_to_none")

    def forward_over(self):
        """Removes what watched the pass."""
        for handle in self.asking:
            handle.remove()
        self.asking = []

    def failed(self, error, of_batch=False):
        """A followed call of the program raised `error`. `of_batch`: the batch is not trained because of
        it."""
        try:
            if self.asking:
                self.forward_over()
            self.memory.look_at(error)
            if of_batch and self.state.loop is not None:
                self.state.loop.drop_batch()
        except BaseException as failure:
            caught(failure)

    def step_written(self, loop):
        """Called for the first steps, until nothing is left to do for them."""
        if loop.steps == 1 and self.state.has_device and self.state.device is None:
            from _unidle_shim.facts import device_time

            self.state.device = loop.device = device_time.begin(self.state)
        if self.state.read_back is not None:
            self.state.read_back()
        elif loop.steps > 1:
            loop.on_step = None

    def write_now(self, key, body):
        """For a note that must not be lost if the program is killed."""
        write_notes(self._changed([(key, body)]))

    # -- called by the background thread, and at the end when it has stopped --

    def write(self, final=False):
        lines = self._changed(self._all(final))
        if lines:
            write_notes(lines)
        exceptions.flush()

    def _changed(self, notes):
        """The lines of those that differ from the last ones of their kind."""
        lines = []
        for key, body in notes:
            if body is not None and self.sent.get(key) != body:
                self.sent[key] = body
                lines.append('{"t_ns":%d,%s\n' % (time.monotonic_ns(), json.dumps(body, default=str)[1:]))
        return "".join(lines)

    def _all(self, final):
        state = self.state
        yield from state.background.notes()
        for mine in live_settings.all_samples(state):
            note = mine.note()
            if note is not None:
                yield ("samples", mine.loader), dict(note, type="samples")
        if state.loop is not None:
            yield from state.waits.notes()
            yield from live_settings.training_notes(state, self)
            yield ("logging",), state.logging.note()
            yield from state.loop.saved_notes()
            yield from self.growing.notes()
            yield ("operations",), self.operations.note(state.loop)
            yield ("slices",), self.slices.note()
            yield ("validation_call",), self.validation_call.note()
        yield from state.tracked_runs.notes()
        yield from places.called_notes()
        if state.role != "worker":
            yield ("arguments",), arguments.note()
            yield ("program",), value_or_none(program_files.note)
        yield ("shim",), self._shim_note(final)

    def _shim_note(self, final):
        wall, loop = time.monotonic() - self.began, self.state.loop
        cost_ns = loop.own_cost.cost_ns() if loop is not None else 0
        spent_s = self.state.background.busy_s + (loop.in_full * cost_ns * 1e-9 if loop is not None else 0)
        note = {
            "type": "shim",
            "status": "on",
            "python": "%d.%d.%d" % sys.version_info[:3],
            "executable": sys.executable,
            "role": self.state.role,
            "torch": str(self.state.torch.__version__),
            "thinned": self.state.background.thinned or (loop is not None and loop.in_full < loop.steps),
        }
        if loop is not None and loop.in_full < loop.steps:
            note["steps_in_full"] = loop.in_full
        if final or wall > 5:
            note.update(
                overhead=round(spent_s / wall, 5) if wall > 0 and (cost_ns or loop is None) else None,
                step_cost_us=round(cost_ns * 1e-3, 1) if cost_ns else None,
            )
        return note
