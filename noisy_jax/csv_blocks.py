"""Numbers from large CSV files by pyarrow, as long as it finds nothing but numbers."""

import importlib
import os
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path

import numpy as np

LEAST_BYTES = 2**20
"""Smaller files are read before pyarrow is imported."""
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
        checked: of a block of rows; it may raise NotNumbersError.
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
    waiting: list[np.ndarray] = []
    count = read = 0  # rows in `waiting`, and all rows
    try:
        with reader.open_csv(
            path,
            reader.ReadOptions(column_names=names, skip_rows=header),
            reader.ParseOptions(delimiter=sep),
            convert,
        ) as batches:
            for batch in batches:
                columns = [one.to_numpy(zero_copy_only=False) for one in batch.columns]
                for one, numbers in zip(batch.columns, columns, strict=True):
                    if np.isnan(numbers).sum() > one.null_count:  # texts such as -nan
                        raise NotNumbersError
                block = np.column_stack(columns)[after:]
                read += len(batch)
                after = max(0, after - len(batch))
                waiting.append(checked(block))
                count += len(block)
                while rows is not None and count >= rows:
                    whole = np.concatenate(waiting)
                    yield whole[:rows]
                    waiting, count = [whole[rows:]], count - rows
    except pyarrow.ArrowException as error:
        raise NotNumbersError from error
    if after or not read:
        raise NotNumbersError
    if count:
        yield np.concatenate(waiting)
