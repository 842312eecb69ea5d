"""Which source of unidle.data could replace a loader's data set, according to unidle.data.like."""

import importlib
import importlib.util
import os
import sys
import tokenize

from _unidle_shim.host import places
from _unidle_shim.host.exception_origin import pass_on
from _unidle_shim.samples import whole_batches

PACKAGES = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
_NAME = "_unidle_shim_recognition"
_MOST_BYTES = 1 << 20  # of a source file of the program


def _recognition(name="__init__"):
    """Imports a module of unidle.data.recognition under another name, from beside the shim: a program that is
    only observed must not import the package. None if it is missing."""
    known = sys.modules.get(_NAME)
    if known is None:
        folder = os.path.join(PACKAGES, "unidle", "data", "recognition")
        file = os.path.join(folder, "__init__.py")
        if sys.version_info < (3, 9) or not os.path.exists(file):
            return None
        spec = importlib.util.spec_from_file_location(_NAME, file, submodule_search_locations=[folder])
        known = sys.modules[_NAME] = importlib.util.module_from_spec(spec)
        try:
            spec.loader.exec_module(known)
        except BaseException:  # of a signal handler of the program, too
            del sys.modules[_NAME]
            raise
    return known if name == "__init__" else importlib.import_module(_NAME + "." + name)


def why_not(real):
    """Why the loader itself cannot be replaced; None if it can."""
    if not real._auto_collation:
        return "the loader fetches whole batches"
    if not whole_batches.collates_as_torch(real.collate_fn):
        return "the program has its own collate function (batch_transform= of unidle.data.Loader may do that)"
    if real.batch_size is None:
        return "its batches are those of %s (groups= of unidle.data.Loader may do that)" % (
            type(real.batch_sampler).__name__
        )
    if order_of(real) is None:
        return "its order is that of %s (weights= or groups= of unidle.data.Loader may do that)" % (
            type(real.sampler).__name__
        )
    return None


def order_of(real):
    """Arguments of unidle.data.Loader for an order of the same kind; None if there are none."""
    sampler, kind = real.sampler, type(real.sampler).__name__
    if (
        real.batch_size is None
    ):  # with the program's own batch_sampler, the sampler is torch's and says nothing
        return None
    if type(real.batch_sampler).__name__ != "BatchSampler" or not (
        type(sampler).__module__.startswith("torch.utils.data.")
    ):
        return None
    options = {"shuffle": kind != "SequentialSampler", "drop_last": bool(real.drop_last)}
    if kind == "RandomSampler":
        whole = not sampler.replacement and sampler.num_samples == len(real.dataset)
        return options if whole else None
    if kind == "DistributedSampler":
        return dict(options, shuffle=sampler.shuffle, rank=sampler.rank, world=sampler.num_replicas)
    return options if kind == "SequentialSampler" else None


def note_of(real, where):
    """The fields of the note "source"; None if nothing is known about the data set."""
    recognition = _recognition()
    if recognition is None:
        return None
    found = recognition.recognize(real.dataset)
    if found is None:
        return None
    why = why_not(real)
    left = list(found.left) + ([why] if why else [])
    file, line = found.where or (None, None)
    return {
        "name": found.source,
        "code": found.code,
        "where": "%s:%d" % (places.short(file), line) if file and places.is_own_file(file) else None,
        "left": left,
        "note": found.note.replace(file, places.short(file)) if file else found.note,
        "patch": None if left else _patch(real, where),
    }


def _patch(real, where):
    """A patch of the file that makes the loader, as it is on disk."""
    try:
        name, line = where.rsplit(":", 1)
        path = places.full(name)
        if os.path.getsize(path) > _MOST_BYTES:
            return None
        with tokenize.open(path) as file:
            encoding = file.encoding
        with open(path, encoding=encoding, newline="") as file:
            text = file.read()
        live = _recognition("patch")
        order = order_of(real)
        form = live.Live(real.batch_size, order["shuffle"], order["drop_last"])
        return live.patch(text, name, int(line), form) or None
    except Exception as failure:  # a program that was not loaded from a file
        pass_on(failure)
        return None
