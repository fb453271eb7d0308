"""Linear fits against other software and published results, on the same data.

Packages differ in denominators. `fit` subtracts (n − 1) times the variance of the error from the
sum of squares of a column about its mean, as Fuller, `mecor` and Stata's `eivreg` do. `bces`
subtracts n times. The sandwich of `fit` leaves out each row, or cluster; theirs has no leverages,
and is smaller in tables of few rows.
"""

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

import noisy_jax as nj
from noisy_jax.observed.observations import from_arrays
from tests.keys import SHIFT
from tests.observed.rows import gaussians

# Fuller, Measurement Error Models (1987), Table 1.2.1: corn yield on soil nitrogen, of which the
# measurement error has variance 57. Sec. 1.2.2 reports the estimates and standard errors.
NITROGEN = np.array([70, 97, 53, 64, 95, 64, 50, 70, 94, 69, 51], float)
YIELD = np.array([86, 115, 90, 86, 110, 91, 99, 96, 99, 104, 96], float)


def test_corn_yield_as_published():
    fit = nj.fit(from_arrays(NITROGEN[:, None], YIELD, noise=57.0, names=["nitrogen"]))
    np.testing.assert_allclose(fit.coefficients, [0.4232], rtol=1e-4)
    np.testing.assert_allclose(fit.intercept, 67.56, rtol=1e-4)
    assert 1 < fit.std_error[1] / 0.1745 < 1.35  # of normal rows, without leverages
    np.testing.assert_allclose(fit.reliability, [1 - 57 / 304.85], rtol=1e-4)


@pytest.mark.filterwarnings("ignore:the error on clean data is estimated below 0")
def test_insulin_resistance_as_mecor_publishes_it():
    """The R package mecor, vignette on random measurement error, of 2021-12-01.

    https://github.com/cran/mecor/blob/5003eb2a2dec26c41d575b32cf109e4cd92a9115/inst/doc/random_covme.html
    regresses ir_ln on waist circumference, with an error of variance τ² = 0.25, and on age. It
    prints uncorrected coefficients (-0.13014970, 0.25626815, 0.01211408), corrected ones
    (-0.02993932, 0.32125598, 0.01116984), the first column (1.253593085, -0.003684601) of
    S_corrected⁻¹ S, and λ0 = -0.3119331, λ1 = 0.797707 and λ2 = 0.002939232 of the calibration
    E[wc | measured] = λ0 + λ1 wc + λ2 age. The table here has the moments that these numbers state
    (what they leave open, the mean and the variance of age, has no effect on the result).
    """
    age_mean, age_variance, n = 56.0, 36.0, 50
    first = (np.array([1.253593085, -0.003684601]) - [1, 0]) / 0.25  # column of S_corrected⁻¹
    inverse = np.array([first, [first[1], 1 / age_variance + first[1] ** 2 / first[0]]])
    cov = np.linalg.inv(inverse) + np.diag([0.25, 0])
    wc_mean = (-0.3119331 + 0.002939232 * age_mean) / (1 - 0.797707)
    rows = np.random.default_rng(0).normal(size=(n, 2))
    rows = np.linalg.qr(rows - rows.mean(axis=0))[0] * (n - 1) ** 0.5
    x = rows @ np.linalg.cholesky(cov).T + [wc_mean, age_mean]
    fit = nj.fit(from_arrays(x, -0.13014970 + x @ [0.25626815, 0.01211408], noise=[0.25, 0]))
    np.testing.assert_allclose(fit.coefficients, [0.32125598, 0.01116984], rtol=1e-5)
    np.testing.assert_allclose(fit.intercept, -0.02993932, rtol=1e-4)


def test_errors_of_another_size_in_each_row_as_in_bces():
    """Akritas and Bershady (1996), by the Python package bces 2.0: `bces(x, xerr, y, 0, 0)`, Y|X.

    The errors of the corn data are invented here. (`fit` also reproduces the numbers of bces's own
    tests, 0.57955173 ± 0.02419 and 17.888558 ± 1.1283 on 234 blazars, to 2e-5 and 0.5%:
    https://github.com/rsnemmen/BCES/blob/master/tests/test_bces.py.)
    """
    spread = np.array([4, 9, 6, 8, 5, 7, 10, 6, 8, 3, 9], float)
    n = len(spread)

    def fitted(variances):
        rows = from_arrays(NITROGEN[:, None], YIELD, noise=gaussians(variances[:, None]))
        return nj.fit(rows, weights=np.ones(n))

    same = fitted(spread**2 * n / (n - 1))  # the denominators of bces
    np.testing.assert_allclose(same.coefficients, [0.4216277454957424], rtol=1e-6)
    np.testing.assert_allclose(same.intercept, 67.67229470452801, rtol=1e-6)
    ratio = same.std_error / [10.324533520076375, 0.1405635021405215]
    assert np.all((ratio > 1) & (ratio < 1.5))  # bces has no leverages
    correlation = same.covariance[0, 1] / np.prod(same.std_error)
    expected = -1.4211072035296182 / (10.324533520076375 * 0.1405635021405215)
    np.testing.assert_allclose(correlation, expected, rtol=0.02)
    own = fitted(spread**2)  # what the denominators matter in eleven rows
    np.testing.assert_allclose(own.coefficients, [0.4216277454957424], rtol=0.03)


def table(n=400, seed=0):
    rng = np.random.default_rng(seed + 1000 * SHIFT)
    x = rng.normal(size=(n, 3)) * [1, 10, 0.1] + [5, -300, 0.2]
    return x, x @ [1.0, -0.2, 3.0] + 7 + rng.normal(size=n) * (1 + (x[:, 0] > 5))


def test_without_noise_it_is_least_squares_with_robust_errors():
    x, y = table()
    fit = nj.fit(from_arrays(x, y, noise=0.0))
    plain = LinearRegression().fit(x, y)
    np.testing.assert_allclose(fit.coefficients, plain.coef_, rtol=1e-8)
    np.testing.assert_allclose(fit.intercept, plain.intercept_, rtol=1e-8)
    z = np.column_stack([np.ones(len(y)), x])
    bread = np.linalg.inv(z.T @ z)
    residual = (y - plain.predict(x)) / (1 - np.sum(z @ bread * z, axis=1))
    meat = (z * residual[:, None] ** 2).T @ z
    np.testing.assert_allclose(fit.covariance, bread @ meat @ bread, rtol=1e-6)  # HC3
    np.testing.assert_allclose(fit.uncorrected.covariance, fit.covariance)
