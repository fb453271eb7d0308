"""Replicates in unequal or incomplete numbers, and rows of which several are of one subject."""

import itertools
from typing import Any

import numpy as np

from noisy_jax.columns import is_missing
from noisy_jax.validation import given

_FEW = 10  # rows of different values, up to which two replicates may be equal by chance


def rows_of_subjects(labels: Any, name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Which rows are of which subject, in the order in which the subjects appear.

    Returns:
        `[m]`, the first row of each subject; `[n]`, the number of each row's subject, and of the
        row among those of its subject.
    """
    numbers: dict[Any, int] = {}
    for row, label in enumerate(labels := np.asarray(labels).tolist()):
        if is_missing(label):
            raise ValueError(f"row {row} of {name!r} names no subject: label it, or drop it")
        numbers.setdefault(label, len(numbers))
    subject = np.array([numbers[label] for label in labels])
    order = np.argsort(subject, kind="stable")
    starts = np.searchsorted(subject[order], np.arange(len(numbers)))
    place = np.empty(len(labels), int)
    place[order] = np.arange(len(labels)) - starts[subject[order]]
    return order[starts], subject, place


def of_first_rows(values: np.ndarray, name: str, labels: Any, rows) -> np.ndarray:
    """The values `[m]` of a column `[n]` that is the same in all rows of a subject.

    `labels` are of the subjects, and `rows` what `rows_of_subjects` returns.
    """
    first, subject, _ = rows
    both = values, values[first][subject]
    differ = (both[0] != both[1]) & ~np.logical_and(*map(np.isnan, both))
    for row in np.flatnonzero(differ)[:1]:
        other, label = first[subject[row]], given(np.asarray(labels).tolist()[row])
        raise ValueError(
            f"column {name!r} differs between rows {other} and {row} of subject {label}: drop it, "
            "name it in replicates if these are noisy copies of one value, or take one a subject"
        )
    return values[first]


def copies_of_subjects(values: np.ndarray, rows) -> np.ndarray:
    """`[m, V]`, the values `[n]` of each subject's rows, NaN behind the last."""
    first, subject, place = rows
    copies = np.full((len(first), place.max() + 1), np.nan)
    copies[subject, place] = values
    return copies


def check_copies(name: str, block: np.ndarray, labels: Any) -> None:
    """Raises ValueError if a row has no copy, or if a copy is another one, or the mean of all."""
    seen = ~np.isnan(block)
    without = np.flatnonzero(~seen.any(axis=1))
    if without.size:
        one = f"row {without[0]}" if labels is None else f"subject {given(labels[without[0]])}"
        raise ValueError(
            f"{name!r} has no value in {without.size} of {len(block)} rows, first in {one}: drop "
            "such rows"
        )
    for first, second in itertools.combinations(range(block.shape[1]), 2):
        one, other = block[seen[:, first] & seen[:, second]][:, [first, second]].T
        if np.array_equal(one, other) and len(np.unique(one)) == len(one) > _FEW:
            raise ValueError(
                f"replicates {first + 1} and {second + 1} of {name!r} are equal in all rows: drop "
                "one of them, or declare the column exact"
            )
    whole = block[seen.all(axis=1)]
    if block.shape[1] < 3 or len(whole) < 3 or not np.ptp(whole, axis=1).any():
        return
    mean = whole.mean(axis=1, keepdims=True)  # of all, and of the others, if one is their mean
    for place in np.flatnonzero(np.isclose(whole, mean, rtol=1e-6, atol=0).all(axis=0))[:1]:
        raise ValueError(
            f"replicate {place + 1} of {name!r} is the mean of the others: drop it, and name the "
            "feature as no column is named"
        )
