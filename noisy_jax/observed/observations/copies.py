"""Replicates in unequal or incomplete numbers, and several rows of one subject."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from noisy_jax.tabular.columns import is_missing
from noisy_jax.validation.messages import given

_FEW = 10  # rows of different values, up to which two replicates may be equal by chance


class Subjects:
    """Subjects of rows, in their order of appearance.

    Attributes:
        labels: `[m]`, labels of the subjects.
        first: `[m]`, the first row of each subject.
        subject: `[n]`, the number of each row's subject.
        place: `[n]`, the number of the row among the rows of its subject.
    """

    def __init__(self, labels: Any, name: str):
        numbers: dict[Any, int] = {}
        for row, label in enumerate(labels := np.asarray(labels).tolist()):
            if is_missing(label):
                raise ValueError(f"row {row} of {name!r} names no subject: label it, or drop it")
            numbers.setdefault(label, len(numbers))
        self.labels = list(numbers)
        self.subject = np.array([numbers[label] for label in labels])
        order = np.argsort(self.subject, kind="stable")
        starts = np.searchsorted(self.subject[order], np.arange(len(numbers)))
        self.first = order[starts]
        self.place = np.empty(len(labels), int)
        self.place[order] = np.arange(len(labels)) - starts[self.subject[order]]

    def single(self, values: np.ndarray, name: str) -> np.ndarray:
        """The values `[m]` of a column `[n]`; ValueError if they differ within a subject."""
        of_subject = values[self.first][self.subject]
        differ = (values != of_subject) & ~(np.isnan(values) & np.isnan(of_subject))
        for row in np.flatnonzero(differ)[:1]:
            first, label = self.first[self.subject[row]], given(self.labels[self.subject[row]])
            raise ValueError(
                f"column {name!r} differs between rows {first} and {row} of subject {label}: drop "
                "it, name it in replicates if these are noisy copies of one value, or take one a "
                "subject"
            )
        return values[self.first]

    def copies(self, values: np.ndarray) -> np.ndarray:
        """`[m, V]`, the values `[n]` of each subject's rows, NaN behind the last."""
        copies = np.full((len(self.first), self.place.max() + 1), np.nan)
        copies[self.subject, self.place] = values
        return copies


def check_copies(name: str, block: np.ndarray, labels: Any) -> None:
    """Raises ValueError if a row has no copy, or if a copy is another one, or the mean of all."""
    measured = ~np.isnan(block)
    without = np.flatnonzero(~measured.any(axis=1))
    if without.size:
        where = f"row {without[0]}" if labels is None else f"subject {given(labels[without[0]])}"
        raise ValueError(
            f"{name!r} has no value in {without.size} of {len(block)} rows, first in {where}: drop "
            "such rows"
        )
    for first, second in itertools.combinations(range(block.shape[1]), 2):
        left, right = block[measured[:, first] & measured[:, second]][:, [first, second]].T
        if np.array_equal(left, right) and len(np.unique(left)) == len(left) > _FEW:
            raise ValueError(
                f"replicates {first + 1} and {second + 1} of {name!r} are equal in all rows: drop "
                "one of them, or declare the column exact"
            )
    whole = block[measured.all(axis=1)]
    if block.shape[1] < 3 or len(whole) < 3 or not np.ptp(whole, axis=1).any():
        return
    mean = whole.mean(axis=1, keepdims=True)  # of all, and of the others, if one is their mean
    for place in np.flatnonzero(np.isclose(whole, mean, rtol=1e-6, atol=0).all(axis=0))[:1]:
        raise ValueError(
            f"replicate {place + 1} of {name!r} is the mean of the others: drop it, and name the "
            "feature as no column is named"
        )
