"""In trials: keeps the runs of a search out of the dashboards of experiment trackers.

The environment of a trial already tells each tracker so. Here the arguments that the program's own code
passes are changed as well, because they take precedence over the environment.
"""

from _unidle_shim.host import imports, signatures
from _unidle_shim.host.guard import caught
from _unidle_shim.host.hidden_frames import wraps

_QUIET = ("disabled", "debug")
# module: (function, argument, value). With the value None, the environment decides. A function without an
# argument does nothing.
_CALLS = {
    "wandb": (("init", "mode", "offline"), ("login", None, True)),
    "mlflow": (("set_tracking_uri", None, None), ("set_registry_uri", None, None)),
    "mlflow.tracking.client": (
        ("MlflowClient.__init__", "tracking_uri", None),
        ("MlflowClient.__init__", "registry_uri", None),
    ),
    "neptune": (("init_run", "mode", "offline"), ("init", "mode", "offline")),
    "swanlab": (("init", "mode", "offline"), ("login", None, None)),
    "comet_ml": (("start", "online", False), ("login", None, None)),
}


def start():
    for name, calls in _CALLS.items():
        imports.watch(name, lambda module, calls=calls: mute(module, calls))


def mute(module, calls):
    for path, argument, value in calls:
        kind, _, name = path.rpartition(".")
        owner = getattr(module, kind, None) if kind else module
        original = getattr(owner, name, None)
        if callable(original):
            setattr(owner, name, _muted(original, argument, value))


def _muted(original, argument, value):
    @wraps(original)
    def call(*args, **kwargs):
        if argument is None:
            return value
        try:
            args, kwargs = _changed(original, argument, value, args, kwargs)
        except BaseException as failure:
            caught(failure)
            kwargs[argument] = value  # a trial must not appear in a dashboard
        return original(*args, **kwargs)

    return call


def _changed(original, argument, value, args, kwargs):
    """Returns the arguments with that one replaced, by name or by position."""
    names = list(signatures.signature_of(original).parameters)
    place = names.index(argument) if argument in names else len(args)
    given = args[place] if place < len(args) else kwargs.get(argument)
    if given in _QUIET:
        return args, kwargs
    if place < len(args):
        return args[:place] + (value,) + args[place + 1 :], kwargs
    return args, dict(kwargs, **{argument: value})
