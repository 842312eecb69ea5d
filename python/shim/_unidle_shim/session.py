"""The state of the observation in this process: the ring, the training loop, patches, background thread."""

import os
import threading
import time

from _unidle_shim.facts import affinity, in_effect, live_settings, stack_sampler
from _unidle_shim.host import probe, startup
from _unidle_shim.host.guard import caught, off
from _unidle_shim.loop import short_steps
from _unidle_shim.loop.loop import Loop

_get_ident = threading.get_ident


class State:
    """Shared by all patches. `thread` is the id of the followed thread, or 0 if none is: then every patch
    only calls the original."""

    def __init__(self):
        # The process, and where it reports.
        self.torch = None
        self.has_device = False  # a GPU that torch could use
        self.role = "train"  # or "worker"
        self.began = False  # training or data loading was seen in this process
        self.ring = None  # host.probe
        self.background = None  # facts.stack_sampler.Background
        self.device = None  # facts.device_time.DeviceTimer
        self.tracing = None  # facts.profiler_window.Tracing, if a window was requested
        self.facts = None  # facts.in_effect.Facts
        # The training loop.
        self.thread = 0
        self.trains = False  # `thread` is known to be the one that trains
        self.loop = None  # loop.loop.Loop
        self.marking = None  # loop.short_steps.MarkedSteps, while steps are only marked
        # The latest iterator that another thread made meanwhile, see loaders.made_elsewhere.
        self.iterator_from_other_thread = None
        self.take_over = None  # follows that iterator
        self.samples = None  # samples.sample_cost.Samples of this process
        # State of patches.
        self.module_classes = None  # patches.module_classes.ModuleClasses
        self.backward = None  # patches.training_calls.Backward
        self.fetches = []  # loop.short_steps.Patch of each kind of loader iterator's __next__
        self.makers = ()  # loop.short_steps.Patch of the functions that make batches in this process
        self.waits = None  # patches.waits.Waits
        self.logging = None  # patches.logging_calls.Logging
        self.tracked_runs = None  # facts.tracked_runs.TrackedRuns
        self.all_loaders = []  # patches.loaders.Loader
        self.starting = None  # the loader whose workers are being started
        self.fetched_elsewhere = False  # a thread that does not train has fetched a batch from a loader
        self.switching = False  # in train() or eval() of a model
        self.compiled = None  # (mode, backend) of torch.compile
        # For settings changed at run time, and for trials.
        self.actuators = None  # knobs.actuators.Actuators
        self.actor_notes = []  # functions notes(settings): their changes, and the settings in effect
        self.on_training_forward = []  # called with the frame of the first forward passes of training
        self.read_back = None  # called once, after the first steps
        self.at_finish = []  # called first when the process exits normally
        self.at_fork = []  # called in a child


state = State()


def observe():
    """Opens the ring at the first call worth recording. False if no training is followed in this process."""
    if state.began:
        return state.loop is not None
    if not _open("train"):
        return False
    steps = os.environ.get("UNIDLE_MAX_STEPS", "")
    state.loop = Loop(state.ring, state.thread, _start_ns(), int(steps) if steps.isdigit() else 0)
    state.loop.on_step = state.facts.step_written
    state.loop.watch_models = state.module_classes.watch_all
    state.loop.marked_steps = short_steps.MarkedSteps(state)
    if state.tracing is not None:
        state.tracing.follow(state.loop)
    state.background.take_startup()
    state.background.start()
    return True


def followed():
    """Returns the loop, followed from this call on at the latest; None if there is none."""
    return state.loop if observe() else None


def adopt():
    """Follows this thread from now on: it calls the first backward pass or the first optimiser step, so it is
    the one that trains, although another thread imported torch. False if another one is known to train."""
    if state.trains or not state.thread or state.role != "train":
        return False
    state.trains, state.thread = True, _get_ident()
    if state.background is not None:
        state.background.affinity = affinity.Affinity(threading.get_native_id())
    if observe() and state.iterator_from_other_thread is not None:
        state.take_over()
    return state.loop is not None


def observe_worker(workers):
    """Observes one of a loader's `workers` workers. Models that a dataset runs there are not training."""
    if state.began or not _open("worker", workers):
        return False
    startup.end()
    state.background.start()
    return True


def _open(role, workers=1):
    state.began = True
    state.ring, state.role = probe.open_ring(role), role
    if state.ring is None:
        off("no ring could be made in UNIDLE_PROBE_DIR")
        return False
    state.background = stack_sampler.Background(state, workers)
    return True


def finish():
    """The process exits normally."""
    try:
        for finish_first in state.at_finish:
            finish_first()
        thread, state.thread = state.thread, 0
        if state.ring is None or not thread:
            return
        if state.loop is not None:
            state.loop.finish()
            if state.tracing is not None:
                state.tracing.finish()
        for samples in live_settings.all_samples(state):
            samples.tell()
        if state.background.stop():
            state.facts.write(final=True)
        state.ring.close()
    except BaseException as failure:
        caught(failure)
    finally:
        _stop_background()


def _stop_background():
    try:
        if state.background is not None:
            state.background.stop()
    except BaseException as failure:
        caught(failure)


def interrupted():
    """An exception of the program (from a signal handler, say) has interrupted our code: resets the marks
    that a call is in progress."""
    state.switching = False
    state.starting = None
    if state.role == "train":
        state.samples = None
    loop = state.loop
    if loop is not None:
        loop.inside = loop.telling = loop.saving = False
        loop.in_optimizer, loop.updating = 0, False


def shut_down():
    state.thread = 0
    if state.marking is not None:
        state.marking.give_up()
    state.marking = None


def forked():
    """In a forked child: drops all state of the parent. The patches stay; a ring is opened once there is
    something to record."""
    if state.torch is None:
        return
    state.thread = _get_ident()
    if state.marking is not None:
        state.marking.give_up()
    state.marking = None
    state.module_classes.watch_all(0)
    if state.tracing is not None:
        state.tracing.forked()
    state.loop = state.ring = state.samples = state.background = state.device = None
    state.began = state.trains = False
    state.iterator_from_other_thread = None
    state.role = "train"
    state.facts = in_effect.Facts(state, state.facts.inherited + state.facts.optimizers)
    for renew in state.at_fork:
        renew()


def begin_again():
    """After finish(): observes what comes now as another run of the same program."""
    forked()
    state.facts.optimizers, state.facts.inherited = state.facts.inherited, []
    state.all_loaders = []
    state.fetched_elsewhere = False


def _start_ns():
    """When this process was started, or observation began if that was later; on CLOCK_MONOTONIC."""
    if startup.since_ns:
        return startup.since_ns
    try:
        with open("/proc/self/stat", "rb") as file:
            ticks = int(file.read().rsplit(b")", 1)[1].split()[19])
        age = time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
        return max(0, time.monotonic_ns() - int(age * 1e9))
    except (OSError, ValueError, IndexError):
        return time.monotonic_ns()
