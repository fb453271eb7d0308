"""Tables from CSV files, which pandas reads."""

from __future__ import annotations

import dataclasses
import importlib
import io
import numbers
import os
import re
import warnings
from collections import Counter
from collections.abc import Collection, Sequence, Set
from typing import Any

import numpy as np

from noisy_jax.observed.observations.frames import of_frame
from noisy_jax.observed.observations.roles import Columns, Roles
from noisy_jax.observed.observations.tables import Observations
from noisy_jax.tabular.texts import is_number
from noisy_jax.validation.messages import given, listed
from noisy_jax.validation.values import collected
from noisy_jax.warning import warn


def csv(
    path: Any,
    *,
    target: str,
    missing: Sequence[Any] | str | float | None = None,
    **options: Any,
) -> Observations:
    r"""Reads a CSV file with a header into a table of noisy rows, for `nj.fit` and `nj.select`.

    It is `nj.table(pandas.read_csv(path), target=…)`, with checks of the file. It needs pandas,
    which the extras `noisy_jax[demo]` and `noisy_jax[frames]` install.

    Args:
        path: path of the file, a URL or an open file, as pandas takes them.
        target: name of the column of y. Spaces around the names of columns in the file are
            stripped: write this and all other names without them.
        missing: if given, rows that lack a value are left out with a warning; by default (`None`) a
            missing value is an error. It lists texts and numbers that stand for a missing value,
            such as ["-999", "-"], beside the ones that pandas knows (empty cells, NA, NaN, NULL,
            #N/A, …); an empty list adds none. Replicates may be missing in either case, but not all
            replicates of a row.
        **options: all further arguments of `nj.table`, which describes them: `noise` (what is known
            of the measurement errors) or `replicates`, one of which is needed, `subject`,
            `features`, `drop` (a column without a name is "Unnamed: 0", …), `cross_cov`,
            `products`, `weights`, `clusters` and `exposure`. Also arguments of `pandas.read_csv`,
            such as `sep=";"`, `decimal=","`, `thousands="."`, `encoding="latin-1"`,
            `compression="zip"` or `dtype={"group": "category"}`, but not `usecols`, `chunksize` and
            `iterator`.

    Returns:
        `Observations`, whose `index` holds the numbers of the file's rows, from 0, unless
        `index_col` names a column.

    Raises:
        ValueError: a column is missing or not complete, neither `noise` nor `replicates` is given,
            the file is no table of cells, or its columns have no names or the same name twice.
        ImportError: pandas is not installed.

    Example:
        >>> import io, noisy_jax as nj
        >>> file = io.StringIO("size;age;price\n50,5;9;80\n70,25;4;120\n64;7;95\n")
        >>> table = nj.csv(file, target="price", noise={"size": 0.1}, sep=";", decimal=",")
        >>> print(table.names, table.x[:, 0].tolist())
        ('size', 'age') [[50.5, 9.0], [70.25, 4.0], [64.0, 7.0]]
    """
    names = {field.name for field in dataclasses.fields(Columns)}
    reading = {name: value for name, value in options.items() if name not in names}
    said = Columns(target, **{name: options[name] for name in names & {*options}})
    where = _name(path)
    if "std_error" in reading:
        raise TypeError("std_error is now noise={'x1': nj.sd(column='x1_sd')}")
    if missing is not None:
        if "na_values" in reading:
            raise ValueError("name what is missing by missing or by na_values, not by both")
        codes = [*missing] if isinstance(missing, Set) else collected(missing)
        codes = np.ravel(np.asarray(codes, object)).tolist()
        for one in codes:
            if not isinstance(one, str | numbers.Real):
                raise ValueError(f"each of missing must be a text or a number, got {given(one)}")
        reading["na_values"] = [str(one) for one in codes]
    frame = read_frame(path, said.target, **reading)
    roles = said.roles(list(frame.columns), where)
    check_named(where, roles.names)
    further = [one for one in (said.subject, *said.beside.values()) if one is not None]
    frame = _complete(frame, roles, further, where, left_out=missing is not None)
    return of_frame(said, frame, where, roles)


def read_frame(path: Any, target: str, **reading: Any) -> Any:
    """Returns the pandas DataFrame of a CSV file that names its columns, one of them the target.

    Raises:
        ImportError: there is no pandas.
        ValueError: the file is no table of cells, or its first line does not name each column once.
    """
    try:
        pandas = importlib.import_module("pandas")
    except ImportError:
        raise ImportError("CSV files are read by pandas: pip install pandas") from None
    if not isinstance(path, str | os.PathLike) and not hasattr(path, "read"):
        raise ValueError(f"path must be a CSV file's path, got {given(path)}")
    content = None if isinstance(path, str | os.PathLike) else path.read()
    where = _name(path)

    def read(**options):
        source = path
        if content is not None:  # the first line may be read again
            source = io.StringIO(content) if isinstance(content, str) else io.BytesIO(content)
        return pandas.read_csv(source, **options)

    if not reading.keys().isdisjoint({"chunksize", "iterator"}):
        raise ValueError(
            "for parts of a file write nj.observations.chunks(pandas.read_csv(path, chunksize=…))"
        )
    if "usecols" in reading:  # with it, pandas does not see that lines are too long
        raise ValueError("leave out usecols: the options features and drop choose the columns")
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("error", "Length of header", pandas.errors.ParserWarning)
            frame = read(**{"index_col": False} | reading)  # or of a short header names of rows
    except pandas.errors.EmptyDataError:
        raise ValueError(f"{where} is empty") from None
    except pandas.errors.ParserWarning:
        raise ValueError(
            f"{where} has more cells in a line than names in its first line: name all columns, or "
            "if the first one has names of rows, give index_col=0; numbers with decimal commas "
            "between commas must be quoted"
        ) from None
    except ValueError as error:  # pandas' ParserError is one
        text = " ".join(str(error).split())
        if isinstance(error, UnicodeError):
            text += ": name its encoding, as encoding='latin-1' or encoding='utf-16'"
        raise ValueError(f"{where} is no table that pandas.read_csv reads: {text}") from error
    frame.columns = names = [str(one).strip() for one in frame.columns]
    twice = [one for one, count in Counter(names).items() if count > 1]
    numbered = {one.rpartition(".")[0] for one in names if re.search(r"\.\d+$", one)}
    if numbered & {*names} and reading.keys().isdisjoint({"header", "names"}):
        more = {"header": None, "nrows": 1, "dtype": str, "index_col": False}  # pandas renames them
        first = [one.strip() for one in read(**reading | more, keep_default_na=False).iloc[0]]
        twice = [one for one, count in Counter(first).items() if count > 1 and one]
    if twice:
        raise ValueError(f"{where} has more than one column named {given(twice[0])}")
    counted = [[str(k + start) for k in range(len(names))] for start in (0, 1)]
    if all(map(is_number, names)) and names not in counted and target not in names:
        raise ValueError(
            f"{where} has numbers in its first line, which must name the columns, or give names=[…]"
        )
    if target not in names:
        others = [one for one in ";\t|,: " if any(one in name for name in names)]
        hint = f": are its cells separated by {others[0]!r} (the option sep)?" if others else ""
        raise ValueError(
            f"{where} has no column named {given(target)}; it has {listed(names)}{hint}"
        )
    if not len(frame):
        raise ValueError(f"{where} has a header but no rows")
    return frame


def check_named(where: str, names: Collection[str]) -> None:
    """Raises ValueError if one of these columns has no name in the file."""
    for name in names:
        if name.startswith("Unnamed: "):
            raise ValueError(
                f"{where} has no name for its column {name!r}: name it, or leave it out, "
                f"drop=[{name!r}], if it holds row numbers (to_csv(path, index=False) writes none)"
            )
        if "\0" in name:
            raise ValueError(f"{where} has a NUL in the name {given(name)}: name its encoding")


def _name(path: Any) -> str:
    """Returns the name of a file in messages."""
    return os.fspath(path) if isinstance(path, str | os.PathLike) else "the file"


def _complete(
    frame: Any, roles: Roles, further: Sequence[str], where: str, *, left_out: bool
) -> Any:
    """Returns the rows with all values; ValueError if incomplete rows are not to be left out.

    Some replicates of a row may be missing. `further` columns are not among the roles.
    """
    wide = {name: columns for name, columns in roles.copies.items() if len(columns) > 1}
    copies = {column for columns in roles.copies.values() for column in columns}
    needed = [name for name in (*roles.used, *further) if name not in copies]
    lacking = {name: frame[name].isna() for name in needed}
    lacking |= {name: frame[columns].isna().all(axis=1) for name, columns in wide.items()}
    lacking = {name: rows.to_numpy() for name, rows in lacking.items() if rows.any()}
    if not lacking:
        return frame
    gone, names = np.any([*lacking.values()], axis=0), listed([*lacking])
    if not left_out:
        row = int(np.flatnonzero(gone)[0])
        raise ValueError(
            f"{where} lacks values of {names} in {gone.sum():,} of {len(gone):,} rows, first in "
            f"row {row} (counted from 0): fill them, or leave such rows out by missing=[]"
        )
    if gone.all():
        raise ValueError(f"{where}: in each row a value is missing, of {names}")
    warn(
        f"{where}: {gone.sum():,} of {len(gone):,} rows are left out, as they have missing "
        f"values, of {names}",
    )
    return frame[~gone]
