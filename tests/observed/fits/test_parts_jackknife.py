"""Linear fits in one pass: the jackknife against leaving groups out by hand, and its coverage."""

import numpy as np
import pytest

import noisy_jax as nj
from noisy_jax.observed.fits.groups import labels_of, streamed_labels
from noisy_jax.observed.observations import from_arrays
from tests.errors import raises
from tests.observed.rows import agree

FACTOR = np.linalg.cholesky([[0.3, 0.1], [0.1, 0.2]])


def table(n, rng):
    x = rng.normal(size=(n, 2))
    y = 3 + x @ [1.0, -0.5] + 0.5 * rng.normal(size=n)
    return x + rng.normal(size=x.shape) @ FACTOR.T, y


def observed(x, y):
    return from_arrays(10 + 5 * x, y, noise=25 * FACTOR @ FACTOR.T)


def jackknifed(rows, clusters=None):
    return nj.fit(rows, errors="jackknife", clusters=clusters)


def without(fits):
    return np.sqrt((len(fits) - 1) * np.var([fit.values for fit in fits], axis=0))


@pytest.mark.parametrize("rows", [12, 300])
def test_small_tables_have_at_least_8_groups_whatever_the_chunks_are(rng, rows):
    x, y = table(rows, rng)
    x = x + 5 * x.mean(axis=0)
    groups = streamed_labels(0, rows)
    fit = nj.fit([from_arrays(x, y, noise=0.01)])
    assert 8 <= len(set(groups)) == fit.degrees_of_freedom + 1 <= 32
    parts = [(x[groups != g], y[groups != g]) for g in set(groups)]
    left = [nj.fit(from_arrays(*part, noise=0.01)) for part in parts]
    np.testing.assert_allclose(fit.std_error, without(left), rtol=1e-6)
    cuts = [3, rows // 3, rows // 2]
    chunks = zip(np.split(x, cuts), np.split(y, cuts), strict=True)
    other = nj.fit(from_arrays(*chunk, noise=0.01) for chunk in chunks)
    np.testing.assert_allclose(other.covariance, fit.covariance, rtol=1e-6)


def test_risk_is_that_of_rows_left_out(rng):
    """By a plain loop over rows, whose noise is taken away row by row."""
    x, y = table(2500, rng)
    risk = jackknifed(observed(x, y)).risk
    groups = labels_of(10 + 5 * x, y)
    squares, plain = np.empty((2, 2500))
    for g in range(32):
        here = groups == g
        beta = nj.fit(observed(x[~here], y[~here]))
        for one, found in ((beta, squares), (beta.uncorrected, plain)):
            noise = 25 * np.sum((FACTOR.T @ one.coefficients) ** 2)
            found[here] = (y[here] - one.predict(10 + 5 * x[here])) ** 2 - noise
    every = {"corrected": squares, "uncorrected": plain, "difference": squares - plain}
    for name, values in every.items():
        mean, std_error = (getattr(risk, name + end) for end in ("", "_std_error"))
        np.testing.assert_allclose(mean, values.mean(), rtol=1e-8)
        apart = np.bincount(groups, values - values.mean()) / 2500  # sums of independent groups
        np.testing.assert_allclose(std_error, np.sqrt(np.sum(apart**2) * 32 / 31), rtol=1e-6)
    half = 2.0395 * risk.difference_std_error  # Student's t with 31 degrees of freedom
    ends = [risk.difference - half, risk.difference + half]
    np.testing.assert_allclose(risk.interval(), ends, rtol=1e-4)


@pytest.mark.parametrize("cuts", [[900], [1000, 1001, 3000]])
def test_chunks_give_the_fit_of_the_whole_also_where_a_column_begins_constant(rng, cuts):
    """Of a table that is sorted by an indicator."""
    x, y = table(4000, rng)
    x = np.column_stack([10 + 5 * x, np.arange(4000) >= 1000])
    noise = np.zeros((3, 3))
    noise[:2, :2] = 25 * FACTOR @ FACTOR.T
    rows = zip(np.split(x, cuts), np.split(y, cuts), strict=True)
    chunks = nj.fit(from_arrays(*one, noise=noise) for one in rows)
    whole = nj.fit([from_arrays(x, y, noise=noise)])
    agree(chunks, whole, "coefficients", rtol=1e-8)
    agree(chunks, whole, "intercept", "covariance", "reliability", "gram", rtol=1e-6)
    agree(chunks.risk, whole.risk, "difference", rtol=1e-6)
    assert str(chunks) == str(whole)


def test_groups_do_not_follow_the_order_of_rows_or_of_labels():
    """Means of the groups of sorted numbers vary as much as those of independent numbers."""
    rows = 32_000
    x, y = np.zeros((rows, 1)), np.arange(rows) * 1.0
    every = labels_of(x, y), labels_of(y[:, None], x[:, 0]), labels_of(x, y, np.arange(rows))
    for labels in (*every, streamed_labels(0, rows)):
        own = np.bincount(labels, np.arange(rows)) / np.bincount(labels)
        ratio = own.var() / (rows**2 / 12 / (rows / 32))
        assert abs(ratio - 1) < 5 * (2 / 31) ** 0.5
        assert ratio > 0.2
    np.testing.assert_array_equal(streamed_labels(700, 100), streamed_labels(0, 800)[700:])
    assert np.ptp(np.bincount(labels_of(x[5:], y[5:]))) == 1


def test_a_row_is_in_the_same_group_in_any_order(rng):
    x, y = rng.integers(0, 2, (500, 2, 3)) * 1.0, rng.integers(0, 2, 500) * 1.0
    x[:, 1, 1] = rng.normal(size=500)
    x[:, 0, 1] = np.where(rng.random(500) < 0.5, np.nan, x[:, 0, 1])
    order = rng.permutation(500)
    np.testing.assert_array_equal(labels_of(x[order], y[order]), labels_of(x, y)[order])


def test_a_column_that_is_constant_in_all_chunks_is_named(rng):
    x, y = table(1200, rng)
    x[:, 1] = 0.1
    with pytest.raises(ValueError, match="column 'x2' is constant: drop it"):
        nj.fit(from_arrays(a, b, noise=0.0) for a, b in ((x[:5], y[:5]), (x[5:], y[5:])))
    raises("'y' takes one value only, 2", nj.fit, [from_arrays(x[:, :1], 0 * y + 2, noise=0.0)])


NAN = np.where(np.arange(100) == 7, np.nan, 1.0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda one: nj.fit(one, errors="bootstrap"), "must be .sandwich. or .jackknife., got .b"),
        (lambda one: nj.fit([one], errors="sandwich"), "reads rows twice, and chunks"),
        (lambda one: nj.fit([one], clusters=[0] * 100), "without weights and clusters"),
        (lambda one: nj.fit(one, clusters=NAN), "clusters must be labels, got NaN in row 7"),
        (
            lambda one: nj.fit([one.rows(np.arange(7))]),
            "7 rows are too few .*; join the chunks, and fit one table",
        ),
    ],
)
def test_bad_input_raises(rng, call, message):
    raises(message, call, observed(*table(100, rng)))
