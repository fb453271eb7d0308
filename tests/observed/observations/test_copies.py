"""Rows of which several are of one subject, and what replicates may not be."""

from typing import Any

import numpy as np
import pytest

import noisy_jax as nj
from noisy_jax.observed.observations.copies import (
    copies_of_subjects,
    of_first_rows,
    rows_of_subjects,
)
from tests.errors import raises


def test_rows_of_subjects():
    labels = ["b", "a", "b", "c", "a", "b"]
    rows = first, subject, place = rows_of_subjects(labels, "id")
    assert first.tolist() == [0, 1, 3]
    assert subject.tolist() == [0, 1, 0, 2, 1, 0]
    assert place.tolist() == [0, 0, 1, 0, 1, 2]
    copies = copies_of_subjects(np.array([1.0, 2.0, 3.0, 4.0, 5.0, np.nan]), rows)
    np.testing.assert_array_equal(copies, [[1, 3, np.nan], [2, 5, np.nan], [4, np.nan, np.nan]])
    values = np.array([7.0, 8.0, 7.0, 9.0, 8.0, 7.0])
    assert of_first_rows(values, "age", labels, rows).tolist() == [7, 8, 9]
    values[4] = 1.0
    message = "column 'age' differs between rows 1 and 4 of subject 'a'"
    raises(message, of_first_rows, values, "age", labels, rows)
    raises("row 1 of 'id' names no subject", rows_of_subjects, [1.0, np.nan], "id")


@pytest.mark.parametrize("place", [0, 1, 2, 3])
def test_a_replicate_that_is_the_mean_of_the_others(place):
    copies = np.insert(np.random.default_rng(0).normal(size=(20, 3)), place, 0.0, axis=1)
    copies[:, place] = copies.sum(axis=1) / 3
    frame = {f"a{v}": copies[:, v] for v in range(4)} | {"y": copies[:, 0]}
    message, names = f"replicate {place + 1} of 'a' is the mean of the others", [*frame][:-1]
    raises(message, nj.table, frame, target="y", replicates={"a": names})
    frame["a3"] = frame["a1"]
    raises("2 and 4 of 'a' are equal", nj.table, frame, target="y", replicates={"a": names})


def test_means_of_gaussian_copies_are_gaussian():
    """Beside a feature with one measurement, whose error is Gaussian as well."""
    x = np.random.default_rng(1).normal(size=(200, 3))
    frame = {"a1": x[:, 0], "a2": x[:, 1], "b": x[:, 2], "y": x[:, 0]}
    noise = {"a": nj.noise.Gaussian(0.3), "b": nj.noise.Gaussian(0.2)}
    table = nj.table(frame, target="y", noise=noise, replicates={"a": ["a1", "a2"]})
    assert isinstance(table.noise, nj.noise.Gaussian)
    np.testing.assert_allclose(table.noise.cov, [0.15, 0.2])
    frame["a2"][0] = np.nan
    few: Any = nj.table(frame, target="y", noise=noise, replicates={"a": ["a1", "a2"]}).noise
    np.testing.assert_allclose(few.distribution.cov[:2], [[0.3, 0.2], [0.15, 0.2]])
