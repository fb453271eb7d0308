"""Weights, clusters and exposures of rows: columns of a table beside its features."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, NamedTuple, TypeVar

import jax
import numpy as np

from noisy_jax.observed.observations.described import TABLES_OUTSIDE_JIT
from noisy_jax.tabular.columns import check_same_rows, is_missing, numeric
from noisy_jax.validation.arrays import check_shape, shape_of
from noisy_jax.validation.keys import is_typed_key
from noisy_jax.validation.messages import given, listed
from noisy_jax.validation.numbers import non_negative, positive
from noisy_jax.validation.values import check_concrete, collected, unmasked

_Table = TypeVar("_Table")

ROLES = ("weights", "clusters", "exposure")


class Beside(NamedTuple):
    """A column beside the features."""

    name: str  # of the column, or "" if an array was given
    values: np.ndarray  # [n]; of clusters whole numbers from 0

    def rows(self, which: np.ndarray) -> Beside:
        """The values of some rows, by their numbers or a mask `[n]`."""
        return self._replace(values=self.values[which])


def beside_of(role: str, name: str, values: Any, rows: int) -> Beside:
    """Returns the checked values `[n]` of a role; `name` is the name of their column, or ""."""
    called = f"{role}, column {given(name)}," if name else role
    check_concrete(called, values, TABLES_OUTSIDE_JIT)
    if role == "clusters":
        return Beside(name, _numbered(called, values, rows))
    if isinstance(values, jax.Array | list | tuple | np.ndarray):
        values = unmasked(values)
    numbers = np.asarray(numeric(called, values, np.float64, missing=True), np.float64)
    check_shape(called, numbers, (rows,), "one number a row")
    if role == "exposure":
        positive(called, numbers, shape=None)
    elif not np.any(non_negative(called, numbers, shape=None)):
        raise ValueError(f"{called} must not all be zero")
    return Beside(name, numbers)


def labels_of_rows(called: str, labels: Any, rows: int) -> np.ndarray:
    """Returns labels of any kind as an array, if there is one for each of so many rows."""
    if is_typed_key(labels):
        raise ValueError(f"{called} must be labels, got a key")
    shape_of(called, labels)
    labels = np.asarray(unmasked(labels))
    if labels.shape != (rows,):
        raise ValueError(f"{called} must be {rows} labels, one a row, got {list(labels.shape)}")
    return labels


def _numbered(called: str, labels: Any, rows: int) -> np.ndarray:
    """Labels of any kind as whole numbers from 0, `[n]`."""
    labels = labels_of_rows(called, labels, rows).tolist()
    for row in [row for row, label in enumerate(labels) if is_missing(label)][:1]:
        missing = f"got {given(labels[row]).replace('nan', 'NaN')} in row {row}"
        raise ValueError(f"{called} must be labels, {missing}: label it, or drop it")
    try:
        distinct = sorted({*labels})
    except TypeError:  # of several types
        distinct = dict.fromkeys(labels)
    places = {label: k for k, label in enumerate(distinct)}
    return np.array([places[label] for label in labels])


def with_roles(table: _Table, roles: Mapping[str, Any], owner: str) -> _Table:
    """Returns the table with weights, clusters or exposures of a fit, in `table.beside`.

    Args:
        table: `Observations`, which may have columns beside the features already.
        roles: by role the argument of the fit: the name of a column, an array `[n]`, or `None`.
        owner: the name of the fit, for messages.
    """
    changed: Any = table
    for role in [role for role in changed.beside if role not in roles]:
        call = f"{role}={changed.beside[role].name!r}"
        raise ValueError(f"{owner} takes no {role}: make the table without {call}")
    for role, given_one in roles.items():
        if (value := collected(given_one)) is None:
            continue
        present = changed.beside.get(role)
        if present is not None and isinstance(value, str) and present.name == value:
            continue
        if present is not None:
            raise ValueError(
                f"the table has {role} already, the column {present.name!r}: leave them out of the "
                "fit"
            )
        if isinstance(value, str):
            changed, values = _without(changed, role, value)
            column = beside_of(role, value, values, len(changed.y))
        else:
            check_concrete(role, value, TABLES_OUTSIDE_JIT)
            if is_typed_key(value):
                raise ValueError(f"{role} must be the name of a column or an array, got a key")
            shape_of(role, value)
            check_same_rows(role, value, "observations", changed.index)
            column = beside_of(role, "", value, len(changed.y))
            _check_no_feature(changed, role, value)
        changed = dataclasses.replace(changed, beside={**changed.beside, role: column})
    return changed


def _check_no_feature(table: Any, role: str, value: Any) -> None:
    """Raises ValueError if an array is a feature of the table as well, in its own precision."""
    values = np.asarray(unmasked(value))
    if values.dtype.kind not in "biuf":
        return
    features = table.copies[:, 0]
    if values.dtype.kind == "f":
        features = np.asarray(features).astype(values.dtype)
    for j, name in enumerate(table.names):
        if np.array_equal(values, features[:, j]):
            raise ValueError(
                f"{role} are the values of the feature {name!r}: name the column, as "
                f"nj.table(…, {role}={name!r}), and it is no feature, unless the option features "
                "names it too"
            )


def _without(table: Any, role: str, name: str) -> tuple[Any, np.ndarray]:
    """A table without an exact feature, or the indicators of its categories, and its values."""
    call = f"nj.table(…, {role}={name!r})"
    levels = [column for column in table.references if column.startswith(f"{name}[")]
    places = [k for k, column in enumerate(table.names) if column == name]
    if levels:
        places = [k for k, column in enumerate(table.names) if column.startswith(f"{name}[")]
    if not places:
        raise ValueError(
            f"the table has no column {given(name)}, only {listed(table.names)}: name it where the "
            f"table is made, as {call}"
        )
    numbers = not levels or role == "clusters"
    if not table.exact(places) or not numbers or table.products is not None:
        raise ValueError(
            f"{name!r} is a feature of this table: name it where the table is made, as {call}"
        )
    values = table.copies[:, 0, places[0]]
    if levels:  # numbers of the categories, 0 for the first, which has no indicator
        values = table.copies[:, 0, places] @ (1.0 + np.arange(len(places)))
    kept = np.delete(np.arange(len(table.names)), places)
    if not len(kept):
        raise ValueError(f"{name!r} is the only feature of the table")
    references = tuple(column for column in table.references if column not in levels)
    return dataclasses.replace(table.columns(kept), references=references), values
