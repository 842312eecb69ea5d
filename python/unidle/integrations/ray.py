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
    """Returns the function for a trainer of Ray Train. Its workers are recorded, as unidle.observe() does,
    from the begin of the function to its end in the last of them.

    trainer = TorchTrainer(observed(train_loop_per_worker), scaling_config=ScalingConfig(num_workers=2))

    All workers of a machine share one record, in `.unidle/runs` of the folder where the trainer was made, or
    of the worker's own folder on a machine that does not have that one.
    """
    where = os.path.abspath(record) if record is not None else None
    job = _Job(uuid.uuid4().hex, os.getcwd(), _recording.own_command())

    @functools.wraps(train_loop_per_worker)
    def train_loop(*config: Any) -> Any:
        with _Observe(job, where):
            return train_loop_per_worker(*config)

    return train_loop


class _Job(NamedTuple):
    """What the workers know of the program that makes the trainer."""

    key: str
    folder: str
    command: List[str]


class _Observe(unidle.observe):
    def __init__(self, job: _Job, record: Optional[str]) -> None:
        self._job = job
        super().__init__(record)

    def _ranks(self) -> _recording.Ranks:
        key, folder, command = self._job
        own, workers = os.getpid(), ray.train.get_context().get_local_world_size()
        # Ends with this process, because Ray's own, which started the workers, live on.
        return _recording.Ranks(
            key, own, _raylet() or own, command, folder if os.access(folder, os.W_OK) else None, workers
        )


def _raylet() -> Optional[int]:
    """The process that starts Ray's workers on this machine."""
    parent = os.getppid()
    return parent if Path(f"/proc/{parent}/comm").read_text().strip() == "raylet" else None
