"""In trials: keeps the runs of a search out of the dashboards of experiment trackers.

The environment of a trial already says so to each tracker. Here the arguments that the program's own code
passes are changed as well, because they would take precedence over the environment.
"""

from _unidle_shim.host import imports
from _unidle_shim.host.hidden_frames import wraps

_QUIET = ("disabled", "debug")
# module: (function, argument, value); a function without an argument does nothing
_CALLS = {
    "wandb": (("init", "mode", "offline"), ("login", None, True)),
    "mlflow": (("set_tracking_uri", None, None),),
    "neptune": (("init_run", "mode", "offline"), ("init", "mode", "offline")),
    "swanlab": (("init", "mode", "offline"), ("login", None, None)),
    "comet_ml": (("start", "online", False), ("login", None, None)),
}


def start():
    for name, calls in _CALLS.items():
        imports.watch(name, lambda module, calls=calls: mute(module, calls))


def mute(module, calls):
    for name, argument, value in calls:
        original = getattr(module, name, None)
        if callable(original):
            setattr(module, name, _muted(original, argument, value))


def _muted(original, argument, value):
    @wraps(original)
    def call(*args, **kwargs):
        if argument is None:
            return value
        if kwargs.get(argument) not in _QUIET:
            kwargs[argument] = value
        return original(*args, **kwargs)

    return call
