"""Coefficients that rest on one cluster are told from those that do not."""

import warnings

import numpy as np
import pytest

import noisy_jax as nj
from noisy_jax.observed.fits.assumptions import AssumptionWarning
from noisy_jax.observed.fits.clustered import told_by_one_cluster
from noisy_jax.observed.observations import from_arrays

CLUSTERS = np.repeat(np.arange(40), 10)


def table(rng, *columns, effect=0.7):
    """A noisy column and exact ones of `CLUSTERS`, which differ in the mean of y by `effect`."""
    x = rng.normal(size=400)
    y = x + effect * rng.normal(size=40)[CLUSTERS] + 0.5 * rng.normal(size=400)
    seen = np.column_stack([x + 0.5 * rng.normal(size=400), *columns])
    return from_arrays(seen, y, noise=[0.25, *len(columns) * [0.0]])


def indicators(labels):
    return [1.0 * (labels == one) for one in np.unique(labels)[1:]]


def test_errors_of_a_category_in_one_cluster_are_far_too_small(rng):
    """What the warning is about: the estimate spreads by .9, and the standard error is .1."""
    found = []
    for _ in range(40):
        inside = 1.0 * ((CLUSTERS == 3) & (rng.random(400) < 0.6))
        with pytest.warns(AssumptionWarning, match=r"one cluster tell the coefficients of 'x2'"):
            fit = nj.fit(table(rng, inside), clusters=CLUSTERS)
        found.append([fit.coefficients[1], fit.std_error[1]])
    spread, stated = np.std(found, axis=0)[0], np.median(found, axis=0)[1]
    assert spread > 4 * stated


def test_all_columns_that_one_cluster_tells_are_named(rng):
    other = rng.integers(0, 2, size=400)
    own = np.where(CLUSTERS == 3, 2 + other, other)  # two categories of one cluster
    (doubt,) = told_by_one_cluster(table(rng, *indicators(own)), CLUSTERS)
    assert "coefficients of 'x3', 'x4':" in doubt.text
    own = np.where(CLUSTERS == 3, 0, 1 + other)  # the reference is of one cluster
    (doubt,) = told_by_one_cluster(table(rng, *indicators(own)), CLUSTERS)
    assert "coefficients of 'x2', 'x3':" in doubt.text
    values = np.where(CLUSTERS == 3, rng.normal(size=400), 5.0)  # of many values, far from 0
    (doubt,) = told_by_one_cluster(table(rng, other, 1e3 * values), CLUSTERS)
    assert "coefficients of 'x3':" in doubt.text


def test_nothing_is_said_without_reason(rng):
    one, two = 1.0 * (np.arange(400) == 3), 1.0 * np.isin(np.arange(400), [3, 399])
    for columns in ([one], [two], [1.0 * (CLUSTERS < 2)], indicators(CLUSTERS % 3), [CLUSTERS]):
        assert not told_by_one_cluster(table(rng, *columns), CLUSTERS)
    inside = table(rng, 1.0 * (CLUSTERS == 3))
    with warnings.catch_warnings():
        warnings.simplefilter("error", AssumptionWarning)
        nj.fit(inside)  # rows are independent
    binary = from_arrays(inside.x, 1.0 * (inside.y > 0), noise=[0.25, 0.0])
    with (
        pytest.warns(AssumptionWarning, match="only the rows of one cluster"),
        pytest.warns(UserWarning, match="no root without 1 of the 32 groups"),
    ):
        nj.fit(binary, nj.methods.Logistic(clusters=CLUSTERS))
