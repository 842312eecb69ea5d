"""Times logging in the training thread: print, logging, TensorBoard, progress bars, plots."""

import builtins
import sys
import threading
import time

from _unidle_shim.host import imports, places
from _unidle_shim.host.guard import caught, value_or_none
from _unidle_shim.host.patching import around
from _unidle_shim.loop.loop import now

_get_ident = threading.get_ident
_MOST_PLACES = 256
_TRIES = 20
_PICTURES = (
    "add_image",
    "add_figure",
    "add_video",
    "add_histogram",
    "add_audio",
    "add_text",
    "add_embedding",
    "add_mesh",
)
# Trackers' modules, classes, and methods to which a program tells something.
_TRACKERS = (
    ("wandb.sdk.wandb_run", "Run", ("log", "log_artifact", "watch")),
    ("mlflow.tracking.client", "MlflowClient", ("log_metric", "log_batch", "log_artifact", "log_artifacts")),
    ("visdom", "Visdom", ("_send",)),
    ("ray.train.v2._internal.execution.context", "TrainContext", ("report",)),
    ("ray.train._internal.session", "_TrainSession", ("report",)),
)


def record_s():
    """Processor time in which a Logger finds its caller and makes a record, before it handles that. It
    searches the stack and must not find us there, so we try it out. 0 if the program has changed either."""
    logging = sys.modules["logging"]
    logger = logging.Logger("")
    if logger.findCaller.__module__ != "logging" or logging.getLogRecordFactory() is not logging.LogRecord:
        return 0.0
    times = []
    for _ in range(_TRIES):
        begin = time.thread_time_ns()
        file, line, function, stack = logger.findCaller()
        logging.LogRecord("", logging.INFO, file, line, "", (), None, function, stack)
        times.append(time.thread_time_ns() - begin)
    return min(times) * 1e-9


class Logging:
    def __init__(self):
        self.places = {}  # (code, line) -> [calls, ns]
        self.records = 0  # calls that handled a record
        self.record_s = None  # see record_s()

    def count(self, place, own_ns, calls=1):
        entry = self.places.setdefault(place, [0, 0]) if len(self.places) < _MOST_PLACES else [0, 0]
        entry[0] += calls
        entry[1] += own_ns

    def note(self):
        if not self.places:
            return None
        entries = list(self.places.items())
        (code, line), most = max(entries, key=lambda entry: entry[1][1])
        if self.records and self.record_s is None:
            self.record_s = value_or_none(record_s) or 0.0
        return {
            "type": "logging",
            "calls": sum(e[1][0] for e in entries),
            "seconds": sum(e[1][1] for e in entries) * 1e-9 + self.records * (self.record_s or 0.0),
            "where": places.text(code, line),
            "where_calls": most[0],
        }


def install(state):
    state.logging = Logging()
    _patch(state, builtins, "print")
    imports.watch("logging", lambda module: _patch(state, module.Logger, "handle", records=1))
    for name in ("torch.utils.tensorboard.writer", "tensorboardX.writer"):
        imports.watch(name, lambda module: _patch_writer(state, getattr(module, "SummaryWriter", None)))
    for tracker in _TRACKERS:
        _watch_tracker(state, *tracker)
    imports.watch("tqdm.std", lambda module: _patch(state, module.tqdm, "refresh"))
    imports.watch("PIL.Image", lambda module: _patch(state, module.Image, "save", True))
    imports.watch("matplotlib.figure", lambda module: _patch(state, module.Figure, "savefig", True))
    imports.watch(
        "torchvision.utils",
        lambda module: [_patch(state, module, name, True) for name in ("make_grid", "save_image")],
    )


def _watch_tracker(state, name, owner, methods):
    def patch(module):
        for method in methods:
            _patch(state, getattr(module, owner, None), method)

    imports.watch(name, patch)


def _patch_writer(state, Writer):
    for name in dir(Writer):
        if name.startswith("add_") or name == "flush":
            _patch(state, Writer, name, name.startswith(_PICTURES))


def _patch(state, owner, name, draws=False, records=0):
    def before(args, kwargs):
        loop = state.loop
        if loop is None or loop.telling or _get_ident() != state.thread or (draws and loop.within()):
            return None
        loop.telling = True
        return loop, now(), loop.total

    def after(seen, args, kwargs, result):
        try:
            t1 = now()
            loop, t0, total = seen
            loop.telling = False
            own = t1 - t0 - (loop.total - total)
            if _take(state, loop, t0, t1, own, sys._getframe(1), draws):
                state.logging.records += records
        except BaseException as failure:
            caught(failure)

    around(owner, name, before, after)


def _take(state, loop, t0, t1, own, frame, draws):
    """Returns whether it belongs to a step."""
    parts = loop.parts
    if loop.validation is not None:
        if t0 - loop.validation[1] < 1_000_000_000:
            loop.validation[1] = t1
            if loop.preview is not None:
                loop.preview.tell(state.logging, places.of_frame(frame), own, draws)
        return False
    if parts is None or not (loop.steps or parts.optimizers or parts.forwards):
        return False
    state.logging.count(places.of_frame(frame), own)
    loop.total += own
    parts.log += own
    parts.rare = True
    parts.last = t1
    return True
