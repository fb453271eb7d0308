"""Regression calibration: exact predictions, where it is exact, and its intervals."""

import numpy as np
import pytest
from scipy.special import expit

import noisy_jax as nj
from noisy_jax.observed.fits.calibration import Calibration
from noisy_jax.observed.observations import from_arrays
from noisy_jax.observed.observations.rows import Rows
from tests.errors import raises
from tests.observed.rows import (
    agree,
    regression,
)

CALIBRATION = nj.methods.RegressionCalibration
VARIANCES = np.array([0.3, 0.0])
BETA = np.array([0.8, -0.5])


def drawn(rng, n=640, model="linear", variances=VARIANCES):
    return regression(rng, n, model, BETA, variances)


def test_predictions_are_the_best_linear_ones_of_each_row(rng):
    """Σ_x (Σ_x + C_i)⁻¹ by hand; exact columns stay, and predict the others."""
    x, y = drawn(rng, 50)
    cov = rng.uniform(0.5, 1, (50, 1, 1)) * np.diag(VARIANCES)
    made = Calibration(Rows(x, y, cov)).x
    mean, share = x.mean(axis=0), 1 - 1 / 50
    clean = np.cov(x, rowvar=False, ddof=0) - share * cov.mean(axis=0)
    for row, found, own in zip(x, made, cov, strict=True):
        expected = mean + clean @ np.linalg.inv(clean + share * own) @ (row - mean)
        np.testing.assert_allclose(found, expected, rtol=1e-10)
    np.testing.assert_allclose(made[:, 1], x[:, 1])
    moved = x + [0, 1] * rng.normal(size=(50, 1))
    assert np.abs(Calibration(Rows(moved, y, cov)).x[:, 0] - made[:, 0]).max() > 0.1


def test_linear_coefficients_are_the_exact_ones(rng):
    x, y = drawn(rng)
    for noise in (np.diag(VARIANCES), np.array([[0.3, 0.05], [0.05, 0.1]])):
        table = from_arrays(10 + 5 * x, y, noise=25 * noise)
        fit, exact = nj.fit(table, CALIBRATION()), nj.fit(table)
        agree(fit, exact, "coefficients", "intercept", "reliability", rtol=1e-9)
        plain = exact.uncorrected.coefficients
        np.testing.assert_allclose(fit.uncorrected.coefficients, plain, rtol=1e-9)
        assert np.abs(fit.coefficients - plain).max() > 0.02


@pytest.mark.parametrize(("model", "mean"), [("logistic", expit), ("poisson", np.exp)])
def test_other_coefficients_are_those_of_calibrated_rows(rng, model, mean):
    x, y = drawn(rng, model=model)
    fit = nj.fit(from_arrays(x, y, noise=VARIANCES), CALIBRATION(model))
    calibrated = Calibration(Rows(x, y, np.diag(VARIANCES))).x
    plain = nj.fit(from_arrays(calibrated, y, noise=0.0), model)
    agree(fit, plain, "coefficients", "intercept", rtol=1e-6)
    np.testing.assert_allclose(fit.predict(x), mean(fit.intercept + x @ fit.coefficients))
    assert f"{model.title()} regression on calibrated" in str(fit)
    assert f"methods.{model.title()}()" in str(fit)


def test_what_cannot_be_fitted_raises(rng):
    x, y = drawn(rng)
    table = from_arrays(x, y, noise=VARIANCES)
    raises("model must be 'linear', 'logistic' or 'poisson'", CALIBRATION, "probit")
    raises("0 or 1 for model='logistic'", nj.fit, table, CALIBRATION("logistic"))
    separated = from_arrays(x, (x[:, 0] > 0) * 1.0, noise=VARIANCES)
    raises("column 'x1' predicts", nj.fit, separated, CALIBRATION("logistic"))
