"""Observes this program, and reports what the shim cannot see: JAX, NumPy, a custom loop.

observe() records a program that nobody started with `unidle run`. The other functions do nothing in a program
that is not recorded; otherwise events go into a ring of this process (docs/probe-format.md), through the C
ABI of the probe.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import json
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any, Iterator, Optional

from unidle import _recording
from unidle.errors import UsageError

_STARTUP = 9
# Parts of a step, whose times add up until it ends, with their bits in `seen`; and spans with their own
# event.
_PARTS = {"input": 1, "transfer": 2, "forward": 4, "backward": 8, "optimizer": 16, "sync": 32, "log": 0}
_LOSS_SEEN = 64
_SPANS = {"validate": 10, "checkpoint": 11}
_NOTES_TOGETHER = 64  # notes written together
_NOTES_EVERY_NS = 1_000_000_000  # the longest that a note waits for others
_MOST_SAMPLES = 2**48  # per step: more is not a count, and the sum over a run has 64 bits


class _Event(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in ("t_ns", "duration_ns", "step", "a", "b")] + [
        ("value", ctypes.c_double),
        ("kind", ctypes.c_uint32),
        ("thread", ctypes.c_uint32),
        ("reserved", ctypes.c_uint64),
    ]


class _Step(ctypes.Structure):
    _fields_ = (
        [(name, ctypes.c_uint64) for name in ("t_ns", "duration_ns", "step", "samples", "samples_before")]
        + [("loss", ctypes.c_double)]
        + [(name, ctypes.c_uint32) for name in ("kind", "seen", "micro_batches", "syncs")]
        + [(f"{name}_ns", ctypes.c_uint64) for name in (*_PARTS, "flush")]
    )


class _Open:
    """A phase in progress."""

    __slots__ = ("inner_ns",)

    def __init__(self) -> None:
        self.inner_ns = 0  # time taken by nested phases


class _Observation:
    """The state of this process. Follows the first thread that reports, and ignores the others."""

    def __init__(self, probe_library: str) -> None:
        library = ctypes.CDLL(probe_library)
        library.unidle_probe_open.restype = ctypes.c_void_p
        library.unidle_probe_open.argtypes = [ctypes.c_char_p]
        library.unidle_probe_emit.argtypes = [ctypes.c_void_p, ctypes.POINTER(_Event)]
        library.unidle_probe_step.argtypes = [ctypes.c_void_p, ctypes.POINTER(_Step)]
        library.unidle_probe_note.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
        self._library, self._probe, self._thread = library, None, 0
        limit = os.environ.get("UNIDLE_MAX_STEPS", "")
        self._most_steps = int(limit) if limit.isdigit() else 0
        self._steps = self._samples = 0
        self._begin = 0  # start of the current step; 0: unknown
        self._parts: dict = {}  # name -> ns so far
        self._open: list = []  # phases in progress, innermost last
        self._notes: list = []
        self._written_ns = 0

    def follows(self) -> bool:
        """Returns whether the calling thread is followed. Creates the ring at the first call."""
        if self._thread == 0:
            self._thread = threading.get_ident()
            self._probe = self._library.unidle_probe_open(b"train")
        return self._probe is not None and self._thread == threading.get_ident()

    def end(self) -> None:
        """Writes nothing more. The ring stays mapped and open until the process ends: the followed thread may
        be in it now, and its descriptors' numbers may be the program's by now (os.closerange)."""
        self._probe = None

    def begin_loop(self) -> None:
        if self._begin == 0 and not _torch_steps():
            self._started(time.monotonic_ns())

    def end_step(self, samples: Any, loss: Any) -> None:
        if _torch_steps():
            return
        samples, loss = _samples_of(samples), _float_of(loss)
        now = time.monotonic_ns()
        if self._begin == 0:  # the start of the first step is unknown
            self._started(now)
            return
        step = _Step(self._begin, max(0, now - self._begin), self._steps, samples, micro_batches=1)
        for name, duration_ns in self._parts.items():
            setattr(step, f"{name}_ns", duration_ns)
            step.seen |= _PARTS[name]
        step.syncs = "sync" in self._parts
        if loss is not None:
            step.seen |= _LOSS_SEEN
            step.loss, step.samples_before = loss, self._samples
        self._library.unidle_probe_step(self._probe, step)
        self._parts.clear()
        self._steps, self._samples, self._begin = self._steps + 1, self._samples + samples, now
        if self._steps == self._most_steps:
            sys.exit(0)

    def _started(self, now: int) -> None:
        started = now - _age_ns()
        self.emit(_STARTUP, started, now - started)
        self._begin = now

    @contextlib.contextmanager
    def phase(self, name: str) -> Iterator[None]:
        this, torch_spans, begin = _Open(), _torch_spans(), time.monotonic_ns()
        self._open.append(this)
        try:
            yield
        finally:
            self._open.remove(this)
            took = time.monotonic_ns() - begin
            if self._open:
                self._open[-1].inner_ns += took
            if name in _PARTS:
                self._parts[name] = self._parts.get(name, 0) + max(0, took - this.inner_ns)
            elif _torch_spans() == torch_spans:  # otherwise the shim has seen it
                self.emit(_SPANS[name], begin, took, self._steps or _torch_steps())

    def note(self, values: dict) -> None:
        step, now = self._steps or _torch_steps(), time.monotonic_ns()
        for name, value in values.items():
            number = _number_of(value)
            fields = {"t_ns": now, "name": name, "step": step, "samples": self._samples}
            if number is None:
                fields.update(type="noted", value=value if isinstance(value, (str, bool)) else _told(value))
            else:
                fields.update(type="metric", value=number)
            self._notes.append(fields)
        if len(self._notes) >= _NOTES_TOGETHER or now - self._written_ns > _NOTES_EVERY_NS:
            self.write_notes()

    def write_notes(self) -> None:
        notes, self._notes, self._written_ns = self._notes, [], time.monotonic_ns()
        for fields in notes:
            self._library.unidle_probe_note(self._probe, json.dumps(fields).encode())

    def emit(self, kind: int, t_ns: int, duration_ns: int, step: int = 0) -> None:
        self._library.unidle_probe_emit(
            self._probe, _Event(max(0, t_ns), max(0, duration_ns), step, 0, 0, 0.0, kind, 0, 0)
        )


def _torch_loop() -> Any:
    """Returns the loop that the shim follows in a torch program, or None."""
    session = sys.modules.get("_unidle_shim.session")
    return session.state.loop if session is not None else None


def _torch_steps() -> int:
    """Returns the number of torch optimizer steps, which the shim sees itself."""
    loop = _torch_loop()
    return max(loop.steps, loop.optimizer_steps) if loop is not None else 0


def _torch_spans() -> tuple:
    loop = _torch_loop()
    if loop is None:
        return ()
    return loop.validations, loop.validation is not None, loop.saved_at  # the newest stays open for a while


def _age_ns() -> int:
    """Age of this process, or of its observation if that began later."""
    if _since_ns:
        return time.monotonic_ns() - _since_ns
    try:
        with open("/proc/self/stat", "rb") as file:
            ticks = int(file.read().rsplit(b")", 1)[1].split()[19])
        age_s = time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError):
        return 0
    return max(0, int(age_s * 1e9))


def _float_of(value: Any) -> Optional[float]:
    """Returns a value as a number, also from an array or tensor. Returns None for anything else: invalid
    values, and exceptions of their types, must not stop the program."""
    if isinstance(value, (bool, str, bytes)) or value is None:
        return None
    try:
        return float(value)
    except Exception:
        return None


def _number_of(value: Any) -> Optional[float]:
    """Returns a finite number, as JSON requires."""
    number = _float_of(value)
    return number if number is not None and number - number == 0 else None


def _samples_of(value: Any) -> int:
    number = _number_of(value)
    return int(number) if number is not None and 0 < number < _MOST_SAMPLES else 0


def _told(value: Any) -> str:
    try:
        return repr(value)[:1000]
    except Exception:
        return f"<{type(value).__name__}>"


def _made() -> Optional[_Observation]:
    if not os.environ.get("UNIDLE_PROBE_DIR"):
        return None
    try:
        return _Observation(os.environ.get("UNIDLE_PROBE_LIBRARY", "libunidle_probe.so"))
    except (OSError, AttributeError):  # the program continues without it
        return None


_observation: Optional[_Observation] = None
_since_ns = 0  # when observation began, if that was not with the process
_registered = False


def _begin() -> None:
    global _observation, _registered
    _observation = _made()
    if _observation is not None and not _registered:
        _registered = True
        os.register_at_fork(after_in_child=_begin)  # its own ring, without the parent's pending notes
        atexit.register(_finish)


def _finish() -> None:
    if _observation is not None:
        _observation.write_notes()


def _recording_changed() -> None:
    """Recording begins or ends."""
    global _since_ns
    if _observation is not None:
        _observation.write_notes()
        _observation.end()
    _since_ns = time.monotonic_ns()
    _begin()


_begin()


def step(samples: int = 0, loss: Optional[float] = None) -> None:
    """Reports the end of an optimizer step, for programs whose steps unidle cannot see. Steps of torch
    optimizers are seen anyway, and are not counted twice.

    A step begins at the end of the previous one, the first one at observe(); without observe() the first
    call only marks the start of the second step. `samples` is the number of samples in the step, `loss`
    the loss as a host number. Invalid numbers are ignored without an error. With `unidle run --steps N`
    the N-th call ends the program (SystemExit).
    """
    observation = _observation
    if observation is not None and observation.follows():
        observation.end_step(samples, loss)


_no_phase = contextlib.nullcontext()


def phase(name: str) -> Any:
    """Returns a context manager that marks a phase of the run.

    "validate" and "checkpoint" are separate spans. "input", "transfer", "forward", "backward",
    "optimizer", "sync" and "log" are parts of the step that step() ends; nested parts count only their own
    time. In a torch program the shim sees the parts itself, and these are ignored.
    """
    if name not in _PARTS and name not in _SPANS:
        raise UsageError(f"phase: expected one of {', '.join((*_PARTS, *_SPANS))}; found {name!r}")
    observation = _observation
    if observation is None or not observation.follows():
        return _no_phase
    return observation.phase(name)


def note(**values: Any) -> None:
    """Adds values to the record. Numbers become curves of the report over the steps; texts, booleans and
    other values are kept by their repr(). Reading a number from a device waits for the device."""
    observation = _observation
    if observation is not None and observation.follows():
        observation.note(values)


class observe(contextlib.ContextDecorator):
    """Records this program until it ends, or until stop(), as `unidle run` does. Says on stderr where the
    record is.

        unidle.observe()  # the first line of a script, or of a notebook

    As a context manager, or a decorator of the function that trains, it records what is within, and marks
    where the first step begins; everything before is start-up.

        with unidle.observe():
            for batch in batches:
                ...
                unidle.step(samples=len(batch))

    `record` is the folder of the record, by default a new one in `.unidle/runs`. If the program is recorded
    already, by `unidle run` or another call, this only marks. If it cannot be recorded, it says why on
    stderr, and the program continues.
    """

    def __init__(self, record: Optional[Any] = None) -> None:
        self._asked = record
        self._mine = self._begun()

    @property
    def record(self) -> Optional[Path]:
        """The folder of the record. None if the program is not recorded, or by `unidle run`."""
        recording = self._mine or _recording.current()
        return None if recording is None else recording.record

    def stop(self) -> Optional[Path]:
        """Ends the recording. Returns the folder of the complete record, for `unidle.diagnose()`."""
        recording = _recording.current()
        if recording is None:
            return None
        _recording.end(recording)
        self._mine = None
        return recording.record

    def __enter__(self) -> "observe":
        if self._mine is None:
            self._mine = self._begun()
        observation = _observation
        if observation is not None and observation.follows():
            observation.begin_loop()
        return self

    def __exit__(self, kind: Any, exception: Any = None, trace: Any = None) -> None:
        observation = _observation
        if observation is not None and observation.follows():
            observation.write_notes()
        recording, self._mine = self._mine, None
        if recording is not None:
            _recording.end(recording, exception)

    def __repr__(self) -> str:
        return f"<unidle.observe: {self.record or 'not recording'}>"

    def _begun(self) -> Optional[_recording.Recording]:
        """The recording, if it began here."""
        known = _recording.current()
        begun = _recording.begin(self._asked, _recording_changed, self._ranks)
        return begun if begun is not known else None

    def _ranks(self) -> Optional[_recording.Ranks]:
        """The other processes in this record."""
        return _recording.ranks_of_launcher()
