"""Parquet and Arrow IPC files as CSV, by pyarrow where it is installed.

The native library reads text alone. A file is turned into text once, batch by batch, so that it may be larger
than memory, into the folder of built tables; it is used as long as the file is what it was.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
from pathlib import Path
from typing import Any, Iterator, Tuple

from unidle.errors import FileSystemError, InputError, MissingError

SUFFIXES = (".parquet", ".pq", ".arrow", ".feather", ".ipc")
_ENDS = 64 * 1024  # bytes of head and tail that tell a file from another one
_VERSION = 2  # of the text


def is_arrow(path: str) -> bool:
    return path.lower().endswith(SUFFIXES)


def as_text(path: str, folder: str, delimiter: str) -> str:
    """The CSV of that file in `folder`, which is made when it is not there."""
    if os.path.isdir(path):
        raise InputError(f"{path}: is a folder; expected a file (name those that are in it)")
    try:
        name, fingerprint = _names(path, delimiter)
        os.makedirs(folder, exist_ok=True)
        text = os.path.join(folder, f"{name}-{fingerprint}.csv")
        with open(os.path.join(folder, f"{name}.csv.lock"), "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # goes with the process
            if not os.path.exists(text):
                _write(path, text, delimiter)
                _remove_older(folder, name, text)
        return text
    except OSError as error:
        if os.path.exists(path):
            raise FileSystemError(f"{path}: cannot be turned into text in {folder}: {error}") from error
        raise InputError(f"{path}: does not exist") from error


def _names(path: str, delimiter: str) -> Tuple[str, str]:
    """Of the file's place, and of what it is now: size, time, head and tail, as tables know theirs."""
    place = os.path.abspath(path)
    with open(path, "rb") as file:
        about = os.fstat(file.fileno())
        head = file.read(_ENDS)
        file.seek(max(0, about.st_size - _ENDS))
        ends = head + file.read(_ENDS)
    state = f"{_VERSION} {about.st_size} {about.st_mtime_ns} {delimiter}".encode()
    stem = os.path.splitext(os.path.basename(path))[0]
    name = f"{stem}-{hashlib.sha256(os.fsencode(place)).hexdigest()[:16]}"
    return name, hashlib.sha256(state + ends).hexdigest()[:16]


def _remove_older(folder: str, name: str, text: str) -> None:
    for other in Path(folder).glob(f"{_escaped(name)}-*.csv"):
        if str(other) != text:
            other.unlink()


def _escaped(name: str) -> str:
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in name)


def _pyarrow() -> Any:
    try:
        import pyarrow
        import pyarrow.csv
        import pyarrow.ipc
        import pyarrow.parquet
    except ImportError as error:
        raise MissingError("Parquet and Arrow files need pyarrow: pip install pyarrow") from error
    return pyarrow


@contextlib.contextmanager
def _batches(arrow: Any, path: str) -> Iterator[Tuple[Any, Iterator[Any]]]:
    """The schema, and record batches one after the other."""
    if path.lower().endswith((".parquet", ".pq")):
        with arrow.parquet.ParquetFile(path) as file:
            yield file.schema_arrow, file.iter_batches()
        return
    with arrow.memory_map(path) as mapped:
        try:
            reader = arrow.ipc.open_file(mapped)
        except arrow.ArrowInvalid:
            mapped.seek(0)
            stream = arrow.ipc.open_stream(mapped)
            yield stream.schema, iter(stream)
            return
        yield reader.schema, (reader.get_batch(number) for number in range(reader.num_record_batches))


def _written_as(arrow: Any, kind: Any) -> Any:
    """The type whose text says the same; None for lists, structures and bytes, which no cell holds."""
    types = arrow.types
    if types.is_dictionary(kind):
        return _written_as(arrow, kind.value_type)
    if types.is_boolean(kind):
        return arrow.int8()
    if types.is_float16(kind):
        return arrow.float32()
    if types.is_duration(kind):
        return arrow.int64()
    if str(kind) == "string_view":  # polars writes texts so; pyarrow names the type since 16
        return arrow.large_string()
    is_cell = types.is_primitive(kind) or types.is_decimal(kind) or types.is_null(kind)
    is_cell = is_cell and not types.is_interval(kind)
    is_text = types.is_string(kind) or types.is_large_string(kind)
    return kind if is_cell or is_text else None


def _write(path: str, text: str, delimiter: str) -> None:
    arrow = _pyarrow()
    unfinished = text + ".part"
    try:
        with _batches(arrow, path) as (schema, batches):
            kinds = [(field.name, _written_as(arrow, field.type)) for field in schema]
            kept = [number for number, (_, kind) in enumerate(kinds) if kind is not None]
            if not kept:
                raise InputError(f"{path}: has no column of numbers, truths, dates or texts")
            written = arrow.schema([kinds[number] for number in kept])
            lone = len(kept) == 1  # its empty cell would be an empty line, which is no row
            if lone:
                written = arrow.schema([(written.names[0], arrow.large_string())])
            options = arrow.csv.WriteOptions(delimiter=delimiter)
            with open(unfinished, "wb") as file:
                with arrow.csv.CSVWriter(file, written, write_options=options) as writer:
                    for batch in batches:
                        columns = [batch.column(number).cast(kinds[number][1]) for number in kept]
                        if lone:
                            columns = [columns[0].cast(arrow.large_string()).fill_null("")]
                        writer.write_batch(arrow.RecordBatch.from_arrays(columns, schema=written))
                file.flush()
                os.fsync(file.fileno())
        os.rename(unfinished, text)
    except (arrow.ArrowException, OSError) as error:
        if getattr(error, "errno", None) is not None:  # of the system; pyarrow's own have none
            raise
        raise InputError(f"{path}: {' '.join(str(error).split())}") from error
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(unfinished)
