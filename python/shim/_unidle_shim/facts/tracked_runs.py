"""The runs of experiment trackers that the program writes, so that its diagnosis can be added to them."""

import os
import re

from _unidle_shim.host import imports
from _unidle_shim.host.guard import caught, value_or_none
from _unidle_shim.host.patching import around

_MOST = 16
_PASSWORD = re.compile(r"(?<=://)[^/@]*@")


class TrackedRuns:
    def __init__(self):
        self.runs = {}  # (tracker, run) -> fields

    def install(self):
        imports.watch("wandb.sdk.wandb_run", lambda module: self._watch(module, "Run", "log", self._of_wandb))
        for method in ("log_metric", "log_batch"):
            imports.watch(
                "mlflow.tracking.client",
                lambda module, method=method: self._watch(module, "MlflowClient", method, self._of_mlflow),
            )
        for name in ("torch.utils.tensorboard.writer", "tensorboardX.writer"):
            imports.watch(name, self._watch_writer)

    def _watch(self, module, owner, method, found):
        def before(args, kwargs):
            try:
                if len(self.runs) < _MOST:
                    value_or_none(found, args, kwargs)
            except BaseException as failure:
                caught(failure)

        around(getattr(module, owner, None), method, before, None)

    def _watch_writer(self, module):
        def after(seen, args, kwargs, result):
            try:
                if len(self.runs) < _MOST:
                    value_or_none(self._of_writer, args[0])
            except BaseException as failure:
                caught(failure)

        around(module.SummaryWriter, "__init__", lambda args, kwargs: True, after)

    def _of_wandb(self, args, kwargs):
        run = args[0]
        key = "wandb", run.id
        if key not in self.runs:
            settings = run.settings
            self.runs[key] = {
                "project": run.project,
                "entity": run.entity,
                "mode": settings.mode,
                "folder": os.path.abspath(settings.root_dir),
            }

    def _of_mlflow(self, args, kwargs):
        key = "mlflow", args[1] if len(args) > 1 else kwargs.get("run_id")
        if key not in self.runs:
            self.runs[key] = {"server": _PASSWORD.sub("", args[0]._tracking_client.tracking_uri)}

    def _of_writer(self, writer):
        folder = getattr(writer, "log_dir", None) or getattr(writer, "logdir", None)
        if folder:
            self.runs.setdefault(("tensorboard", os.path.abspath(folder)), {})

    def notes(self):
        for (tracker, run), fields in list(self.runs.items()):
            yield ("tracker", tracker, run), {"type": "tracker", "tracker": tracker, "run": run, **fields}
