"""Observe: a callback of the Trainer of transformers."""

from __future__ import annotations

from typing import Any, Optional

from transformers import TrainerCallback

import unidle

_SETTINGS = (
    *("per_device_train_batch_size", "gradient_accumulation_steps", "gradient_checkpointing", "bf16", "fp16"),
    *("tf32", "optim", "torch_compile", "dataloader_num_workers", "dataloader_pin_memory", "group_by_length"),
    *("eval_strategy", "eval_steps", "save_strategy", "save_steps", "logging_steps", "auto_find_batch_size"),
)


class Observe(TrainerCallback):
    """Records the training, as unidle.observe() does, from the begin of train() to its end.

    trainer = Trainer(..., callbacks=[Observe()])
    """

    def __init__(self, record: Optional[Any] = None) -> None:
        self._record, self._watch = record, None  # type: Any, Optional[unidle.observe]

    def on_train_begin(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        self._watch = unidle.observe(self._record).__enter__()
        unidle.note(**{name: getattr(args, name) for name in _SETTINGS if hasattr(args, name)})

    def on_train_end(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        watch, self._watch = self._watch, None
        if watch is not None:
            watch.__exit__(None, None, None)
