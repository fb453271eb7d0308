"""Fits from roots of equations: the jackknife, which refits without each group of rows."""

import functools
from typing import Any

import numpy as np
import pytest

import noisy_jax as nj
from noisy_jax.observed.fits.groups import jackknifed, labels_of
from noisy_jax.observed.observations import from_arrays
from tests.errors import raises
from tests.observed.fits.curves import START, drawn, growth
from tests.observed.rows import agree, regression

METHODS = {
    "linear": nj.methods.Linear,
    "logistic": nj.methods.Logistic,
    "poisson": nj.methods.Poisson,
    "calibration": functools.partial(nj.methods.RegressionCalibration, "logistic"),
    "curve": functools.partial(nj.methods.Model, growth, START),
}
ERRORS = "jackknife", "sandwich"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "kind"),
    [
        ("linear", "clusters"),
        ("logistic", "replicates"),
        ("poisson", "clusters"),
        ("calibration", "known"),
        ("curve", "replicates"),  # nothing is drawn: rows do not depend on their places
    ],
)
def test_the_jackknife_leaves_out_each_group_of_rows(rng, model, kind):
    """By fits, as a user calls them; with replicates also in the pooled covariance of the noise."""
    kinds, make = {"calibration": "logistic"}, METHODS[model]
    if model == "curve":
        seen, y = drawn(rng, 160, copies=2)
    else:
        x, y = regression(rng, 800, kinds.get(model, model), np.array([0.8, -0.5]), np.zeros(2))
        seen = x[:, None] + 0.4 * rng.normal(size=(800, 2 if kind == "replicates" else 1, 2))
    options: dict[str, Any] = {}
    if kind == "clusters":
        clusters, weights = rng.integers(0, 60, len(y)), rng.uniform(0.5, 2, len(y))
        options = {"clusters": clusters, "weights": weights}
    noise = None if kind == "replicates" else 0.16
    table = from_arrays(seen, y, noise=noise)
    fit, other = (nj.fit(table, make(errors=one, **options)) for one in ERRORS)
    labels, left = labels_of(table.x, table.y, options.get("clusters")), []
    for group in range(labels.max() + 1):
        kept = labels != group
        some = from_arrays(seen[kept], y[kept], noise=noise)
        left.append(nj.fit(some, make(**({"weights": weights[kept]} if options else {}))))
    for one, others in ((fit, left), (fit.uncorrected, [other.uncorrected for other in left])):
        spread, freedom = jackknifed(np.array([other.values for other in others]))
        tolerance = 1e-4 if model == "curve" else 1e-5
        np.testing.assert_allclose(one.covariance, spread, rtol=tolerance, atol=1e-9)
        np.testing.assert_array_equal(one.degrees_of_freedom, freedom)
    agree(fit, other, "values")
    np.testing.assert_allclose(fit.std_error, other.std_error, rtol=0.5)
    assert np.abs(fit.std_error / other.std_error - 1).max() > 1e-3


def test_a_jackknife_without_a_solution_is_told(rng):
    """One row alone keeps the column from predicting the labels perfectly."""
    x = rng.normal(size=(64, 1))
    y = (x[:, 0] > 0) * 1.0
    y[np.argmax(x[:, 0])] = 0.0
    table = from_arrays(x, y, noise=0.0)
    assert np.isfinite(nj.fit(table, nj.methods.Logistic()).values).all()
    raises("use errors='sandwich'", nj.fit, table, nj.methods.Logistic(errors="jackknife"))
