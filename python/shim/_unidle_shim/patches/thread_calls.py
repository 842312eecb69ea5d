"""Where the program sets the number of threads that compute."""

from _unidle_shim.host import places
from _unidle_shim.host.guard import caught
from _unidle_shim.host.patching import around


def install(state):
    def before(args, kwargs):
        try:
            state.facts.threads_where = places.here(1)
        except BaseException as failure:
            caught(failure)

    if "cpu.threads" not in state.actuators.asked:
        around(state.torch, "set_num_threads", before, None)
