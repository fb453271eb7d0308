"""Regression calibration: exact predictions, where it is exact, and its intervals."""

import numpy as np
import pytest
from scipy.special import expit

import noisy_jax as nj
from noisy_jax.observed.fits.calibration import Calibration
from noisy_jax.observed.fits.units import Rows
from noisy_jax.observed.observations import from_arrays
from tests.errors import raises
from tests.observed.rows import (
    agree,
    check_coverage,
    check_left_out,
    regression,
)

CALIBRATION = nj.methods.RegressionCalibration
MODELS = ["linear", "logistic", "poisson"]
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


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("kind", ["by row", "replicates"])
def test_variances_are_those_of_rows_left_out_and_calibrated_anew(rng, model, kind):
    clean, y = drawn(rng, 120, model, variances=np.zeros(2))
    if kind == "replicates":
        copies = np.stack([clean + [0.5, 0.3] * rng.normal(size=clean.shape) for _ in range(2)], 1)
        check_left_out(copies, y, CALIBRATION(model), 0.12)
        return
    variances = rng.uniform(0.1, 0.4, size=clean.shape)
    noisy = clean + variances**0.5 * rng.normal(size=clean.shape)
    check_left_out(noisy, y, CALIBRATION(model), 0.12, variances)


@pytest.mark.parametrize("model", MODELS)
def test_the_jackknife_calibrates_anew(rng, model):
    """Near the sandwich, also of clusters: copies of rows count as one."""
    x, y = drawn(rng, 400, model)
    table = from_arrays(x, y, noise=VARIANCES)
    made = [nj.fit(table, CALIBRATION(model, errors=one)) for one in ("sandwich", "jackknife")]
    np.testing.assert_array_equal(made[0].values, made[1].values)
    np.testing.assert_allclose(made[0].std_error, made[1].std_error, rtol=0.5)
    assert (made[0].std_error != made[1].std_error).all()
    twice = from_arrays(np.repeat(x, 2, axis=0), np.repeat(y, 2), noise=VARIANCES)
    fit = nj.fit(twice, CALIBRATION(model, clusters=np.arange(800) // 2))
    np.testing.assert_allclose(fit.std_error, made[0].std_error, rtol=0.02)


def test_a_stated_standard_error_of_the_noise_moves_the_coefficients(rng):
    """By differences of fits under other covariances."""
    x, y = drawn(rng, 300, "logistic")
    cov, error = np.diag([0.3, 0.1]), np.array([[0.03, 0.01], [0.01, 0.02]])

    def fitted(cov, error):
        table = from_arrays(x, y, noise=nj.noise.CovarianceEstimate(cov, error))
        return nj.fit(table, CALIBRATION("logistic"))

    expected = fitted(cov, 0 * error).covariance
    for i, j in ((0, 0), (0, 1), (1, 1)):
        move = np.zeros((2, 2))
        move[i, j] = move[j, i] = 1e-3
        ends = [fitted(cov + sign * move, 0 * error).values for sign in (1, -1)]
        slope = (ends[0] - ends[1]) / 2e-3 * error[i, j]
        expected = expected + np.outer(slope, slope)
    np.testing.assert_allclose(fitted(cov, error).covariance, expected, rtol=1e-3)


@pytest.mark.parametrize("model", ["logistic", "poisson"])
def test_it_is_near_the_consistent_fit_and_far_from_the_uncorrected_one(rng, model):
    x, y = drawn(rng, 8000, model)
    table = from_arrays(x, y, noise=VARIANCES)
    fit, exact = nj.fit(table, CALIBRATION(model)), nj.fit(table, model=model)
    far = np.abs(exact.uncorrected.coefficients - exact.coefficients)
    assert np.all(np.abs(fit.coefficients - exact.coefficients) < 0.25 * far)
    ratio = fit.std_error / exact.std_error
    assert np.all((ratio > 0.7) & (ratio < 1.4))


def test_predicts_and_prints(rng):
    x, y = drawn(rng, model="logistic")
    fit = nj.fit(from_arrays(x, y, noise=VARIANCES), CALIBRATION("logistic"))
    np.testing.assert_allclose(fit.predict(x), expit(fit.intercept + x @ fit.coefficients))
    assert "Logistic regression on calibrated" in str(fit)
    assert "methods.Logistic()" in str(fit)


def test_what_cannot_be_fitted_raises(rng):
    x, y = drawn(rng)
    table = from_arrays(x, y, noise=VARIANCES)
    raises("model must be 'linear', 'logistic' or 'poisson'", CALIBRATION, "probit")
    raises("0 or 1 for model='logistic'", nj.fit, table, CALIBRATION("logistic"))
    raises("RegressionCalibration takes one table", nj.fit, [table], CALIBRATION())
    separated = from_arrays(x, (x[:, 0] > 0) * 1.0, noise=VARIANCES)
    raises("column 'x1' predicts", nj.fit, separated, CALIBRATION("logistic"))


@pytest.mark.long
@pytest.mark.statistical
@pytest.mark.parametrize(
    ("model", "kind"), [("linear", "known"), ("logistic", "known"), ("logistic", "replicates")]
)
def test_intervals_cover_the_truth(rng, model, kind):
    """At a reliability of 0.85, where the bias of calibration is small."""
    variances = np.array([0.176, 0.0])

    def table():
        if kind == "known":
            return from_arrays(*drawn(rng, 640, model, variances), noise=variances)
        clean, y = drawn(rng, 640, model, np.zeros(2))
        errors = np.sqrt(2 * variances) * rng.normal(size=(2, 640, 2))
        return from_arrays(np.moveaxis(clean + errors, 0, 1), y)

    check_coverage((table() for _ in range(600)), BETA, CALIBRATION(model))
