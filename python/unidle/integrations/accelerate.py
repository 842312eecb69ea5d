"""Observe: a tracker of Accelerate."""

from __future__ import annotations

from typing import Any, Optional

from accelerate.tracking import GeneralTracker, on_main_process

import unidle


class Observe(GeneralTracker):
    """Records the training, as unidle.observe() does, from here to accelerator.end_training(). What the
    program logs becomes curves of the report.

    accelerator = Accelerator(log_with=Observe())
    accelerator.init_trackers("name", config)
    """

    name = "unidle"
    requires_logging_directory = False

    def __init__(self, record: Optional[Any] = None) -> None:
        super().__init__()
        self._watch: Optional[unidle.observe] = unidle.observe(record).__enter__()

    @property
    def tracker(self) -> Any:
        return self._watch

    @on_main_process
    def store_init_configuration(self, values: dict) -> None:
        _note(values)

    @on_main_process
    def log(self, values: dict, step: Optional[int] = None, **more: Any) -> None:
        _note(values)

    def finish(self) -> None:
        watch, self._watch = self._watch, None
        if watch is not None:
            watch.__exit__(None, None, None)


def _note(values: dict) -> None:
    unidle.note(**{str(name): value for name, value in values.items()})  # other trackers take any key
