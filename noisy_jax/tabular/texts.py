"""Texts where numbers are expected: the cell that makes a column text, and advice about it."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

_COMMA = r"[-+]?\d+,\d+"
_THOUSANDS = r"[-+]?\d{1,3}(,\d{3})+(\.\d*)?"
_DOTTED = r"[-+]?\d{1,3}(\.\d{3})+(,\d*)?"
_DATE = r"\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}([ T].*)?|\d{1,2}:\d{2}(:\d{2}(\.\d*)?)?"
_OTHER = r"[-+−~$€£]*\s*\d[\d\s.,'’_]*(e[-+−]?\d+)?\s*%?|0x[0-9a-f]+"
_SEEMS_NUMBER = re.compile(f"{_DATE}|{_OTHER}", re.IGNORECASE)


def is_number(cell: Any) -> bool:
    """Returns True for numbers, and for texts that Python, pandas and R read as the same number."""
    if not isinstance(cell, str):
        return True
    if "_" in cell or not cell.isascii():  # Python reads 1_0 as 10, and digits of other scripts
        return False
    try:
        return math.isfinite(float(cell))
    except ValueError:
        return False


def stray(cells: Sequence[Any]) -> int | None:
    """Returns the row of the cell that makes a column of numbers text; `None` for categories.

    A column with a number, or with a cell that seems to be one in another writing, such as `1,5`,
    `5%` or a date, is not taken for categories.

    Args:
        cells: texts and numbers; none may be missing.
    """
    first: dict[Any, int] = {}
    for row, cell in enumerate(cells):
        first.setdefault(cell, row)
    texts = [cell for cell in first if not is_number(cell)]
    if len(texts) < len(first):  # some are numbers, or all of them
        return first[texts[0]] if texts else 0
    return next((first[cell] for cell in texts if _SEEMS_NUMBER.fullmatch(cell.strip())), None)


def advice(cell: str) -> str:
    """Returns advice about a text where a number is expected."""
    text = cell.strip()

    def like(pattern):
        return re.fullmatch(pattern, text, re.IGNORECASE)

    if is_number(cell):
        return "convert texts of numbers by astype(float)"
    if like(_THOUSANDS):
        return "if commas separate thousands, read the file with thousands=',', else decimal=','"
    if like(_COMMA):
        return "if it is a decimal comma, read the file with decimal=','"
    if like(_DOTTED):
        return "if points separate thousands, read the file with thousands='.', decimal=','"
    if like(_DATE):
        return "pass days, or years, since a date"
    if _SEEMS_NUMBER.fullmatch(text):
        return "write it as a plain number"
    return (
        "encode text first, or if it marks a missing value, name it by missing=[…] of nj.csv "
        "(na_values of pandas.read_csv)"
    )
