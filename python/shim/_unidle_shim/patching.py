"""Everything of torch that is patched, put in place when the program has imported torch."""

import atexit
import os
import threading

from . import actuators, calls, facts, loaders, logging_time, models, session, tracing, waits


def begin(torch):
    state = session.state
    state.torch = torch
    state.facts = facts.Facts(state)
    state.actuators = actuators.Actuators(state, os.environ.get("UNIDLE_APPLY"))
    state.waits = waits.Waits(state)
    state.actuators.install_precision()
    models.install(state)
    calls.install(state)
    loaders.install(state)
    waits.install(state)
    logging_time.install(state)
    state.actuators.install()
    if tracing.wanted():
        state.tracing = tracing.Tracing(state, tracing.wanted())
    state.thread = threading.get_ident()
    atexit.register(session.finish)
