"""Tables of results: rows that are printed with aligned columns and saved as CSV."""

import csv
import dataclasses
import io
import math
import os
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from noisy_jax.intervals import half_width
from noisy_jax.saving import replace_file

_NUMBER = re.compile(r"[-+−±\d.,e%\[\] ]*|nan|-?inf|none")


@dataclasses.dataclass(frozen=True)
class Table:
    """Rows to print, read and save.

    `str(table)` shows some columns of the rows; `save` writes all of them.

    Attributes:
        rows: mappings from a column's name to its value; all rows have the same names.
        columns: what is printed: pairs of a heading and a cell. A cell is a format string of a
            row's values, such as "{regret:.1f}", or a function from a row to a string. Columns of
            numbers are aligned to the right, others to the left; empty columns are left out.
        title: a line above the printed table.
        shown: the rows that are printed; all of `rows` by default.

    Example:
        >>> rows = [{"learner": "a", "regret": 2.5}, {"learner": "b", "regret": 12.0}]
        >>> print(Table(rows, [("name", "{learner}"), ("regret", "{regret:.1f}")]))
        name  regret
        a        2.5
        b       12.0
    """

    rows: Sequence[Mapping[str, Any]]
    columns: Sequence[tuple[str, str | Callable[[Mapping[str, Any]], str]]]
    title: str = ""
    shown: Sequence[Mapping[str, Any]] | None = None

    def __str__(self) -> str:
        """The title, the headings and the rows."""
        shown = self.rows if self.shown is None else self.shown
        aligned = []
        for heading, cell in self.columns:
            write = cell.format_map if isinstance(cell, str) else cell
            cells = [write(row) for row in shown]
            if not any((heading, *cells)):
                continue
            width = max(len(text) for text in (heading, *cells))
            numbers = all(_NUMBER.fullmatch(text) for text in cells)
            aligned.append(
                [f"{text:{'>' if numbers else '<'}{width}}" for text in (heading, *cells)]
            )
        lines = ["  ".join(line).rstrip() for line in zip(*aligned, strict=True)]
        if not lines[0]:
            del lines[0]  # no column has a heading
        return "\n".join([self.title, "", *lines] if self.title else lines)

    def save(self, path: str | os.PathLike) -> None:
        """Writes all columns of all rows as CSV.

        Text that begins with = + - or @, which a spreadsheet would take for a formula, is written
        with an apostrophe before it, in names of columns too. The file is replaced as a whole.
        """
        text = io.StringIO(newline="")
        writer = csv.writer(text)
        for row in ([*self.rows[0]], *(row.values() for row in self.rows)):
            writer.writerow([_harmless(value) for value in row])
        replace_file(path, text.getvalue().encode())


def plus_minus(column: str, spec: str) -> Callable[[Mapping[str, Any]], str]:
    """A cell for `Table`: half the width of a 95% interval, "none" with one seed.

    Args:
        column: of standard errors of means over seeds, whose number is in the column `num_seeds`.
        spec: how the number is printed, such as ".1f".
    """

    def cell(row):
        half = float(half_width(row[column], row["num_seeds"] - 1))
        return "none" if math.isnan(half) else format(half, spec)

    return cell


def _harmless(value):
    formula = isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t", "\r"))
    return f"'{value}" if formula else value
