"""Counts optimiser steps and samples afterwards, without marking each, when all steps are alike.

The samples of a batch follow from the loader's batch size. The number of optimiser steps follows from a
parameter's version: torch counts the in-place changes of a tensor.
"""

import weakref

_LOOKED_AT = 4  # number of the first parameters, and of the last


class Versions:
    """The versions of some parameters of an optimiser after `steps` steps."""

    def __init__(self, optimizer, steps):
        parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
        self.optimizer, self.steps = id(optimizer), steps
        self.versions = [
            (weakref.ref(one), one._version)
            for one in parameters[:_LOOKED_AT] + parameters[_LOOKED_AT:][-_LOOKED_AT:]
        ]

    def rhythm(self, steps):
        """Returns a Rhythm with a parameter that each step since then changed equally often; None if there is
        none."""
        since = steps - self.steps
        for reference, version in self.versions:
            parameter = reference()
            if parameter is not None and since > 0:
                changes, rest = divmod(parameter._version - version, since)
                if changes > 0 and not rest:
                    return Rhythm(parameter, changes)
        return None


class Rhythm:
    """Counts steps from now on by the version of one parameter, which each step changes `changes` times."""

    def __init__(self, parameter, changes):
        self.parameter, self.changes, self.version = parameter, changes, parameter._version

    def steps(self):
        """Steps so far; None if something else has changed the parameter, too."""
        steps, rest = divmod(self.parameter._version - self.version, self.changes)
        return None if rest or steps < 0 else steps


def marks(asked, before, each, steps, end):
    """When the optimiser had stepped, to the required precision: just before the next batch was requested.
    `before`: batches of the first step that were already fetched. `each`: batches per step."""
    places = (number * each - before for number in range(1, steps + 1))
    return [asked[place] if place < len(asked) else end for place in places]


def fits(batches, each, steps):
    """Whether that many batches make that many steps, and at most one more that has not stepped yet."""
    return steps * each <= batches <= (steps + 1) * each


def batch_size(loader, torch):
    """Samples of each batch, except for the last one of an epoch. 0 if unknown, or if a batch of another size
    was seen."""
    real = loader.real() if loader is not None and loader.real is not None else None
    sampler = getattr(real, "batch_sampler", None)
    if (
        type(sampler) is not torch.utils.data.BatchSampler
        or real._dataset_kind != 0
        or loader.largest != sampler.batch_size
    ):
        return 0
    return sampler.batch_size if hasattr(type(sampler.sampler), "__len__") else 0


def sizes(loader, size, iterator, fetched):
    """Samples of each of the last `fetched` batches of the iterator."""
    found = [size] * fetched
    real = loader.real()
    if not fetched or real is None or iterator is None or real.batch_sampler.drop_last:
        return found
    samples = len(real.batch_sampler.sampler)
    if samples % size and iterator._num_yielded == samples // size + 1:
        found[-1] = samples % size
    return found
