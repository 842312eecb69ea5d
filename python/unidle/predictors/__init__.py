"""A Python function as a predictor of the feature cache: `unidle cache warm ... -- python mine.py`.

from unidle.predictors import Refused, serve

def start(parameters):
    model = load(parameters.get("model", "small"))

    def predict(inputs):  # a list of bytes
        return [{"embedding": model(text.decode())} for text in inputs]

    return "my-embedding", "1", predict

serve(start)
"""

from __future__ import annotations

import json
import os
import struct
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, BinaryIO, NoReturn

__all__ = ["Refused", "leave", "serve"]

_HEAD = struct.Struct("<4sIQ")
_PROTOCOL = 1

Predict = Callable[[Sequence[bytes]], Sequence["Mapping[str, Any] | Refused"]]
Start = Callable[[Mapping[str, Any]], "tuple[str, str, Predict]"]


class Refused:
    """Replaces an input's arrays and says what is wrong with the input. It is not asked for again."""

    def __init__(self, reason: str) -> None:
        self.reason = reason


def leave(message: str) -> NoReturn:
    """Ends the program before it is ready, without a retry: a dependency is missing, or the call is wrong."""
    sys.stderr.write(message.replace("\n", " ") + "\n")
    raise SystemExit(2)


def serve(start: Start) -> None:
    """Speaks docs/predictor-protocol.md on standard input and output until the input ends.

    `start` receives the parameters and returns identity, version and a function. The function receives the
    inputs of a batch and returns, for each in turn, a mapping of names to arrays (numpy's, or what
    numpy.asarray accepts) or a Refused. Its exceptions end the program: unidle restarts it, and finds the
    input at fault. Printed output goes to standard error.
    """
    source = sys.stdin.buffer
    sink = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # including output of C libraries
    hello = _read(source)
    if hello is None:
        return
    if hello[0].get("type") != "hello" or hello[0].get("protocol") != _PROTOCOL:
        leave(f"speaks version {_PROTOCOL} of the protocol of predictors, and is run by unidle cache warm")
    identity, version, predict = start(hello[0].get("parameters", {}))
    _write(sink, {"type": "ready", "protocol": _PROTOCOL, "identity": identity, "version": version})
    while (frame := _read(source)) is not None and frame[0].get("type") == "batch":
        head, data = frame
        inputs = []
        for length in head["lengths"]:
            inputs.append(data[:length])
            data = data[length:]
        answers = predict(inputs)
        if len(answers) != len(inputs):
            raise ValueError(f"predict gave {len(answers)} answers for {len(inputs)} inputs")
        items, arrays = [], []
        for answer in answers:
            items.append(_item(answer, arrays))
        _write(sink, {"type": "result", "batch": head["batch"], "items": items}, b"".join(arrays))


def _read(source: BinaryIO) -> tuple[dict[str, Any], bytes] | None:
    """Returns a frame, or None at the end of the input."""
    start = source.read(_HEAD.size)
    if not start:
        return None
    if len(start) < _HEAD.size or start[:4] != b"UPP1":
        leave("its input does not follow the protocol of predictors: run it by unidle cache warm")
    _, head_bytes, data_bytes = _HEAD.unpack(start)
    head, data = source.read(head_bytes), source.read(data_bytes)
    if len(head) < head_bytes or len(data) < data_bytes:
        raise EOFError("the input ended within a frame")
    return json.loads(head), data


def _write(sink: BinaryIO, head: Mapping[str, Any], data: bytes = b"") -> None:
    text = json.dumps(head).encode()
    sink.write(_HEAD.pack(b"UPP1", len(text), len(data)) + text + data)
    sink.flush()


def _item(answer: Mapping[str, Any] | Refused, arrays: list[bytes]) -> dict[str, Any]:
    """Returns an item of the protocol; appends the bytes of its arrays."""
    import numpy as np

    if isinstance(answer, Refused):
        return {"error": answer.reason or "no reason given"}
    tensors = []
    for name, value in answer.items():
        array = np.asarray(value)
        array = np.ascontiguousarray(array, array.dtype.newbyteorder("<")).reshape(array.shape)
        tensors.append({"name": name, "dtype": array.dtype.name, "shape": list(array.shape)})
        arrays.append(array.tobytes())
    return {"tensors": tensors}
