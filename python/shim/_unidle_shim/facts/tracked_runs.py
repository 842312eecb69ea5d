"""The runs of experiment trackers that the program writes, so that its diagnosis can be added to them."""

import os
import sys

from _unidle_shim.facts import addresses
from _unidle_shim.host import imports
from _unidle_shim.host.guard import caught, value_or_none
from _unidle_shim.host.patching import around

_MOST = 16


class TrackedRuns:
    def __init__(self, state):
        self._state = state
        self.runs = {}  # (tracker, run) -> fields

    def install(self):
        # A disabled run has a log() of its own; a run that another module began has not been returned to us.
        imports.watch(
            "wandb", lambda module: self._after(module, "init", lambda args, run: self._of_wandb(run))
        )
        imports.watch(
            "wandb.sdk.wandb_run",
            lambda module: self._before(module, "Run", "log", lambda args, kwargs: self._of_wandb(args[0])),
        )
        for method in ("log_metric", "log_batch"):
            imports.watch(
                "mlflow.tracking.client",
                lambda module, method=method: self._before(module, "MlflowClient", method, self._of_mlflow),
            )
        for name in ("torch.utils.tensorboard.writer", "tensorboardX.writer"):
            imports.watch(name, self._watch_writer)

    def _before(self, module, owner, method, found):
        def before(args, kwargs):
            try:
                if len(self.runs) < _MOST:
                    value_or_none(found, args, kwargs)
            except BaseException as failure:
                caught(failure)

        around(getattr(module, owner, None), method, before, None)

    def _after(self, owner, name, found):
        def after(seen, args, kwargs, result):
            try:
                if len(self.runs) < _MOST:
                    value_or_none(found, args, result)
            except BaseException as failure:
                caught(failure)

        around(owner, name, lambda args, kwargs: True, after)

    def _watch_writer(self, module):
        writer = getattr(module, "SummaryWriter", None)
        if writer is not None:
            self._after(writer, "__init__", lambda args, result: self._of_writer(args[0]))

    def _of_wandb(self, run):
        key = "wandb", run.id
        if key not in self.runs:
            settings = run.settings
            fields = {
                "server": addresses.without_secrets(settings.base_url),
                "project": run.project,
                "entity": run.entity,
                "name": run.name,
                "mode": settings.mode,
                "folder": os.path.abspath(settings.root_dir),
            }
            self._add(key, fields)

    def _of_mlflow(self, args, kwargs):
        key = "mlflow", args[1] if len(args) > 1 else kwargs.get("run_id")
        if key not in self.runs:
            uri = str(args[0]._tracking_client.tracking_uri)
            self._add(key, {"server": addresses.without_secrets(addresses.absolute(uri))})

    def _of_writer(self, writer):
        folder = getattr(writer, "log_dir", None) or getattr(writer, "logdir", None)
        if not folder:
            return
        folder = os.fspath(folder)
        # In a bucket, or in a folder.
        folder = addresses.without_secrets(folder) if "://" in folder else os.path.abspath(folder)
        # add_hparams() has a writer of its own within the folder.
        known = [run for tracker, run in self.runs if tracker == "tensorboard"]
        if not any(folder == run or folder.startswith(os.path.join(run, "")) for run in known):
            self._add(("tensorboard", folder), {})

    def _add(self, key, fields):
        """Notes it at once: a short program may be killed."""
        self.runs[key] = dict(fields, executable=sys.executable)
        self._state.facts.write_now(*self._note(key))

    def _note(self, key):
        tracker, run = key
        return ("tracker", *key), {"type": "tracker", "tracker": tracker, "run": run, **self.runs[key]}

    def notes(self):
        return map(self._note, list(self.runs))
