"""Arrays, nested lists and data frames as arrays of finite numbers, checked column by column."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import jax
import numpy as np
from jax.core import Tracer

from noisy_jax.tabular.texts import advice, is_number, stray
from noisy_jax.validation.keys import is_typed_key
from noisy_jax.validation.messages import given, listed
from noisy_jax.validation.values import collected, concrete, unmasked
from noisy_jax.warning import warn

ROUNDING = 1e-12
"""A standard deviation below this share of the largest value is the rounding of a constant."""

_MOST_TEXTS = 50  # more are taken for labels
_ALL_DIFFERENT = 10  # in fewer rows, texts may all be different by chance


def numeric(
    name: str,
    table: Any,
    dtype: Any = float,
    *,
    missing: bool = False,
    hint: str = "drop or impute them first",
) -> Any:
    """Returns the table as an array of finite numbers that the data type can hold.

    Args:
        name: name of the argument, for messages.
        table: an array, nested lists, or a data frame, whose columns messages then name. Masked
            numbers of a masked array (`numpy.ma`) are NaN.
        dtype: type that the numbers must fit; by default JAX's default precision.
        missing: whether NaN are allowed.
        hint: advice about NaN, for messages.
    """
    if isinstance(table, Tracer):
        return table
    if is_typed_key(table):
        raise ValueError(f"{name} must be numbers, got a key")
    table = collected(table)
    check_not_categorical(name, table)
    array = _array(name, table)
    if array.dtype.kind == "c":
        raise ValueError(f"{name} must be real, got complex numbers")
    if array.dtype.kind in "mM":
        raise ValueError(
            f"{name} must be numbers, got dates or durations: pass days, or years, since a date"
        )
    if array.dtype.kind not in "biufV" or array.dtype.names:  # V: bfloat16, or records
        array = np.array(array, object)
        for place in np.ndindex(array.shape):
            value = array[place]
            if type(value).__name__ == "NAType":  # pandas' missing value of integers
                array[place] = value = np.nan
            if value is not None and not isinstance(value, (int, float, np.number, np.bool_)):
                if isinstance(value, str):
                    places = (p for p in np.ndindex(array.shape) if not is_number(array[p]))
                    value = array[place := next(places, place)]
                where = _place(name, table, place)
                if isinstance(value, str | bytes):
                    what = advice(value) if isinstance(value, str) else "encode text first"
                    raise ValueError(f"{where} must be a number, got {given(value)}: {what}")
                raise ValueError(
                    f"{where} must be a number, got {given(value)}: convert it to float"
                )
        array = array.astype(float)
    kind = jax.dtypes.canonicalize_dtype(float) if dtype is float else np.dtype(dtype)
    most = np.finfo(kind).max
    if array.dtype.kind == "f" and array.size and -most <= array.min() and array.max() <= most:
        return array  # there is no NaN
    fine = np.abs(array) <= most
    bad = np.argwhere(~(fine | np.isnan(array) if missing else fine))
    if len(bad):
        value, where = array[tuple(bad[0])], _place(name, table, bad[0])
        if np.isfinite(value):
            problem = f"{value:g}, which overflows {kind}: use a larger unit"
        else:
            hint = hint if np.isnan(value) else "drop or impute them first"
            problem = f"{value} ({len(bad)} in all): {hint}"
        raise ValueError(f"{name} must be finite, but {where} is {problem}")
    return array


def _array(name, table) -> np.ndarray:
    table = unmasked(table)
    try:
        array = np.asarray(table)
        return np.asarray(table, object) if array.dtype.kind in "US" else array
    except ValueError as error:
        lengths = [np.size(row) for row in table]
        other = next((i for i, length in enumerate(lengths) if length != lengths[0]), 0)
        raise ValueError(
            f"{name} must have rows of equal length, but row 0 has {lengths[0]} values and "
            f"row {other} has {lengths[other]}"
        ) from error


def _place(name, table, place) -> str:
    columns = getattr(table, "columns", None)
    if columns is None or len(place) < 2:
        return f"{name}[{', '.join(map(str, place))}]"
    return f"row {place[0]} of column {given(str(columns[place[1]]))}"


def levels_of(name: str, values: Any) -> tuple[list[str], np.ndarray] | None:
    """Returns the categories that occur, and the number `[n]` of each row's; `None` for numbers.

    Categories are in the order that the frame keeps of them (`order_of`), and texts in their own.

    Raises:
        ValueError: a cell is missing; there is one category, or a text in each row; or a text
            seems to be a number, as in a column of numbers that one cell makes text.
    """
    order = order_of(values)
    if order is not None:
        texts = np.asarray(values, object)
    else:
        texts = np.asarray(unmasked(values))
        texts = np.asarray(values, object) if texts.dtype.kind == "U" else texts
        if texts.dtype.kind == "O" and not any(isinstance(one, str) for one in texts.ravel()):
            return None
        if texts.dtype.kind != "O" or texts.ndim != 1:
            return None
    for row, one in enumerate(texts):
        if is_missing(one):
            raise ValueError(f"{name} has no category in row {row}: name one, or drop such rows")
    if order is None and (row := stray(texts.tolist())) is not None:
        cell = str(texts[row])
        raise ValueError(
            f"{name} is text because of {given(cell)} in row {row} (counted from 0): "
            f"{advice(cell)}; or if these are categories, make the column a pandas Categorical"
        )
    found = dict.fromkeys(texts)
    levels = sorted(found) if order is None else [one for one in order if one in found]
    if len(levels) < 2:
        raise ValueError(f"{name} has one category only, {given(levels[0])}: drop it")
    if order is None and len(levels) > _MOST_TEXTS:
        raise ValueError(
            f"{name} has {len(levels)} different texts, such as {given(levels[0])}: drop it, or "
            "make its cells numbers or a pandas Categorical"
        )
    if order is None and len(levels) == len(texts) >= _ALL_DIFFERENT:
        raise ValueError(f"{name} has another text in each row, which labels the rows: drop it")
    place = {one: k for k, one in enumerate(levels)}
    return [str(one) for one in levels], np.array([place[one] for one in texts])


def order_of(values: Any) -> list[Any] | None:
    """Returns all categories of a categorical column, in the order that its frame keeps.

    The column is of pandas, of polars (an Enum, or a Categorical, which polars sorts), or a
    dictionary of pyarrow, also wrapped by narwhals. For any other column the result is `None`.
    """
    values = values.to_native() if hasattr(values, "to_native") else values
    kind: Any = getattr(values, "dtype", getattr(values, "type", None))
    if hasattr(kind, "value_type") and hasattr(kind, "index_type"):  # pyarrow
        whole = values.unify_dictionaries() if hasattr(values, "chunks") else values
        parts = whole.chunks if hasattr(whole, "chunks") else [whole]
        return parts[0].dictionary.to_pylist() if parts else []
    if str(kind) == "category":  # pandas
        return list(getattr(values, "cat", values).categories)
    if type(kind).__name__ == "Enum":  # polars
        return list(kind.categories)
    return (
        values.unique().drop_nulls().sort().to_list()
        if str(kind).startswith("Categorical")
        else None
    )


def is_missing(label: Any) -> bool:
    """Returns True if a label is `None`, NaN, or the missing value of pandas."""
    return label is None or type(label).__name__ == "NAType" or label != label


def check_not_categorical(name: str, table: Any) -> None:
    """Raises ValueError if a pandas argument is categorical, or a column of it.

    NumPy would take categories that are whole numbers, such as codes of groups, for amounts.
    """
    kinds = getattr(table, "dtypes", getattr(table, "dtype", None))
    columns = getattr(table, "columns", None)
    if columns is None and str(kinds) == "category":
        raise ValueError(
            f"{name} is categorical, and codes are not amounts: pass {name}.astype(float) if its "
            f"categories are amounts or 0 and 1, or ({name} == one) * 1.0 for one of them"
        )
    if columns is None or kinds is None:
        return
    for column in [c for c, kind in zip(columns, kinds, strict=True) if str(kind) == "category"]:
        call = f"pd.get_dummies({name}, columns=[{column!r}], drop_first=True, dtype=float)"
        raise ValueError(
            f"column {given(str(column))} of {name} is categorical, and codes are not amounts: "
            f"make indicators with {call}, or if its categories are amounts, pass "
            f"{name}.astype({{{column!r}: float}})"
        )


def index_of(value: Any) -> Any:
    """Returns the labels of the rows of a pandas object, or `None`."""
    index = getattr(value, "index", None)
    return index if hasattr(index, "equals") else None  # a list has a method `index`


def check_same_rows(name: str, value: Any, other: str, index: Any) -> None:
    """Raises ValueError if a pandas argument has other labels of rows than `other`, the `index`."""
    labels = index_of(value)
    if index is not None and labels is not None and not labels.equals(index):
        raise ValueError(
            f"the indices of {other} and {name} are not the same; align them with "
            f"{name}.loc[{other}.index], or pass {name}.to_numpy() if their rows correspond by "
            "position"
        )


def common_index(frames: Sequence[Any], y: Any, beside: Iterable[tuple[str, Any]]) -> Any:
    """Returns the labels of the rows that all pandas arguments have, `None` without pandas.

    `frames` are x or its replicates, and `beside` names and values of further arguments.
    """
    columns, index = list(getattr(frames[0], "columns", ())), index_of(frames[0])
    for k, frame in enumerate(frames[1:], start=1):
        if list(getattr(frame, "columns", ())) != columns:
            raise ValueError(f"replicates must have the same columns, but x[{k}] has others")
        check_same_rows(f"x[{k}]", frame, "x[0]", index)
    name = "x" if len(frames) == 1 else "x[0]"
    name, index = (name, index) if index is not None else ("y", index_of(y))
    for other, value in [("y", y), *beside]:
        check_same_rows(other, value, name, index)
    return index


def in_order(name: str, labels: Iterable[Any], names: Sequence[str]) -> list[int]:
    """Returns positions of the names among a pandas argument's labels; 0, 1, … are in order."""
    labels = list(labels)
    texts = [str(label) for label in labels]
    places, counts = {label: k for k, label in enumerate(texts)}, Counter(texts)
    missing = [one for one in names if counts[one] != 1]
    if not missing:
        return [places[one] for one in names]
    if labels == list(range(len(names))):
        return list(range(len(names)))
    if not counts[missing[0]]:
        raise ValueError(f"column {missing[0]!r} is missing in {name}, which has {listed(texts)}")
    raise ValueError(f"{name} must have one label {missing[0]!r}, got the labels {listed(texts)}")


def warn_of_lost_digits(name: str, array: Any, columns: Any = None) -> None:
    """Warns if the default precision cannot tell the values of a column `[T]` or `[T, d]` apart."""
    kind = jax.dtypes.canonicalize_dtype(float)
    if concrete(array) is None or array.dtype == kind:
        return
    exact = array.astype(np.float64).reshape(len(array), -1)
    error = np.abs(exact - array.astype(kind).reshape(exact.shape)).max(axis=0)
    spread, largest = exact.std(axis=0), np.abs(exact).max(axis=0)
    lost = np.flatnonzero((error > 0.01 * spread) & (spread > ROUNDING * largest))
    if lost.size:
        names = [
            f"column {columns[j]!r}" if columns is not None else f"{name}[:, {j}]" for j in lost
        ]
        which = ", ".join(names) if array.ndim == 2 else name
        warn(
            f"{kind} rounds the values of {which} by more than 1% of their standard deviation: "
            "subtract their mean in float64 first, as streams.scaled does",
        )
