"""Dynamic check of a call: whether it drew random numbers or changed an object."""

import random
import sys

from _unidle_shim.host.shapes import unseen

_MOST_DRAWS = 4  # a loader and a sampler draw one each
_NAMES = ("python's random", "numpy.random", "torch's generator", "the device's generator")


@unseen
def random_states():
    """The states of the generators from which everything draws that has no generator of its own."""
    torch = sys.modules["torch"]
    devices = tuple(bytes(one.get_state().numpy()) for one in _of_devices())
    return random.getstate(), _of_numpy(), bytes(torch.get_rng_state().numpy()), devices


def _of_numpy():
    numpy = sys.modules.get("numpy")
    if numpy is None:
        return None
    state = numpy.random.get_state(legacy=False)
    # A normal number is made together with a second one, which waits for the next call.
    return state["state"]["pos"], bytes(state["state"]["key"]), state["has_gauss"], state["gauss"]


def _of_devices():
    """The generators of the devices in use."""
    cuda = getattr(sys.modules["torch"], "cuda", None)
    return cuda.default_generators if cuda is not None and cuda.is_initialized() else ()


@unseen
def restore(states):
    """Restores them after a call made only as proof, so that the program's random numbers stay the same."""
    numpy, torch = sys.modules.get("numpy"), sys.modules["torch"]
    if states != random_states():
        random.setstate(states[0])
        if states[1] is not None:
            state = numpy.random.get_state(legacy=False)
            position, key, state["has_gauss"], state["gauss"] = states[1]
            state["state"] = {"pos": position, "key": numpy.frombuffer(key, state["state"]["key"].dtype)}
            numpy.random.set_state(state)
        torch.set_rng_state(torch.frombuffer(bytearray(states[2]), dtype=torch.uint8))
        for generator, kept in zip(_of_devices(), states[3]):
            generator.set_state(torch.frombuffer(bytearray(kept), dtype=torch.uint8))


def drew(before):
    for name, old, new in zip(_NAMES, before, random_states()):
        if old != new:
            return "a sample draws from %s, so that it is another one in each epoch" % name
    return None


def numbers_of(value, depth=3):
    """The numbers and texts that an object and its members hold, by name."""
    found = {}
    for name, held in list(getattr(value, "__dict__", {}).items())[:64]:
        if isinstance(held, (int, float, str)):
            found[name] = held
        elif (
            depth
            and hasattr(held, "__dict__")
            and type(held).__module__.split(".")[0] not in ("torch", "numpy", "pandas")
        ):
            found.update((name + "." + inner, v) for inner, v in numbers_of(held, depth - 1).items())
    return found


@unseen
def draws(before, after):
    """How many numbers were drawn from torch's generator, each in the way in which loaders and samplers draw
    a seed; None if anything else was drawn."""
    torch = sys.modules["torch"]
    if before[:2] != after[:2] or before[3:] != after[3:]:
        return None
    generator = torch.Generator()
    generator.set_state(torch.frombuffer(bytearray(before[2]), dtype=torch.uint8))
    for count in range(_MOST_DRAWS + 1):
        if bytes(generator.get_state().numpy()) == after[2]:
            return count
        torch.empty((), dtype=torch.int64).random_(generator=generator)
    return None


@unseen
def draw(count):
    """Draws `count` numbers, as counted by `draws`."""
    torch = sys.modules["torch"]
    for _ in range(count):
        torch.empty((), dtype=torch.int64).random_()
