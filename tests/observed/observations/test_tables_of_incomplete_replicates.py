"""Incomplete replicates: exact means of estimated covariances, what each row adds, coverage."""

import numpy as np
import pytest

import noisy_jax as nj
from noisy_jax.observed.observations.pooled import covariances_of_means
from tests.observed.rows import agree

SIGMA = np.array([[1.0, 0.4], [0.4, 0.5]])
SEEN = [[[1, 1], [1, 1], [1, 1]], [[1, 1], [1, 0], [0, 1]], [[1, 0], [0, 1], [0, 0]]]
SEEN += [[[1, 1], [1, 1], [0, 0]], [[1, 1], [1, 0], [1, 0]], [[0, 1], [0, 0], [1, 1]]]
SEEN = np.array(SEEN, bool)  # 6 rows, 3 places, 2 columns; in row 2 no place has both
COUNTS = SEEN.sum(axis=1)
SHARES = np.einsum("nvi,nvj->nij", SEEN, SEEN, dtype=float)
SHARES /= COUNTS[:, :, None] * COUNTS[:, None]


def unit_errors():
    """Errors of one row and place at a time, of which all together have the covariance Σ."""
    for row, place, column in np.ndindex(SEEN.shape):
        errors = np.zeros(SEEN.shape)
        errors[row, place] = np.linalg.cholesky(SIGMA)[:, column]
        yield errors


def test_the_mean_of_each_estimated_covariance_is_exact():
    """They are quadratic in the errors: their means are sums over unit errors, one at a time."""
    total, clean = 0.0, np.random.default_rng(0).normal(size=(6, 1, 2))
    for errors in unit_errors():
        total = total + covariances_of_means(np.where(SEEN, 100 * clean + errors, np.nan), "ab")
    np.testing.assert_allclose(total, SHARES * SIGMA, rtol=1e-9, atol=1e-12)


def test_a_weight_of_k_counts_a_row_k_times():
    weights = np.arange(1, 7)
    copies = np.where(SEEN, np.random.default_rng(1).normal(size=SEEN.shape), np.nan)
    found = np.tensordot(weights, covariances_of_means(copies, "ab", weights), axes=1)
    repeated = np.repeat(copies, weights, axis=0)
    np.testing.assert_allclose(found, covariances_of_means(repeated, "ab").sum(axis=0), rtol=1e-9)


def test_complete_replicates_have_their_own_covariances():
    """Where a fourth place, which no row has, makes them a case of incomplete ones."""
    copies = np.random.default_rng(2).normal(size=(9, 3, 2))
    apart = copies - copies.mean(axis=1, keepdims=True)
    cov = np.einsum("nvi,nvj->nij", apart, apart) / 6
    given = np.concatenate([copies, np.full((9, 1, 2), np.nan)], axis=1)
    np.testing.assert_allclose(covariances_of_means(given, "ab"), cov, rtol=1e-9)


def simulated(rng, rows, tables=1):
    """Tables of one clean column, and two measured up to 3 times with errors of covariance Σ."""
    clean = rng.normal(size=(tables, rows, 3)) @ np.array([[1, 0.5, 0], [0, 1, 0.5], [0, 0, 1.0]])
    errors = rng.normal(size=(tables, rows, 3, 2))
    copies = clean[:, :, None, :2] + errors @ np.linalg.cholesky(SIGMA).T
    seen = np.arange(3)[None, None, :, None] < rng.integers(1, 4, size=(tables, rows, 1, 2))
    y = clean @ TRUE + 0.5 * rng.normal(size=clean.shape[:2])
    copies = np.where(seen, copies, np.nan)
    return [
        {f"{name}{v}": c[:, v, j] for j, name in enumerate("ab") for v in range(3)}
        | {"z": z, "y": target}
        for c, z, target in zip(copies, clean[..., 2], y, strict=True)
    ]


TRUE = np.array([1.0, -0.5, 2.0])
OPTIONS = {"target": "y", "replicates": {n: [f"{n}{v}" for v in range(3)] for n in "ab"}}


@pytest.mark.slow
def test_intervals_contain_that_the_covariance_is_estimated():
    """The sandwich is the jackknife over rows of the whole way from the replicates to the fit."""
    (frame,) = simulated(np.random.default_rng(3), 150)
    fit = nj.fit(nj.table(frame, **OPTIONS))
    rows = [{name: np.delete(one, row) for name, one in frame.items()} for row in range(150)]
    without = [nj.fit(nj.table(rest, **OPTIONS)).coefficients for rest in rows]
    np.testing.assert_allclose(fit.std_error[1:], np.sqrt(149 * np.var(without, axis=0)), rtol=0.04)
    blocks = nj.fit(nj.table(frame, **OPTIONS), errors="jackknife")
    assert np.all(np.abs(np.log(blocks.std_error / fit.std_error)) < 0.5)
    blocks = nj.fit(nj.table(frame, **OPTIONS), errors="jackknife")
    assert np.all(np.abs(np.log(blocks.std_error / fit.std_error)) < 0.5)


def test_errors_of_two_columns_that_nothing_shows():
    """`test_passes.py` has those of one column."""
    seen = np.array([[[1, 1], [1, 0]], [[1, 1], [0, 1]]] * 2, bool)
    copies = np.where(seen, np.random.default_rng(0).normal(size=seen.shape), np.nan)
    with pytest.raises(ValueError, match="no row has two copies of 'a' and 'b', from"):
        covariances_of_means(copies, "ab")


def test_chosen_rows_are_the_table_of_these_rows_alone():
    (frame,) = simulated(np.random.default_rng(4), 300)
    some = np.random.default_rng(5).integers(0, 4, size=300) > 1
    fit = nj.fit(nj.table(frame, **OPTIONS).rows(some))
    wanted = nj.fit(nj.table({name: v[some] for name, v in frame.items()}, **OPTIONS))
    agree(fit, wanted, "coefficients", "std_error", rtol=1e-10)
