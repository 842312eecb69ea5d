"""Observe: a callback of Lightning's Trainer."""

from __future__ import annotations

import sys
from typing import Any, Optional

import unidle

# A program uses one of the two packages; their callbacks are different classes.
if "pytorch_lightning" in sys.modules and "lightning" not in sys.modules:
    from pytorch_lightning import Callback
else:
    from lightning.pytorch import Callback

_SETTINGS = ("precision", "accumulate_grad_batches", "val_check_interval", "check_val_every_n_epoch")
_MORE = ("log_every_n_steps", "num_sanity_val_steps", "gradient_clip_val", "max_epochs", "num_devices")


class Observe(Callback):
    """Records the training, as unidle.observe() does, from the set-up of fit() to its end.

    trainer = Trainer(callbacks=[Observe()])
    """

    def __init__(self, record: Optional[Any] = None) -> None:
        self._record, self._watch = record, None  # type: Any, Optional[unidle.observe]

    def setup(self, trainer: Any, pl_module: Any, stage: str) -> None:
        if stage == "fit":
            self._watch = unidle.observe(self._record).__enter__()

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        settings = {name: getattr(trainer, name) for name in _SETTINGS + _MORE if hasattr(trainer, name)}
        unidle.note(strategy=type(trainer.strategy).__name__, **settings)

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        self._end(type(exception), exception)

    def teardown(self, trainer: Any, pl_module: Any, stage: str) -> None:
        self._end(None, None)

    def _end(self, kind: Optional[type], exception: Optional[BaseException]) -> None:
        watch, self._watch = self._watch, None
        if watch is not None:
            watch.__exit__(kind, exception, None)
