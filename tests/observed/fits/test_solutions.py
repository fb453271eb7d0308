"""Fits from roots of equations: the jackknife, which refits without each group of rows."""

import functools

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
}


def check_jackknife(x, y, make, noise=None, clusters=None, **tolerance):
    """Compares variances with those of fits, as a user calls them, without each group of rows."""
    known = {} if noise is None else {"noise": noise}
    table = from_arrays(x, y, **known)
    options = {} if clusters is None else {"clusters": clusters}
    fit = nj.fit(table, make(errors="jackknife", **options))
    labels = labels_of(table.x, table.y, clusters)
    left = [
        nj.fit(from_arrays(x[labels != group], y[labels != group], **known), make())
        for group in range(labels.max() + 1)
    ]
    for one, others in ((fit, left), (fit.uncorrected, [other.uncorrected for other in left])):
        spread, freedom = jackknifed(np.array([other.values for other in others]))
        np.testing.assert_allclose(one.covariance, spread, **tolerance)
        np.testing.assert_array_equal(one.degrees_of_freedom, freedom)
    return fit, nj.fit(table, make(**options))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "kind"),
    [
        ("linear", "clusters"),
        ("logistic", "replicates"),
        ("poisson", "clusters"),
        ("calibration", "known"),
    ],
)
def test_the_jackknife_leaves_out_each_group_of_rows(rng, model, kind):
    """With replicates also in the pooled covariance of the noise."""
    kinds = {"calibration": "logistic"}
    x, y = regression(rng, 800, kinds.get(model, model), np.array([0.8, -0.5]), np.zeros(2))
    copies = x[:, None] + 0.4 * rng.normal(size=(800, 2, 2))
    clusters = rng.integers(0, 60, 800) if kind == "clusters" else None
    noise = None if kind == "replicates" else 0.16
    seen = copies if noise is None else copies[:, 0]
    fit, other = check_jackknife(seen, y, METHODS[model], noise, clusters, rtol=1e-5, atol=1e-9)
    agree(fit, other, "values")
    np.testing.assert_allclose(fit.std_error, other.std_error, rtol=0.5)
    assert np.abs(fit.std_error / other.std_error - 1).max() > 1e-3


@pytest.mark.slow
def test_the_jackknife_of_a_curve(rng):
    """From copies nothing is drawn, so that rows do not depend on their places."""
    x, y = drawn(rng, 160, copies=2)

    def make(**options):
        return nj.methods.Model(growth, START, **options)

    fit, other = check_jackknife(x, y, make, rtol=1e-4)
    agree(fit, other, "values")


def test_a_jackknife_without_a_solution_is_told(rng):
    """One row alone keeps the column from predicting the labels perfectly."""
    x = rng.normal(size=(64, 1))
    y = (x[:, 0] > 0) * 1.0
    y[np.argmax(x[:, 0])] = 0.0
    table = from_arrays(x, y, noise=0.0)
    assert np.isfinite(nj.fit(table, nj.methods.Logistic()).values).all()
    raises("use errors='sandwich'", nj.fit, table, nj.methods.Logistic(errors="jackknife"))
