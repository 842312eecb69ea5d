"""Puts all patches of torch in place as soon as the program has imported torch."""

import atexit
import os
import threading

from _unidle_shim import session
from _unidle_shim.facts import in_effect, memory_errors, profiler_window, tracked_runs
from _unidle_shim.knobs import actuators
from _unidle_shim.patches import (
    loaders,
    logging_calls,
    model_calls,
    package_loaders,
    thread_calls,
    training_calls,
    waits,
)
from _unidle_shim.samples import whole_batches


def begin(torch):
    state = session.state
    state.torch = torch
    state.facts = in_effect.Facts(state)
    state.actuators = actuators.Actuators(state, os.environ.get("UNIDLE_APPLY"))
    state.actuators.install_precision()
    model_calls.install(state)
    training_calls.install(state)
    state.actuators.install_trimming()
    loaders.install(state)
    package_loaders.install(state)
    waits.install(state)
    memory_errors.watch(state)
    logging_calls.install(state)
    state.tracked_runs = tracked_runs.TrackedRuns(state)
    state.tracked_runs.install()
    thread_calls.install(state)
    state.facts.debugging.install(torch)
    state.actuators.install()
    whole_batches.remember()  # with our patches in place
    if profiler_window.wanted():
        state.tracing = profiler_window.Tracing(state, profiler_window.wanted())
    state.thread = threading.get_ident()
    atexit.register(session.finish)
