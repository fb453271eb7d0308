"""Tables of results: rows that are printed with aligned columns and saved as CSV."""

from __future__ import annotations

import csv
import dataclasses
import html
import io
import math
import os
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from noisy_jax.reports.intervals import half_width
from noisy_jax.reports.saving import replace_file

_NUMBER = re.compile(r"[-+−±\d.,e%\[\] ]*|nan|-?inf|none")


@dataclasses.dataclass(frozen=True)
class Table:
    """Rows to print, read and save.

    `str(table)`, and HTML in notebooks, show some columns of the rows; `save` and `to_frame` have
    all of them.

    Attributes:
        rows: mappings from a column's name to its value; all rows have the same names.
        columns: the columns to print: pairs of a heading and a cell. A cell is a format string of a
            row's values, such as "{regret:.1f}", or a function from a row to a string. Columns of
            numbers are aligned to the right, texts to the left; empty columns are left out.
        title: a line above the printed table.
        shown: the rows that are printed; all of `rows` by default.
        below: lines below the printed table.

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
    below: str = ""

    def __str__(self) -> str:
        """Returns the title, the headings and the rows, and the lines below them."""
        aligned = []
        for numbers, texts in self._columns():
            width = max(len(text) for text in texts)
            aligned.append([f"{text:{'>' if numbers else '<'}{width}}" for text in texts])
        lines = ["  ".join(line).rstrip() for line in zip(*aligned, strict=True)]
        if lines and not lines[0]:
            del lines[0]  # no column has a heading
        lines = [self.title, "", *lines] if self.title else lines
        return "\n".join([*lines, self.below] if self.below else lines)

    def _repr_html_(self) -> str:
        """Returns the printed table in HTML; all texts are escaped."""
        columns = self._columns()
        lines = []
        for number, row in enumerate(zip(*(texts for _, texts in columns), strict=True)):
            tag, cells = "td" if number else "th", []
            for (numbers, _), text in zip(columns, row, strict=True):
                style = f'style="text-align: {"right" if numbers else "left"}"'
                cells.append(f"<{tag} {style}>{html.escape(text)}</{tag}>")
            lines.append(f"<tr>{''.join(cells)}</tr>")
        title = f"<p>{html.escape(self.title)}</p>" if self.title else ""
        below = f"<pre>{html.escape(self.below)}</pre>" if self.below else ""
        body = f"<thead>{''.join(lines[:1])}</thead><tbody>{''.join(lines[1:])}</tbody>"
        return f"{title}<table>{body}</table>{below}"

    def to_frame(self) -> Any:
        """Returns a pandas DataFrame of all columns of all rows."""
        try:
            import pandas
        except ImportError:
            raise ImportError(
                "to_frame needs pandas (pip install pandas); the same values are in table.rows, "
                "and table.save(path) writes them as CSV"
            ) from None
        return pandas.DataFrame(list(self.rows))

    def _columns(self) -> list[tuple[bool, list[str]]]:
        """Returns columns that are not empty: a flag for numbers, the heading and the cells."""
        rows, columns = self.rows if self.shown is None else self.shown, []
        for heading, cell in self.columns:
            write = cell.format_map if isinstance(cell, str) else cell
            cells = [write(row) for row in rows]
            if any((heading, *cells)):
                numbers = all(_NUMBER.fullmatch(text) for text in cells)
                columns.append((numbers, [heading, *cells]))
        return columns

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes all columns of all rows as CSV.

        Text that begins with = + - or @, which a spreadsheet would take for a formula, is written
        with an apostrophe before it, in names of columns too. A table without rows becomes a line
        of its headings. The file is replaced as a whole.
        """
        text = io.StringIO(newline="")
        writer = csv.writer(text)
        names = [*self.rows[0]] if self.rows else [heading for heading, _ in self.columns]
        for row in (names, *(row.values() for row in self.rows)):
            writer.writerow([_harmless(value) for value in row])
        replace_file(path, text.getvalue().encode())


class Summarized:
    """A result with a table, which is printed, and shown in notebooks."""

    def summary(self) -> Table:
        """Returns the table."""
        raise NotImplementedError

    def to_frame(self) -> Any:
        """Returns the rows of the summary as a pandas DataFrame."""
        return self.summary().to_frame()

    def _shown(self) -> Table:
        """Returns the printed text."""
        return self.summary()

    def __str__(self) -> str:
        """Returns the table, and the lines below it."""
        return str(self._shown())

    def _repr_html_(self) -> str:
        """Returns the table in HTML, for notebooks."""
        return self._shown()._repr_html_()


def plus_minus(column: str, spec: str) -> Callable[[Mapping[str, Any]], str]:
    """Returns a cell for `Table`: half the width of a 95% interval, "none" with one seed.

    The column holds standard errors of means over seeds, whose number is in `num_seeds`.
    """

    def cell(row):
        half = float(half_width(row[column], row["num_seeds"] - 1))
        return "none" if math.isnan(half) else format(half, spec)

    return cell


def _harmless(value):
    formula = isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t", "\r"))
    return f"'{value}" if formula else value
