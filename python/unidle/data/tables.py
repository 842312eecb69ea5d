"""Tables in files: CSV, and Parquet and Arrow IPC, which are converted to CSV first."""

from __future__ import annotations

import numbers
import os
import warnings
from typing import Any, List, Mapping, Optional, Sequence, Tuple, Union

from unidle.data import arrow_files
from unidle.data import options as check
from unidle.data.opening import PathLike, Paths, opened, paths_of
from unidle.data.source import Source


def table(
    paths: Paths,
    features: Optional[Sequence[str]] = None,
    targets: Sequence[str] = (),
    categorical: Sequence[str] = (),
    *,
    joins: Union[None, Mapping[str, Paths], Sequence[Tuple[str, Paths]]] = None,
    validation: float = 0.0,
    part: str = "all",
    split_column: Optional[str] = None,
    split_values: Sequence[str] = (),
    split_seed: int = 0,
    standardize: bool = False,
    fill: Union[None, str, float] = None,
    missing: Union[str, float, Sequence[Union[str, float]]] = (),
    decimal: str = ".",
    delimiter: Optional[str] = None,
    cache: Optional[PathLike] = None,
    threads: Optional[int] = None,
) -> Source:
    """Rows of CSV files: (float32 [features], float32 [targets]), or only the features without targets.

    `paths` is a file, a list of files, a folder of *.csv, or NAME.csv, which stands for NAME_part1.csv,
    NAME_part2.csv and so on. All have the same columns, named by the first line of the first file. By
    default, `features` are all columns of numbers without another role. `facts["left_out"]` names the others,
    and `facts["left_out_why"]` says what each holds. A warning names columns of numbers with a few other
    cells ("?", decimal commas), and the option that reads them. A column without a name is called by its
    position, as in pandas ("Unnamed: 2"), and is a feature only when named. A column of empty cells is a
    feature only with `fill`.

    `categorical` columns hold any text. Each value becomes the index among the distinct texts, from 0 in the
    order of first occurrence. Those that are neither feature nor target follow the features. All other
    columns hold numbers; empty cells and pandas' words for them (NA, nan, null ...) are missing values.
    `fill` replaces them: NaN by default, "mean" (of the training rows), or a number. `missing` lists more
    cells that mean a missing value in columns of numbers, such as ["?", "-"], and numbers by value: [-999].
    `decimal` is "," for numbers such as 1,5.

    Parquet and Arrow IPC files (.parquet, .pq, .arrow, .feather, .ipc) are accepted if pyarrow is installed:
    they are converted once, batch by batch, to CSV in `cache`, which is reused while they are unchanged.
    Booleans become 0 and 1, dates and times texts, durations whole numbers of their unit. Columns without a
    CSV form are left out: lists, structures, bytes, times with an unknown time zone.

    `joins` are side tables: {"user_id": "users.csv"}, or a list of pairs if two tables share a key. Each row
    is joined with the row of users.csv that has the same text in column user_id; its columns are used like
    the table's own, in all options. Unmatched rows get empty cells; a duplicate key in a side table is an
    error, as is using a name that two tables have. Keys are not features unless named. Side tables are held
    in memory while the files are parsed.

    `validation` is the share of validation rows, selected by the hash of each row's text, so that the
    selection is stable; with `split_column`, by the hash of that column's cell, so that equal cells stay
    together, or by `split_values` of that column. `part` is "all", "train" or "validation". `standardize`
    subtracts the mean from each numeric feature and divides it by its standard deviation, both of the
    training rows.

    The files are parsed once, by `threads` threads (default: all CPUs), into a file in `cache` (default:
    "tables" in unidle's home), which is reused until a file or the selection of columns changes. It is
    mapped, so that a table may exceed memory.

    `facts` has "features", "targets" (their names in order), "columns" (for each: name, type "integer",
    "float" or "text", missing cells, mean and deviation, or the categories by index), "left_out",
    "left_out_why", "doubtful" (of those left out), "joins" (for each: key, its number of rows, and how many
    rows are unmatched), "table" (the built file) and "built" (whether this call parsed the files).

    Raises InputError with "file:line" for a wrong number of columns, a cell that is not a number, an unclosed
    quote, and a duplicate key.
    """
    fills = fill is not None and fill != "mean"
    files, sides = paths_of("table", "paths", paths), _joins(joins)
    options = {
        "paths": files,
        "features": check.several("table", "features", features),
        "targets": check.several("table", "targets", targets),
        "categorical": check.several("table", "categorical", categorical),
        "joins": sides,
        "texts": _texts([*files, *(path for side in sides for path in side["paths"])], cache, delimiter),
        "validation": validation,
        "part": part,
        "split_column": split_column,
        "split_values": check.several("table", "split_values", split_values),
        "split_seed": split_seed,
        "standardize": standardize,
        "fill": "nan" if fill is None else "value" if fills else fill,
        "fill_value": fill if fills else None,
        "missing": _cells(missing),
        "decimal": decimal,
        "delimiter": delimiter,
        "cache": None if cache is None else check.path("table", cache, "cache"),
        "threads": None if threads is None else check.whole("table", "threads", threads, 1, 4096),
    }
    source = opened("table", options)
    facts = source.facts
    for name in facts["doubtful"]:
        warnings.warn(
            f"unidle.data.table: the column {name} of {os.path.basename(files[0])} is no feature: "
            f"{facts['left_out_why'][name]} (name the features with features=[...] to silence this)",
            stacklevel=2,
        )
    return source


def _cells(missing: Any) -> List[str]:
    """Accepts one or several texts or numbers; returns texts."""
    listed = [missing] if isinstance(missing, (str, numbers.Real)) else missing
    cells = []
    for one in check.several("table", "missing", listed) or ():
        if isinstance(one, bool) or not isinstance(one, (str, numbers.Real)):
            raise check.refuse("table", "missing", "texts and numbers", one)
        cells.append(one if isinstance(one, str) else repr(float(one)))
    return cells


def _texts(files: Sequence[str], cache: Any, delimiter: Any) -> list:
    """Converts the files that are not text; returns the CSV of each."""
    arrow = [path for path in dict.fromkeys(files) if arrow_files.is_arrow(path)]
    if not arrow:
        return []
    home = os.environ.get("UNIDLE_HOME") or ".unidle"
    folder = os.path.join(home, "tables") if cache is None else check.path("table", cache, "cache")
    parted = delimiter or ","
    if not isinstance(parted, str) or len(parted.encode()) != 1 or parted in '"\r\n':
        raise check.refuse("table", "delimiter", "one byte that is no quote and ends no line", delimiter)
    texts = [arrow_files.as_text(path, folder, parted) for path in arrow]
    return [{"file": path, "text": text.path, "left_out": text.left_out} for path, text in zip(arrow, texts)]


def _joins(joins: Any) -> list:
    """Returns the key of each side table and its files."""
    pairs = joins.items() if isinstance(joins, Mapping) else check.several("table", "joins", joins)
    taken = []
    for pair in pairs or ():
        if not isinstance(pair, (tuple, list)) or len(pair) != 2 or not isinstance(pair[0], str):
            raise check.refuse("table", "joins", "the name of a key and its files", pair)
        taken.append({"key": pair[0], "paths": paths_of("table", "joins", pair[1])})
    return taken
