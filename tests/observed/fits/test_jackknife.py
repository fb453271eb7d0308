"""Linear fits in one pass: the jackknife against leaving groups out by hand, and its coverage."""

import numpy as np
import pytest

import noisy_jax as nj
from noisy_jax.observed.observations import from_arrays
from tests.errors import raises
from tests.keys import SHIFT
from tests.observed.rows import covered

FACTOR = np.linalg.cholesky([[0.3, 0.1], [0.1, 0.2]])


def table(n, rng):
    x = rng.normal(size=(n, 2))
    y = 3 + x @ [1.0, -0.5] + 0.5 * rng.normal(size=n)
    return x + rng.normal(size=x.shape) @ FACTOR.T, y


def observed(x, y):
    return from_arrays(10 + 5 * x, y, noise=25 * FACTOR @ FACTOR.T)


def jackknifed(rows, clusters=None):
    return nj.fit(rows, errors="jackknife", clusters=clusters)


def errors(fit):
    return np.append(fit.intercept_std_error, fit.std_error)


def without(fits):
    apart = np.array([[fit.intercept, *fit.coefficients] for fit in fits])
    apart -= apart.mean(axis=0)
    return np.sqrt(((len(fits) - 1) / len(fits) * apart**2).sum(axis=0))


def test_equals_fits_that_leave_out_a_group_of_blocks(rng):
    x, y = table(5000, rng)
    fit = jackknifed(observed(x, y))
    sandwich = nj.fit(observed(x, y))
    np.testing.assert_allclose(fit.coefficients, sandwich.coefficients, rtol=1e-9)
    np.testing.assert_allclose(fit.intercept, sandwich.intercept, rtol=1e-9)
    groups = np.arange(5000) // 64 % 32
    left = [nj.fit(observed(x[groups != g], y[groups != g])) for g in range(32)]
    np.testing.assert_allclose(errors(fit), without(left), rtol=1e-6)
    plain = without([one.uncorrected for one in left])
    np.testing.assert_allclose(errors(fit.uncorrected), plain, rtol=1e-6)
    assert fit.degrees_of_freedom == 31


@pytest.mark.parametrize(("rows", "block"), [(12, 1), (40, 4), (127, 8), (300, 32), (512, 64)])
def test_small_tables_have_shorter_blocks(rng, rows, block):
    """At least 8 groups, whatever the chunks are; 64 rows a block from 512 rows on."""
    x, y = table(rows, rng)
    x = x + 5 * x.mean(axis=0)
    groups = np.arange(rows) // block
    fit = nj.fit(from_arrays(x, y, noise=0.01), errors="jackknife")
    assert 8 <= groups.max() + 1 == fit.degrees_of_freedom + 1 <= 16
    parts = [(x[groups != g], y[groups != g]) for g in range(groups.max() + 1)]
    left = [nj.fit(from_arrays(*part, noise=0.01)) for part in parts]
    np.testing.assert_allclose(errors(fit), without(left), rtol=1e-6)
    cuts = [3, rows // 3, rows // 2]
    chunks = zip(np.split(x, cuts), np.split(y, cuts), strict=True)
    other = nj.fit(from_arrays(*chunk, noise=0.01) for chunk in chunks)
    np.testing.assert_allclose(other.covariance, fit.covariance, rtol=1e-6)


def test_risk_is_that_of_rows_left_out(rng):
    """By a plain loop over rows, whose noise is taken away row by row."""
    x, y = table(2500, rng)
    fit = jackknifed(observed(x, y))
    groups = np.arange(2500) // 64 % 32
    squares, plain = np.empty((2, 2500))
    for g in range(32):
        here = groups == g
        beta = nj.fit(observed(x[~here], y[~here]))
        noise = 25 * np.sum((FACTOR.T @ beta.coefficients) ** 2)
        squares[here] = (y[here] - beta.predict(10 + 5 * x[here])) ** 2 - noise
        noise = 25 * np.sum((FACTOR.T @ beta.uncorrected.coefficients) ** 2)
        plain[here] = (y[here] - beta.uncorrected.predict(10 + 5 * x[here])) ** 2 - noise
    risk = fit.risk
    found = {
        "corrected": (risk.corrected, risk.corrected_std_error, squares),
        "uncorrected": (risk.uncorrected, risk.uncorrected_std_error, plain),
        "difference": (risk.difference, risk.difference_std_error, squares - plain),
    }
    for mean, std_error, values in found.values():
        np.testing.assert_allclose(mean, values.mean(), rtol=1e-8)
        apart = np.bincount(groups, values - values.mean()) / 2500  # sums of independent groups
        np.testing.assert_allclose(std_error, np.sqrt(np.sum(apart**2) * 32 / 31), rtol=1e-6)
    half = 2.0395 * risk.difference_std_error  # Student's t with 31 degrees of freedom
    ends = [risk.difference - half, risk.difference + half]
    np.testing.assert_allclose(risk.interval(), ends, rtol=1e-4)


@pytest.mark.parametrize("cuts", [[1000, 1001, 3000], [64, 128], [2999]])
def test_chunks_give_the_fit_of_the_whole(rng, cuts):
    x, y = table(4000, rng)
    whole = jackknifed(observed(x, y))
    rows = zip(np.split(x, cuts), np.split(y, cuts), strict=True)
    chunks = nj.fit(observed(*chunk) for chunk in rows)
    for name in ("intercept", "coefficients", "covariance", "reliability", "gram"):
        np.testing.assert_allclose(getattr(chunks, name), getattr(whole, name), rtol=1e-6)
    assert str(chunks) == str(whole)


@pytest.mark.slow
@pytest.mark.statistical
def test_neighbouring_rows_may_depend_on_each_other():
    """The sandwich takes rows to be independent, and is seen to be too sure."""
    found, jackknife, sandwich = [], [], []
    for seed in range(40):
        rng = np.random.default_rng(seed + 1000 * SHIFT)
        waves = rng.normal(size=(2, 8000 // 20, 2)).repeat(20, axis=1)  # blocks of equal rows
        x, y = waves[0], waves[0] @ [1.0, -0.5] + waves[1, :, 0]
        noisy = observed(x + rng.normal(size=x.shape) @ FACTOR.T, y)
        fit = nj.fit(noisy, errors="jackknife")
        found.append(fit.coefficients)
        jackknife.append(fit.std_error)
        sandwich.append(nj.fit(noisy).std_error)
    true = np.std(found, axis=0, ddof=1)
    ratio = np.mean(jackknife, axis=0) / true
    # A standard deviation of 40 numbers has a relative standard error of 1/√78.
    np.testing.assert_allclose(ratio, 1, atol=5 / 78**0.5)
    assert np.all(np.mean(sandwich, axis=0) / true < 0.4)


def test_clusters_stay_whole(rng):
    x, y = table(1000, rng)
    clusters = rng.integers(40, size=1000)
    fit = jackknifed(observed(x, y), clusters)
    left = [nj.fit(observed(x[clusters % 32 != g], y[clusters % 32 != g])) for g in range(32)]
    np.testing.assert_allclose(errors(fit), without(left), rtol=1e-6)


@pytest.mark.parametrize("first", [1, 900], ids=["one row", "sorted by an indicator"])
def test_a_column_may_be_constant_in_the_first_chunk(rng, first):
    x, y = table(4000, rng)
    x = np.column_stack([x, np.arange(4000) >= 1000])
    noise = np.zeros((3, 3))
    noise[:2, :2] = FACTOR @ FACTOR.T

    def part(rows):
        return from_arrays(x[rows], y[rows], noise=noise)

    chunks = nj.fit([part(slice(0, first)), part(slice(first, 4000))])
    whole = nj.fit(part(slice(0, 4000)), errors="jackknife")
    np.testing.assert_allclose(chunks.coefficients, whole.coefficients, rtol=1e-8)
    np.testing.assert_allclose(chunks.covariance, whole.covariance, rtol=1e-6)
    np.testing.assert_allclose(chunks.risk.difference, whole.risk.difference, rtol=1e-6)


def test_a_column_that_is_constant_in_all_chunks_is_named(rng):
    x, y = table(1200, rng)
    x[:, 1] = 0.1
    with pytest.raises(ValueError, match="column 'x2' is constant: drop it"):
        nj.fit(from_arrays(a, b, noise=0.0) for a, b in ((x[:5], y[:5]), (x[5:], y[5:])))
    raises("'y' takes one value only, 2", nj.fit, [from_arrays(x[:, :1], 0 * y + 2, noise=0.0)])


@pytest.mark.statistical
@pytest.mark.long
def test_intervals_cover():
    rng = np.random.default_rng(5 + 1000 * SHIFT)
    fits = (nj.fit(observed(*table(1600, rng)), errors="jackknife") for _ in range(2000))
    coverage, _ = covered(fits, np.array([1, -0.5]) / 5)
    assert ((coverage >= 0.93) & (coverage <= 0.97)).all()


OTHER = from_arrays(np.ones((3, 2)), np.ones(3), noise=0, target="z")
NAN = np.where(np.arange(100) == 7, np.nan, 1.0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda one: nj.fit(one, errors="bootstrap"), "must be .sandwich. or .jackknife., got .b"),
        (lambda one: nj.fit([one], errors="sandwich"), "the sandwich reads rows twice"),
        (lambda one: nj.fit([one], clusters=[0] * 100), "without weights and clusters"),
        (lambda one: nj.fit([]), "at least one chunk"),
        (lambda one: nj.fit(one, object()), "such as nj.methods.* or nj.fourier.*, got object"),
        (lambda one: nj.fit(one).interval(95), "level must be above 0 and below 1, got 95"),
        (lambda one: nj.fit(one, clusters=NAN), "clusters must be labels, got NaN in row 7"),
        (lambda one: jackknifed(one.rows(np.arange(7))), "8 rows; use errors='sandwich'"),
        (lambda one: jackknifed(one, np.arange(100) % 7), "8 clusters; use errors='sandwich'"),
        (lambda one: nj.fit([one, OTHER]), "one has .* and 'z'"),
    ],
)
def test_bad_input_raises(rng, call, message):
    raises(message, call, observed(*table(100, rng)))
