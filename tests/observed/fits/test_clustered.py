"""Coefficients that are determined by one cluster are told from those that are not."""

import dataclasses
import warnings

import numpy as np
import pytest

import noisy_jax as nj
from noisy_jax.observed.fits.assumptions import AssumptionWarning
from noisy_jax.observed.fits.clustered import ONE_CLUSTER
from noisy_jax.observed.observations import from_arrays

CLUSTERS, ROW = np.repeat(np.arange(40), 10), np.arange(400)
THIRD, OTHER = CLUSTERS == 3, ROW % 2
INSIDE = 1.0 * (THIRD & (ROW % 10 < 6))


def table(rng, *columns):
    """A noisy column and exact ones of `CLUSTERS`, whose mean of y differs."""
    x = rng.normal(size=400)
    y = x + 0.7 * rng.normal(size=40)[CLUSTERS] + 0.5 * rng.normal(size=400)
    seen = np.column_stack([x + 0.5 * rng.normal(size=400), *columns])
    return from_arrays(seen, y, noise=[0.25, *len(columns) * [0.0]])


def indicators(labels):
    return [1.0 * (labels == one) for one in np.unique(labels)[1:]]


def told(table, weights=None, clusters=CLUSTERS):
    """The columns that are named."""
    found = ONE_CLUSTER.doubts(table, weights, clusters)
    return found[0].text.split(" are each")[0].removeprefix("the coefficients of ") if found else ""


def test_errors_of_a_category_in_one_cluster_are_those_of_a_typical_one(rng):
    """With a warning; the scores of the cluster, which add up to 0, say nothing of them."""
    found = []
    for _ in range(40):
        with pytest.warns(AssumptionWarning, match=r"the coefficients of 'x2' are each determined"):
            fit = nj.fit(table(rng, INSIDE), clusters=CLUSTERS)
        found.append([fit.values[2], fit.std_error[2]])
    spread, stated = np.std(found, axis=0)[0], np.median(found, axis=0)[1]
    assert 0.5 < stated / spread < 1.5


def test_all_columns_that_one_cluster_determines_are_named(rng):
    own = np.where(THIRD, 2 + OTHER, OTHER)  # two categories of one cluster
    assert told(table(rng, *indicators(own))) == "'x3', 'x4'"
    rare = np.where(ROW % 100 == 5, 3, 1 + OTHER)
    assert told(table(rng, *indicators(np.where(THIRD, 0, rare)))) == "'x2', 'x3', 'x4'"
    values = np.where(THIRD, rng.normal(size=400), 5e9)  # of many values, far from 0
    assert told(table(rng, OTHER, values)) == "'x3'"
    single = 1.0 * (ROW == 39)  # a row of the same cluster
    assert told(table(rng, INSIDE, single)) == "'x2'"
    weights = np.where(THIRD, 1.0, 1e-9)
    assert told(table(rng, OTHER), weights) == "'x1', 'x2'"


def test_products_are_read_as_the_fit_reads_them(rng):
    first = 1.0 * ((CLUSTERS >= 3) & (CLUSTERS < 11))
    second = 1.0 * (THIRD | (CLUSTERS > 30))
    plain = table(rng, first, second)
    frame = dict(zip("abc", plain.x[:, 0].T, strict=True)) | {"y": plain.y}
    options = {"target": "y", "noise": {"a": 0.25}}
    assert told(nj.table(frame, **options)) == ""
    assert told(nj.table(frame, products=[("b", "c")], **options)) == "'b * c'"


def test_nothing_is_said_without_reason(rng):
    one, two = 1.0 * (ROW == 3), 1.0 * np.isin(ROW, [3, 399])
    ten = np.where(ROW == 33, 10.0, ROW == 34)  # the sandwich is right for a row of high leverage
    for columns in ([one], [two], [ten], [1.0 * (CLUSTERS < 2)], indicators(CLUSTERS % 3)):
        assert told(table(rng, *columns)) == ""
    assert told(table(rng, CLUSTERS)) == told(table(rng, INSIDE), clusters=0 * CLUSTERS) == ""
    inside = table(rng, INSIDE)
    with warnings.catch_warnings():
        warnings.simplefilter("error", AssumptionWarning)
        nj.fit(inside)  # rows are independent
    y = np.where(THIRD, OTHER, inside.y > 0)
    with pytest.warns(AssumptionWarning, match="determined by the rows of one cluster"):
        nj.fit(dataclasses.replace(inside, y=1.0 * y), nj.methods.Logistic(clusters=CLUSTERS))
