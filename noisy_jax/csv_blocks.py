"""Numbers from large CSV files by pyarrow, as long as it finds nothing but numbers."""

import importlib
import os
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

LEAST_BYTES = 2**20
"""Smaller files are read before pyarrow is imported."""
_BYTES = 2**22  # of a block, which all cores read
_MISSING = ("", "NA", "na", "NaN", "nan", "NAN", "Nan")


class NotNumbersError(Exception):
    """What comes is for a reader that knows what to do with it; or there is no pyarrow."""


def number_parts(
    path: str | Path,
    width: int,
    places: Sequence[int],
    checked: Callable[[np.ndarray], np.ndarray],
    *,
    header: int,
    rows: int | None,
    after: int,
    sep: str,
    decimal: str,
    missing: Collection[str] | None,
) -> Iterator[np.ndarray]:
    """Parts `[rows, columns]` of the numbers below the header; the last one may have fewer rows.

    Args:
        path: of the file.
        width: number of all columns.
        places: numbers of the columns that are read.
        checked: of a part; it may raise NotNumbersError.
        header: number of its lines.
        rows: of a part; by default all rows are one.
        after: number of rows that are left out.
        sep: as in `csv_files.Layout`, as `decimal`.
        decimal: see `sep`.
        missing: texts that stand for a missing value beside the usual ones, and become NaN; `None`
            where no value may be missing.

    Raises:
        NotNumbersError: a cell is no number, a line has too many cells, there are fewer rows or
            none, or the file is small; parts of the rows before were given.
    """
    try:
        if os.path.getsize(path) < LEAST_BYTES:
            raise NotNumbersError
        pyarrow, reader = map(importlib.import_module, ("pyarrow", "pyarrow.csv"))
    except (ImportError, OSError) as error:
        raise NotNumbersError from error
    names = [str(place) for place in range(width)]
    used = [names[place] for place in places]
    convert = reader.ConvertOptions(
        column_types=dict.fromkeys(used, pyarrow.float64()),
        include_columns=used,
        decimal_point=decimal,
        null_values=[] if missing is None else [*_MISSING, *missing],
    )
    waiting: list[list[np.ndarray]] = []  # columns of batches
    count = read = 0  # rows in `waiting`, and all rows

    def table_of(block: bytes):
        reading = reader.ReadOptions(column_names=names, block_size=_BYTES // 8)
        parsing = reader.ParseOptions(delimiter=sep, newlines_in_values=b'"' in block)
        return reader.read_csv(pyarrow.BufferReader(block), reading, parsing, convert)

    def part(rows: int) -> np.ndarray:
        """The next rows, of which columns are consecutive in memory."""
        whole = np.empty((len(used), count))
        for column, parts in zip(whole, zip(*waiting, strict=True), strict=True):
            np.concatenate(parts, out=column)
        waiting[:] = [[*whole[:, rows:]]]
        return checked(whole[:, :rows].T)

    try:
        for table in _one_ahead(map(table_of, _blocks(path, header))):
            for batch in table.to_batches():
                columns = [one.to_numpy(zero_copy_only=False) for one in batch.columns]
                for one, numbers in zip(batch.columns, columns, strict=True):
                    if missing is not None and np.isnan(numbers).sum() > one.null_count:
                        raise NotNumbersError  # texts such as -nan
                waiting.append([one[after:] for one in columns])
                count += max(0, len(batch) - after)
                after = max(0, after - len(batch))
                read += len(batch)
            while rows is not None and count >= rows:
                yield part(rows)
                count -= rows
    except pyarrow.ArrowException as error:
        raise NotNumbersError from error
    if after or not read:
        raise NotNumbersError
    if count:
        yield part(count)


def _one_ahead(items: Iterator[Any]) -> Iterator[Any]:
    """The items; while one is used, a thread makes the next."""
    with ThreadPoolExecutor(1) as thread:
        coming = thread.submit(next, items, None)
        while (item := coming.result()) is not None:
            coming = thread.submit(next, items, None)
            yield item


def _blocks(path: str | Path, header: int) -> Iterator[bytes]:
    """Whole lines below the header."""
    with open(path, "rb") as file:
        above = b"".join(file.readline() for _ in range(header))
        if b"\r" in above.replace(b"\r\n", b""):  # the end of a line, for other readers
            raise NotNumbersError
        while block := file.read(_BYTES) + file.readline():
            if b'"' in block and block.count(b'"') % 2:  # a cell of several lines may go on
                raise NotNumbersError
            yield block
