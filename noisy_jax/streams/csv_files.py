"""Streams of clean examples from CSV files."""

import csv as csv_reader
import itertools
import math
from collections.abc import Iterator
from pathlib import Path

import jax
import numpy as np

from noisy_jax.base import Stream
from noisy_jax.streams.tables import scaled_table

_MISSING = ("", "na", "nan")


def csv(path: str | Path, target: str) -> Stream:
    """A numeric CSV file with a header line, scaled by `scaled`.

    Args:
        path: the file; UTF-8, separated by commas. Its first line has a name for each column, all
            different; every other cell is a finite number.
        target: name of the target's column; all other columns are features.

    Example:
        >>> import tempfile, numpy as np
        >>> path = f"{tempfile.mkdtemp()}/houses.csv"
        >>> np.savetxt(path, np.eye(3, 2), delimiter=",", header="rooms,price", comments="")
        >>> csv(path, target="price").x.shape
        (3, 1)
    """
    header, table = read_csv(path, target)
    column = header.index(target)
    return scaled_table(np.delete(table, column, axis=1), table[:, column])


def read_csv(
    path: str | Path, target: str, *, missing: bool = False
) -> tuple[list[str], np.ndarray]:
    """The names of the columns and the table `[n, columns]` in float64 of a numeric CSV file.

    Args:
        path: as in `csv`.
        target: name of a column that must be there, beside at least one other.
        missing: whether cells of other columns may be empty, NA or NaN; they become NaN.
    """
    return next(csv_parts(path, target, missing=missing))


def csv_parts(
    path: str | Path, target: str, *, rows: int | None = None, after: int = 0, missing: bool = False
) -> Iterator[tuple[list[str], np.ndarray]]:
    """What `read_csv` returns, in parts: memory grows with a part, not with the file.

    Args:
        path: as in `csv`.
        target: as in `read_csv`.
        rows: of a part; the last one may have fewer. By default all rows are one part.
        after: number of rows that were read before. They are left out, and not parsed.
        missing: as in `read_csv`.
    """
    try:
        with open(path, newline="", encoding="utf-8-sig") as file:
            reader = csv_reader.reader(file)
            header = [name.strip() for name in next(reader, [])]
            if problem := _header_problem(header, target):
                raise ValueError(f"{path} {problem}")
            lines = filter(None, reader)
            found = sum(1 for _ in itertools.islice(lines, after))
            if found < after:
                raise ValueError(f"{path} has {found} rows, but {after} were read before")
            complete = target if missing else None
            while part := [
                _numbers(cells, header, f"{path}, line {reader.line_num}", complete)
                for cells in itertools.islice(lines, rows)
            ]:
                yield header, np.array(part)
                found += len(part)
            if not found:
                raise ValueError(f"{path} has a header but no rows")
    except (UnicodeDecodeError, csv_reader.Error) as error:
        raise ValueError(f"{path} is not a CSV file in UTF-8: {error}") from error


def _header_problem(header: list[str], target: str) -> str:
    """What is wrong with the names of the columns; "" if nothing."""
    if not any(header):
        return "is empty"
    counted = [[str(i + start) for i in range(len(header))] for start in (0, 1)]
    numbers = not any(math.isnan(_number(name)) for name in header)
    if numbers and (header not in counted or target not in header):
        return "has numbers in its first line, which must name the columns"
    for number, name in enumerate(header, start=1):
        if not name or name.startswith("Unnamed:"):
            return (
                f"has no name for column {number}: name it, or remove it if it holds row numbers "
                "(pandas writes none with to_csv(path, index=False))"
            )
        if header.count(name) > 1:
            return f"has more than one column named {name!r}"
    if target not in header:
        return f"has no column named {target!r}; it has {', '.join(header)}"
    return "" if len(header) > 1 else f"has no column beside the target {target!r}"


def _number(cell: str) -> float:
    """The number in a cell, NaN if there is none."""
    try:
        return float(cell)
    except ValueError:
        return math.nan


def _numbers(cells: list[str], header: list[str], place: str, complete: str | None) -> list[float]:
    """The numbers of a line; with a column `complete`, others may have missing cells."""
    if len(cells) != len(header):
        raise ValueError(f"{place}: {len(cells)} cells under {len(header)} column names")
    numbers, kind = [_number(cell) for cell in cells], jax.dtypes.canonicalize_dtype(float)
    largest = float(np.finfo(kind).max)
    for name, cell, number in zip(header, cells, numbers, strict=True):
        if complete not in (None, name) and cell.strip().lower() in _MISSING:
            continue
        if not abs(number) <= largest:
            problem = "is not a finite number; encode text, and fill or drop missing cells first"
            if math.isfinite(number):
                problem = f"overflows {kind}: use a larger unit"
            raise ValueError(f"{place}, column {name!r}: {cell!r} {problem}")
    return numbers
