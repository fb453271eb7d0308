"""Numbers from CSV files, whole or in parts."""

import csv
import itertools
import math
import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import jax
import numpy as np

from noisy_jax.csv_blocks import NotNumbersError, number_parts
from noisy_jax.validation import choice, given, listed

_MISSING = {"", "na", "nan"}
_DECIMAL_COMMA = re.compile(r"[-+]?\d+,\d+")


class Layout(NamedTuple):
    """Which columns of a CSV file are read, and how its cells are written.

    Attributes:
        features: names of the features, in their order; all columns of the file by default.
        drop: names of columns that are not read.
        sep: one character between cells.
        decimal: "." or ",", the decimal point; cells with commas between commas are quoted.
        missing: texts and numbers that stand for a missing value, as cells that are empty, NA or
            NaN then do too; by default all of these are an error.
    """

    features: Sequence[str] | None = None
    drop: Sequence[str] = ()
    sep: str = ","
    decimal: str = "."
    missing: Sequence[str] | None = None

    def checked(self) -> "Layout":
        """The layout with one name as a list of it; ValueError if it contradicts itself."""
        features, missing = (
            [one] if isinstance(one, str | int | float) else one
            for one in (self.features, self.missing)
        )
        drop = [self.drop] if isinstance(self.drop, str) else self.drop
        if features is not None and drop:
            raise ValueError("name the columns by features or by drop, not by both")
        sep = "\t" if self.sep == "\\t" else self.sep  # as a shell hands it on
        if len(sep) != 1 or sep in '"\r\n':
            raise ValueError(f"sep must be one character, got {given(sep)}")
        choice("decimal", self.decimal, (".", ","))
        missing = None if missing is None else [str(one).strip().lower() for one in missing]
        return Layout(features, drop, sep, self.decimal, missing)


def csv_parts(
    path: str | Path,
    target: str,
    *,
    rows: int | None = None,
    after: int = 0,
    missing: bool = False,
    layout: Layout | None = None,
    others: Sequence[str] = (),
    others_if_there: Sequence[str] = (),
    labels: dict[str, dict[str, int]] | None = None,
) -> Iterator[tuple[list[str], np.ndarray]]:
    """The names of the columns and the table `[n, columns]` in float64 of a numeric CSV file.

    It comes in parts: memory grows with a part, not with the file.

    Args:
        path: as in `csv`.
        target: name of a column that must be there, beside at least one other.
        rows: of a part; the last one may have fewer. By default all rows are one part.
        after: number of rows that were read before. They are left out, and not parsed.
        missing: whether cells of other columns may be empty, NA or NaN; they become NaN.
        layout: which columns are read, and how. If it says what is missing, such cells become NaN.
        others: columns that are read beside the features that the layout names.
        others_if_there: further such columns, if the file has them.
        labels: columns of texts, if they are read, with the numbers 0, 1, … that stand for them;
            they are added.
    """
    form = (layout or Layout()).checked()
    if not isinstance(path, str | os.PathLike):
        raise ValueError(f"path must be a CSV file's path, got {given(path)}")
    try:
        with open(path, newline="", encoding="utf-8-sig") as file:
            reader = csv.reader(file, delimiter=form.sep)
            header = [name.strip() for name in next(reader, [])]
            try:
                found = [name for name in others_if_there if name in header]
                used = _used(header, target, form, [*others, *found])
            except ValueError as error:
                raise ValueError(f"{path} {error}") from None
            place = {name: k for k, name in enumerate(header)}
            places = None if used == header else [place[name] for name in used]
            complete, hints = target if missing else None, layout is not None
            numbers = _Numbers(used, form, complete, hints=hints, labels=labels or {})
            if not labels:
                try:
                    for part in number_parts(
                        path,
                        len(header),
                        places or range(len(header)),
                        numbers.checked,
                        header=reader.line_num,
                        rows=rows,
                        after=after,
                        sep=form.sep,
                        decimal=form.decimal,
                        missing=(form.missing or ()) if numbers.gaps else None,
                    ):
                        yield used, part
                        after += len(part)
                    return
                except NotNumbersError:  # the rest is read cell by cell
                    pass
            lines = filter(None, reader)
            found = sum(1 for _ in itertools.islice(lines, after))
            if found < after:
                raise ValueError(f"{path} has {found} rows, but {after} were read before")
            while part := [
                numbers.of(_some(cells, header, places, where), where)
                for cells in itertools.islice(lines, rows)
                for where in (f"{path}, line {reader.line_num}",)
            ]:
                yield used, np.array(part)
                found += len(part)
            if not found:
                raise ValueError(f"{path} has a header but no rows")
    except (UnicodeDecodeError, csv.Error) as error:
        raise ValueError(f"{path} is not a CSV file in UTF-8: {error}") from error


def _used(header: list[str], target: str, form: Layout, others: Sequence[str]) -> list[str]:
    """Names of the columns that are read; ValueError says what is wrong with the header."""
    if not any(header):
        raise ValueError("is empty")
    counted = [[str(i + start) for i in range(len(header))] for start in (0, 1)]
    numbers = not any(math.isnan(_number(name)) for name in header)
    if numbers and (header not in counted or target not in header):
        raise ValueError("has numbers in its first line, which must name the columns")
    known, repeated = {*header}, {name for name, count in Counter(header).items() if count > 1}
    wanted = dict.fromkeys([target, *others, *(form.features or ())])
    dropped = {*form.drop}
    for name in (*wanted, *form.drop):
        if name not in known:
            hint = _other_separator(header, form)
            raise ValueError(f"has no column named {given(name)}; it has {listed(header)}{hint}")
        if name in dropped and name in wanted:
            raise ValueError(f"has a column {given(name)} that is needed: do not drop it")
    if form.features is not None and len({target, *form.features}) <= len(form.features):
        raise ValueError(f"has the target {given(target)}: features must be other, different names")
    chosen = {*wanted} if form.features is not None else known - dropped
    for number, name in enumerate(header, start=1):
        if name not in chosen:
            continue
        if not name or name.startswith("Unnamed:"):
            raise ValueError(
                f"has no name for column {number}: name it, or drop it if it holds row numbers "
                "(pandas writes none with to_csv(path, index=False))"
            )
        if "\0" in name:
            raise ValueError(f"has a NUL in the name of column {number}: is it text in UTF-8?")
        if name in repeated:
            raise ValueError(f"has more than one column named {given(name)}")
    if len(chosen) < 2:
        raise ValueError(f"has no column beside the target {given(target)}")
    return [name for name in header if name in chosen]


def _other_separator(header: list[str], form: Layout) -> str:
    for one in ";\t|,":
        if one != form.sep and any(one in name for name in header):
            return f": are its cells separated by {one!r} (the option sep)?"
    return ""


def _some(cells: list[str], header: list[str], places: list[int] | None, where: str) -> list[str]:
    """The cells that are read."""
    if len(cells) != len(header):
        raise ValueError(f"{where}: {len(cells)} cells under {len(header)} column names")
    return cells if places is None else [cells[place] for place in places]


def _number(cell: str, decimal: str = ".") -> float:
    """The number in a cell, NaN if there is none."""
    cell = cell.strip()
    if decimal != ".":
        cell = cell.replace(".", "_").replace(decimal, ".")
    if "_" in cell or not cell.isascii():  # Python reads 1_0 as 10, and digits of other scripts
        return math.nan
    try:
        return float(cell)
    except ValueError:
        return math.nan


class _Numbers:
    """The numbers in the cells of a line.

    Args:
        names: of the columns.
        form: how cells are written.
        complete: a column that must have no missing cells, if others may.
        hints: whether messages name the options of `Layout`.
        labels: as in `csv_parts`.
    """

    def __init__(
        self,
        names: list[str],
        form: Layout,
        complete: str | None,
        *,
        hints: bool,
        labels: dict[str, dict[str, int]],
    ):
        self.names, self.decimal, self.complete, self.hints = names, form.decimal, complete, hints
        there = [name for name in labels if name in names]
        self.labels = [(names.index(name), labels[name]) for name in there]
        self.anywhere, codes = form.missing is not None, form.missing or ()
        self.kind = jax.dtypes.canonicalize_dtype(float)
        self.largest = float(np.finfo(self.kind).max)
        self.texts = _MISSING.union(codes)
        self.codes = {_number(code, form.decimal) for code in codes} - {math.nan}
        self.gaps = self.anywhere or complete is not None

    def of(self, cells: list[str], where: str) -> list[float]:
        """The numbers, NaN where they may be missing; ValueError names the place of any other."""
        texts = [(k, cells[k].strip(), known) for k, known in self.labels]
        for k, _, _ in texts:
            cells[k] = "0"
        numbers = [_number(cell, self.decimal) for cell in cells]
        for k, number in enumerate(numbers):
            if abs(number) <= self.largest and number not in self.codes:
                continue
            name, cell = self.names[k], cells[k].strip()
            may_be_missing = self.anywhere or self.complete not in (None, name)
            if may_be_missing and (cell.lower() in self.texts or number in self.codes):
                numbers[k] = math.nan
                continue
            problem = f"is not a finite number; {self._advice(cell)}"
            if math.isfinite(number):
                problem = f"overflows {self.kind}: use a larger unit"
            raise ValueError(f"{where}, column {given(name)}: {given(cell)} {problem}")
        for k, text, known in texts:
            missing = text.lower() in self.texts
            numbers[k] = math.nan if missing else known.setdefault(text, len(known))
        return numbers

    def checked(self, block: np.ndarray) -> np.ndarray:
        """The numbers of several lines, as `of`; NotNumbersError if one needs a closer look."""
        if self.codes:
            block[np.isin(block, [*self.codes])] = math.nan
        if -self.largest <= block.min(initial=0) and block.max(initial=0) <= self.largest:
            return block  # there is no NaN
        allowed = np.abs(block) <= self.largest
        if self.gaps:
            may_be = [self.anywhere or name != self.complete for name in self.names]
            allowed |= np.isnan(block) & np.array(may_be)[None]
        if not allowed.all():
            raise NotNumbersError
        return block

    def _advice(self, cell: str) -> str:
        if self.hints and cell.lower() in _MISSING:
            return "fill it, or leave such rows out (the option missing)"
        if self.hints and self.decimal == "." and _DECIMAL_COMMA.fullmatch(cell):
            return "are these decimal commas (the option decimal)?"
        if self.hints:
            return (
                "write one, or if it marks a missing value, give an option such as missing=['.']; "
                "else leave the column out (the option drop), or read the file with pandas: of "
                "texts in a data frame nj.table makes indicators"
            )
        return "encode text, and fill or drop missing cells first"
