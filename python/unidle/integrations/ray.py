"""observed: the training loop of Ray Train's workers, recorded."""

from __future__ import annotations

import functools
import os
import uuid
from pathlib import Path
from typing import Any, Callable, List, NamedTuple, Optional

import ray.train

import unidle
from unidle import _recording


def observed(train_loop_per_worker: Callable, record: Optional[Any] = None) -> Callable:
    """Returns the function for a trainer of Ray Train. The workers are recorded, as by unidle.observe(), from
    the start of the function until it has returned in the last worker or failed in the first.

    trainer = TorchTrainer(observed(train_loop_per_worker), scaling_config=ScalingConfig(num_workers=2))

    All workers of a machine share one record. It is in `.unidle/runs` of the folder in which observed() was
    called, or of the worker's own folder on a machine where that one does not exist or cannot be written.
    """
    job = _Job(uuid.uuid4().hex, _own_folder(), _recording.own_command())
    where = os.path.join(job.folder or "", record) if record is not None else None

    @functools.wraps(train_loop_per_worker)
    def train_loop(*config: Any) -> Any:
        with _Observe(job, where):
            return train_loop_per_worker(*config)

    return train_loop


class _Job(NamedTuple):
    """What the workers need to know of the program that called observed()."""

    key: str
    folder: Optional[str]
    command: List[str]


class _Observe(unidle.observe):
    def __init__(self, job: _Job, record: Optional[str]) -> None:
        self._job = job
        super().__init__(record)

    def _ranks(self) -> _recording.Ranks:
        key, folder, command = self._job
        # Several trainers may share the function: each group of workers has an address of its own.
        group = [os.environ.get(name, "") for name in ("MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE")]
        key = "-".join([key, *group]).replace(":", "-").replace("/", "-")
        own, workers = os.getpid(), ray.train.get_context().get_local_world_size()
        # The record ends with this process at the latest: the raylet, which starts the workers, runs on after
        # the job.
        return _recording.Ranks(
            key,
            own,
            _raylet() or own,
            command,
            folder if folder and os.access(folder, os.W_OK) else None,
            workers,
        )


def _own_folder() -> Optional[str]:
    try:
        return os.getcwd()
    except OSError:  # it was removed
        return None


def _raylet() -> Optional[int]:
    """The process that starts Ray's workers on this machine; a tool like uv may be between."""
    process = os.getppid()
    while process > 1:
        name, fields = Path(f"/proc/{process}/stat").read_text().split("(", 1)[1].rsplit(")", 1)
        if name == "raylet":
            return process
        process = int(fields.split()[1])
    return None
