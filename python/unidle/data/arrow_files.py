"""Converts Parquet and Arrow IPC files to CSV with pyarrow, if installed.

The native library reads only text. Each file is converted once, batch by batch so that it may exceed
memory, into the folder of built tables; the text is reused while the file is unchanged.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
from pathlib import Path
from typing import Any, Iterator, List, NamedTuple, Tuple

from unidle.errors import FileSystemError, InputError, MissingError

SUFFIXES = (".parquet", ".pq", ".arrow", ".feather", ".ipc")
_ENDS = 64 * 1024  # bytes of head and tail that identify a file's contents
_VERSION = 3  # of the text


class Text(NamedTuple):
    """The CSV of a file, and its left-out columns: [{"column": name, "why": its type}]."""

    path: str
    left_out: List[dict]


def is_arrow(path: str) -> bool:
    return path.lower().endswith(SUFFIXES)


def as_text(path: str, folder: str, delimiter: str) -> Text:
    """Returns the file's text in `folder`, created if missing."""
    if os.path.isdir(path):
        raise InputError(f"{path}: is a folder; expected a file (name those that are in it)")
    try:
        name, fingerprint = _names(path, delimiter)
        os.makedirs(folder, exist_ok=True)
        text = os.path.join(folder, f"{name}-{fingerprint}.csv")
        with open(os.path.join(folder, f"{name}.csv.lock"), "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # released when the process ends
            if not (os.path.exists(text) and os.path.exists(_note(text))):
                _write(path, text, delimiter)
                _remove_older(folder, name, text)
            with open(_note(text)) as note:
                return Text(text, json.load(note))
    except OSError as error:
        if os.path.exists(path):
            raise FileSystemError(f"{path}: cannot be turned into text in {folder}: {error}") from error
        raise InputError(f"{path}: does not exist") from error


def _names(path: str, delimiter: str) -> Tuple[str, str]:
    """Returns names for the file's path and for its state: size, time, head and tail, as for tables."""
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


def _note(text: str) -> str:
    """Path of the list of left-out columns, which exists before the text."""
    return text + ".left_out"


def _remove_older(folder: str, name: str, text: str) -> None:
    for other in Path(folder).glob(f"{_escaped(name)}-*.csv*"):
        if str(other) not in (text, _note(text)):
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
    """Returns the schema and an iterator of record batches."""
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
    """Returns the type with an equivalent text. None for lists, structures, bytes, and times with an
    unknown time zone."""
    types = arrow.types
    if types.is_dictionary(kind):
        return _written_as(arrow, kind.value_type)
    if types.is_boolean(kind):
        return arrow.int8()
    if types.is_float16(kind):
        return arrow.float32()
    if types.is_duration(kind):
        return arrow.int64()
    if str(kind) == "string_view":  # polars' texts; pyarrow names the type since version 16
        return arrow.large_string()
    is_cell = types.is_primitive(kind) or types.is_decimal(kind) or types.is_null(kind)
    is_cell = is_cell and not types.is_interval(kind)
    is_text = types.is_string(kind) or types.is_large_string(kind)
    return kind if is_text or (is_cell and _has_text(arrow, kind)) else None


def _has_text(arrow: Any, kind: Any) -> bool:
    """Whether pyarrow can write this type: time zones need the system's database."""
    if not arrow.types.is_timestamp(kind):
        return True
    try:
        arrow.array([0], arrow.int64()).cast(kind).cast(arrow.string())
    except arrow.ArrowException:
        return False
    return True


class _Columns:
    """How each column of a file is written."""

    def __init__(self, arrow: Any, schema: Any, path: str) -> None:
        kinds = [_written_as(arrow, field.type) for field in schema]
        self.left_out = [
            {"column": field.name, "why": str(field.type)}
            for field, kind in zip(schema, kinds)
            if kind is None
        ]
        self._kept = [(number, kind) for number, kind in enumerate(kinds) if kind is not None]
        if not self._kept:
            others = "".join("; {column} is {why}".format(**one) for one in self.left_out)
            raise InputError(f"{path}: has no column of numbers, booleans, dates or texts{others}")
        # The empty cell of a single column would be an empty line, which is not a row.
        self._lone = arrow.large_string() if len(self._kept) == 1 else None
        self.schema = arrow.schema(
            [(schema.names[number], self._lone or kind) for number, kind in self._kept]
        )
        self._arrow = arrow

    def of(self, batch: Any) -> Any:
        """Returns the record batch to write."""
        columns = [batch.column(number).cast(kind) for number, kind in self._kept]
        if self._lone:
            columns = [columns[0].cast(self._lone).fill_null("")]
        return self._arrow.RecordBatch.from_arrays(columns, schema=self.schema)


def _write(path: str, text: str, delimiter: str) -> None:
    arrow = _pyarrow()
    unfinished = text + ".part"
    try:
        with _batches(arrow, path) as (schema, batches):
            columns = _Columns(arrow, schema, path)
            options = arrow.csv.WriteOptions(delimiter=delimiter)
            with open(unfinished, "wb") as file:
                with arrow.csv.CSVWriter(file, columns.schema, write_options=options) as writer:
                    for batch in batches:
                        writer.write_batch(columns.of(batch))
                _sync(file)
        with open(_note(text), "w") as note:
            json.dump(columns.left_out, note)
            _sync(note)
        os.rename(unfinished, text)
    except (arrow.ArrowException, OSError) as error:
        if getattr(error, "errno", None) is not None:  # from the system; pyarrow's own errors have none
            raise
        raise InputError(f"{path}: {' '.join(str(error).split())}") from error
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(unfinished)


def _sync(file: Any) -> None:
    file.flush()
    os.fsync(file.fileno())
