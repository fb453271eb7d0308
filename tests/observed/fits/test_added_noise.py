"""Estimates with added noise against plain loops over the same draws."""

import numpy as np
import pytest
from scipy.optimize import root
from scipy.special import expit

from noisy_jax.observed.fits.added_noise import LinearRegression, Refitted, likelihood_refit
from noisy_jax.observed.fits.approximate import NoisyTable, plain_fit
from noisy_jax.observed.observations import from_arrays
from tests.errors import raises
from tests.observed.rows import outcome

LEVELS = np.array([0.0, 0.5, 1.0, 2.0])
COV = np.array([[0.3, 0.0, 0.1], [0.0, 0.0, 0.0], [0.1, 0.0, 0.2]])
N, DRAWS = 200, 6
GROUPS = [np.arange(g, N, 4) for g in range(4)]


def rows(rng, model="linear", by_row=False):
    """A table, standardized as fits have it, with the covariances of its rows."""
    x = rng.normal(size=(N, 3))
    eta = 0.3 + x @ [1.0, -0.5, 0.4]
    y = outcome(rng, model, eta / 2 if model == "poisson" else eta)
    table = from_arrays(3 + 2 * x, y, noise=4 * COV)
    made = NoisyTable.of(table, model)
    if by_row:
        size = rng.uniform(0.2, 1, (N, 1, 1))
        made = made._replace(rows=made.rows._replace(cov=size * made.rows.cov))
    return made, table


def symmetric_root(cov):
    values, axes = np.linalg.eigh(cov)
    return (axes * np.sqrt(np.maximum(values, 0))[..., None, :]) @ np.swapaxes(axes, -1, -2)


def least_squares(x, y):
    design = np.column_stack([np.ones(len(y)), x])
    theta, squares = np.linalg.lstsq(design, y)[:2]
    return theta, squares[0] / (len(y) - design.shape[1]) * np.linalg.inv(design.T @ design)


def maximum_likelihood(model):
    mean = {"logistic": expit, "poisson": np.exp}[model]

    def fit(x, y):
        design = np.column_stack([np.ones(len(y)), x])
        found = root(lambda t: (y - mean(design @ t)) @ design, np.zeros(4), tol=1e-13)
        p = mean(design @ found.x)
        slope = p * (1 - p) if model == "logistic" else p
        bread = np.linalg.inv((design * slope[:, None]).T @ design)
        leverage = np.array([v * z @ bread @ z for z, v in zip(design, slope, strict=True)])
        scores = design * ((y - p) / (1 - leverage))[:, None]
        return found.x, bread @ (scores.T @ scores) @ bread

    return fit


def by_loop(fit, x, y, cov, draws, noisy):
    """Means, and mean covariances less those over draws; `draws` are of N(0, 1)."""
    scale = symmetric_root(cov[..., noisy[:, None], noisy])
    estimates, spreads = [], []
    for level in LEVELS:
        found = []
        for normal in draws:
            moved = x.copy()
            moved[:, noisy] += level**0.5 * (scale @ normal[:, :, None])[:, :, 0]
            found.append(fit(moved, y))
        theta = np.array([one for one, _ in found])
        estimates.append(theta.mean(axis=0))
        spreads.append(np.mean([one for _, one in found], axis=0) - np.cov(theta, rowvar=False))
    return np.array(estimates), np.array(spreads)


def check(found, expected):
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-8)
    assert np.abs(expected[0][-1] - expected[0][0]).max() > 0.05


def rows_with_sums(z, mixed, own):
    """Rows G `[n, m]` for which ZᵀG and GᵀG are these: they exist, as the law says."""
    q, r = np.linalg.qr(z, mode="complete")
    k, m = z.shape[1], own.shape[1]
    inside = np.linalg.solve(r[:k].T, mixed)
    return q[:, :k] @ inside + q[:, k : k + m] @ symmetric_root(own - inside.T @ inside)


@pytest.mark.claim("EXT-SumsOfAddedNoise")
@pytest.mark.parametrize("without", [None, 2])
def test_least_squares_from_sums_is_that_of_rows_with_these_sums(rng, without):
    table, _ = rows(rng)
    added = LinearRegression(table, DRAWS, 0, GROUPS)
    x, y, cov = table.rows[:3]
    z = np.column_stack([np.ones(N), x, y])
    draws = np.zeros((DRAWS, N, 2))
    for g, group in enumerate(GROUPS):
        for b in range(DRAWS):
            draws[b, group] = rows_with_sums(z[group], added.sums[1][g, b], added.sums[2][g, b])
    kept = np.arange(N) if without is None else np.delete(np.arange(N), GROUPS[without])
    expected = by_loop(least_squares, x[kept], y[kept], cov, draws[:, kept], added.noisy)
    check(added.at(LEVELS, without=without), expected)


@pytest.mark.parametrize("without", [None, 2])
def test_least_squares_with_covariances_of_rows(rng, without):
    table, _ = rows(rng, by_row=True)
    added = LinearRegression(table, DRAWS, 3, GROUPS)
    draws = np.array([added.normal(b) for b in range(DRAWS)])
    kept = np.arange(N) if without is None else np.delete(np.arange(N), GROUPS[without])
    x, y, cov = table.rows.some(kept)[:3]
    expected = by_loop(least_squares, x, y, cov, draws[:, kept], added.noisy)
    check(added.at(LEVELS, without=without), expected)


@pytest.mark.parametrize("model", ["logistic", "poisson"])
@pytest.mark.parametrize("by_row", [False, True])
def test_likelihood(rng, model, by_row, monkeypatch):
    monkeypatch.setattr("noisy_jax.observed.fits.added_noise._NUMBERS", 4 * 3 * 150)  # two blocks
    table, observations = rows(rng, model, by_row)
    start = plain_fit(model, table.rows, None, observations)[None]
    counted = []
    added = Refitted(table, DRAWS, 5, GROUPS, likelihood_refit(model), start, counted.append)
    draws = np.array([added.normal(b) for b in range(DRAWS)])
    kept = np.delete(np.arange(N), GROUPS[1])
    x, y, cov = table.rows.some(kept)[:3]
    expected = by_loop(maximum_likelihood(model), x, y, cov, draws[:, kept], added.noisy)
    check(added.at(LEVELS, without=1), expected)
    assert counted == [1, 4, 4, 4, 2, 2, 2]


@pytest.mark.claim("EXT-SumsOfAddedNoise")
@pytest.mark.statistical
@pytest.mark.parametrize("size", [3, 150])  # fewer rows than columns, and more
def test_sums_have_the_moments_of_normal_rows(rng, size):
    """E GᵀG = nI, Var (GᵀG)₁₁ = 2n, Var (GᵀG)₁₂ = n, and Cov ZᵀG₁ = ZᵀZ, against GᵀG 0."""
    table, _ = rows(rng)
    some = table._replace(rows=table.rows.some(slice(0, size)))
    count = 20_000
    seed = int(rng.integers(1 << 30))
    _, mixed, own = LinearRegression(some, count, seed, [np.arange(size)]).sums
    mixed, own = mixed[0], own[0]
    z = np.column_stack([np.ones(size), some.rows.x, some.rows.y])
    error = 5 / count**0.5
    np.testing.assert_allclose(own.mean(axis=0), size * np.eye(2), atol=error * (2 * size) ** 0.5)
    relative = 5 * (14 / count) ** 0.5  # a fourth moment of at most 15 variances²
    np.testing.assert_allclose(own[:, 0, 0].var(), 2 * size, rtol=relative)
    np.testing.assert_allclose(own[:, 0, 1].var(), size, rtol=relative)
    gram = z.T @ z
    units = np.sqrt(np.diag(gram))
    found = np.einsum("bi,bj->ij", mixed[..., 0], mixed[..., 0]) / count / np.outer(units, units)
    np.testing.assert_allclose(found, gram / np.outer(units, units), atol=error * 1.5)
    both = np.mean(mixed[..., 0] ** 2 * (own[:, :1, 0] - size), axis=0) / np.diag(gram)
    np.testing.assert_allclose(both, 2, atol=error * (30 * size) ** 0.5)


def test_a_model_without_a_finite_solution_raises(rng):
    x = np.repeat(rng.normal(size=(1, 40, 1)), 2, axis=0)
    y = (x[0, :, 0] > 0) * 1.0
    raises("no finite solution", likelihood_refit("logistic"), x, y, np.zeros((2, 2)))
