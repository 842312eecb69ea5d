"""What this process has of the observation: one ring, one loop, the patches and the background thread."""

import os
import threading
import time

from . import affinity, background, facts, inspection, light, off, probe, waits
from .guard import caught
from .loop import Loop

_get_ident = threading.get_ident


class State:
    """Shared by all patches. `thread` is the one that is followed; 0 when nobody is: then every patch passes through."""

    def __init__(self):
        self.thread = 0
        self.loop = None
        self.torch = None
        self.ring = None
        self.role = "train"
        self.facts = None      # facts.Facts
        self.waits = None      # waits.Waits
        self.samples = None    # samples.Samples of this process
        self.device = None     # device.DeviceTimer
        self.background = None
        self.actuators = None
        self.roots = None      # roots.Roots
        self.backward = None   # calls.Backward
        self.fetches = None    # light.Patch of asking an iterator for its next batch
        self.makers = ()       # light.Patch of making a batch in this process
        self.light = None      # light.Light, while steps go by light
        self.switching = False  # in train() or eval() of a model
        self.tracing = None    # tracing.Tracing, where a profiler window was asked for
        self.began = False     # something of training or loading was seen here
        self.trains = False    # `thread` is known to be the one that trains
        self.elsewhere = None  # the last iterator that another thread made meanwhile, see loaders.made_elsewhere
        self.take_over = None  # follows that iterator


state = State()


def observe():
    """The first call worth telling of: opens the ring. False when no training is followed in this process."""
    if state.began:
        return state.loop is not None
    if not _open("train"):
        return False
    steps = os.environ.get("UNIDLE_MAX_STEPS", "")
    state.loop = Loop(state.ring, state.thread, _process_start_ns(), int(steps) if steps.isdigit() else 0)
    state.loop.on_step = state.facts.step_written
    state.loop.widen = state.roots.widen
    state.loop.lights = light.Light(state)
    if state.tracing is not None:
        state.tracing.follow(state.loop)
    state.background.start()
    return True


def followed():
    """The loop that is followed from this call on at the latest; None when there is none."""
    return state.loop if observe() else None


def adopt():
    """This thread calls the first backward pass, or steps the first optimiser, and is not the one that imported torch: then
    this one trains, and is followed from here on. False where another one is known to train."""
    if state.trains or not state.thread or state.role != "train":
        return False
    state.trains, state.thread = True, _get_ident()
    if state.background is not None:
        state.background.affinity = affinity.Affinity(threading.get_native_id())
    if observe() and state.elsewhere is not None:
        state.take_over()
    return state.loop is not None


def observe_worker(workers):
    """In one of so many processes that make samples; models that a dataset runs are not training."""
    if state.began or not _open("worker", workers):
        return False
    state.background.start()
    return True


def _open(role, workers=1):
    state.began = True
    state.ring, state.role = probe.open_ring(role), role
    if state.ring is None:
        off("no ring could be made in UNIDLE_PROBE_DIR")
        return False
    state.background = background.Background(state, workers)
    return True


def finish():
    """The process ends in order."""
    try:
        if state.actuators is not None and state.actuators.reads is not None:
            state.actuators.reads.finish()
        thread, state.thread = state.thread, 0
        if state.ring is None or not thread:
            return
        if state.loop is not None:
            state.loop.finish()
            if state.tracing is not None:
                state.tracing.finish()
        for samples in inspection.all_samples(state):
            samples.tell()
        state.background.stop()
        state.facts.write(final=True)
        state.ring.close()
    except BaseException as failure:
        caught(failure)


def interrupted():
    """An exception of the program's leaves our code half way: what says that a call is going on is taken back."""
    state.switching = False
    state.starting = None
    if state.role == "train":
        state.samples = None
    loop = state.loop
    if loop is not None:
        loop.inside = loop.telling = False
        loop.in_optimizer = 0


def shut_down():
    state.thread = 0
    if state.light is not None:
        state.light.give_up()
    state.light = None


def forked():
    """In a child: nothing of the parent's is ours. The patches stay; a ring is opened when there is something to tell."""
    if state.torch is None:
        return
    state.thread = _get_ident()
    if state.light is not None:
        state.light.give_up()
    state.light = None
    state.roots.widen(0)
    if state.tracing is not None:
        state.tracing.forked()
    state.loop = state.ring = state.samples = state.background = state.device = None
    state.began = state.trains = False
    state.elsewhere = None
    state.role = "train"
    state.facts = facts.Facts(state)
    state.waits = waits.Waits(state)


def _process_start_ns():
    """When this process was started, CLOCK_MONOTONIC."""
    try:
        with open("/proc/self/stat", "rb") as file:
            ticks = int(file.read().rsplit(b")", 1)[1].split()[19])
        age = time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
        return max(0, time.monotonic_ns() - int(age * 1e9))
    except (OSError, ValueError, IndexError):
        return time.monotonic_ns()
