"""Settings of a Loader of the package unidle, in a running program."""

import inspect

ARGUMENTS = {"loader.workers": "workers", "loader.prefetch_factor": "prefetch"}
_REFUSED = {
    "loader.pin_memory": "the program's to ask for: device=, or pin_memory=, of its Loader of unidle.data",
    "loader.persistent_workers": "a Loader of unidle.data has no such option",
}


def by_position(Loader):
    """The names of its arguments that can be given by position, and some more. Call it before it is
    patched."""
    return tuple(inspect.signature(Loader).parameters)


def asked_of(actuators, names, real, args, kwargs):
    """Returns the keyword arguments with the requested ones added. Positional ones stay the program's;
    `names` are those of by_position."""
    for knob, why in _REFUSED.items():
        if knob in actuators.asked:
            actuators.say(knob, actuators.asked[knob], "refused", why)
    changes = {knob: actuators.asked[knob] for knob in ARGUMENTS if knob in actuators.asked}
    source = args[0] if args else kwargs.get("source")
    for knob, value in changes.items():
        name = ARGUMENTS[knob]
        if hasattr(source, "dataset"):
            why = "threads would share the data set of the program, and it may not be made for that"
            actuators.say(knob, value, "refused", why)
        elif name in names[: len(args)]:
            actuators.say(knob, value, "refused", "given by position in the program")
        else:
            kwargs = dict(kwargs, **{name: int(value)})
    return kwargs
