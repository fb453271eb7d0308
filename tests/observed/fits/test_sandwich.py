"""Variances of fits: any order of the rows, leaving out rows by hand.

`test_model.py` leaves out clusters of rows in NumPy as well.
"""

import numpy as np
import pytest

import noisy_jax as nj
from noisy_jax.noise import Misclassified
from noisy_jax.observed.fits.sandwich import Outer, variance
from noisy_jax.observed.observations import from_arrays
from tests.observed.fits.curves import START, drawn, growth
from tests.observed.rows import agree, gaussians, outcome, regression

BETA, VARIANCES = np.array([0.8, -0.5]), np.array([0.2, 0.0])
ORDERED = {
    "misclassified": nj.methods.Logistic(),
    "curve": nj.methods.Model(growth, START),
    "calibration": nj.methods.RegressionCalibration(),
    "linear": nj.methods.Linear(),
}


def columns_of(rng, name):
    """Noisy rows, y, and what is known of the noise."""
    if name == "curve":
        return *drawn(rng, 400, copies=2), None
    kind = "logistic" if name == "misclassified" else "linear"
    x, y = regression(rng, 600, kind, BETA, VARIANCES)
    if name != "misclassified":
        return x, y, VARIANCES
    exposed = x[:, 1] > 0
    x[:, 1] = exposed != (rng.random(600) < np.where(exposed, 0.15, 0.1))
    return x, y, {"x1": 0.2, "x2": Misclassified(np.array([[0.9, 0.1], [0.15, 0.85]]))}


@pytest.mark.parametrize("name", ORDERED)
def test_errors_do_not_depend_on_the_order_of_rows(rng, name):
    x, y, noise = columns_of(rng, name)
    orders = np.arange(len(y)), np.argsort(y), np.argsort(x.reshape(len(y), -1)[:, 0])
    tables = [from_arrays(x[order], y[order], noise=noise) for order in orders]
    first, *others = (nj.fit(one, ORDERED[name]) for one in tables)
    for one in others:
        agree(one, first, "std_error", rtol=1e-6)
        agree(one.uncorrected, first.uncorrected, "std_error", rtol=1e-6)
        agree(one, first, "degrees_of_freedom", rtol=5e-6)


LEFT_OUT = {
    "Logistic": ("logistic", nj.methods.Logistic(), False),
    "Poisson": ("poisson", nj.methods.Poisson(), False),
    "calibration by row": ("linear", nj.methods.RegressionCalibration(), True),
    "calibration": ("logistic", nj.methods.RegressionCalibration("logistic"), False),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", LEFT_OUT)
def test_variances_are_those_of_rows_left_out_with_their_part_in_the_noise(rng, name):
    """By fits without each row, of replicates and of rows with variances of their own."""
    (model, method, by_row), n = LEFT_OUT[name], 60
    clean, y = regression(rng, n, model, BETA, np.zeros(2))
    variances = rng.uniform(0.05, 0.2, size=(n, 1, 2))
    seen = clean[:, None] + np.sqrt(variances) * rng.normal(size=(n, 1 if by_row else 2, 2))

    def fitted(rows):
        noise = gaussians(variances[rows, 0]) if by_row else None
        return nj.fit(from_arrays(seen[rows], y[rows], noise=noise), method)

    every = np.arange(n)
    fit, left = fitted(every), [fitted(np.delete(every, row)) for row in every]
    for one, others in ((fit, left), (fit.uncorrected, [other.uncorrected for other in left])):
        apart = np.array([other.values for other in others]) - one.values
        np.testing.assert_allclose(np.diag(one.covariance), (apart**2).sum(axis=0), rtol=0.2)


@pytest.mark.parametrize("model", ["poisson", "logistic"])
def test_a_category_of_one_row_is_not_taken_as_exact(rng, model):
    """Its score is 0 and its leverage nearly 1: the row says nothing of its own error."""
    n = 300
    x = rng.normal(size=n)
    y = outcome(rng, model, 0.3 + 0.5 * x)
    alone = np.arange(n) == 0
    y[0] = 4.0 if model == "poisson" else 1.0
    if model == "logistic":  # with a second row, or its coefficient is infinite
        alone, y[1] = alone | (np.arange(n) == 1), 0.0
    table = from_arrays(np.column_stack([x + 0.3 * rng.normal(size=n), alone]), y, noise=[0.09, 0])
    fit = nj.fit(table, model=model)
    expected = 0.5 if model == "poisson" else 2**0.5 * 2**0.5  # 1/√4; √(1/(2 · ¼))
    assert 0.5 < fit.std_error[2] / expected < 3


@pytest.mark.parametrize("outer", [False, True])
def test_moves_are_least_squares_without_each_row_or_cluster(rng, outer):
    """Exactly, for any weights; also where the rows come in several blocks."""
    x, y, weights = rng.normal(size=(60, 3)), rng.normal(size=60), rng.uniform(0.5, 2, size=60)
    weighted, labels = x * weights[:, None], rng.permutation(60) // 3

    def solved(kept):
        return np.linalg.solve(weighted[kept].T @ x[kept], weighted[kept].T @ y[kept])

    beta, whole = solved(np.arange(60)), weighted.T @ x
    scores, slopes = weighted * (y - x @ beta)[:, None], weighted[:, :, None] * x[:, None]
    halves = slice(25), slice(25, None)
    parts = [(scores[half], slopes[half]) for half in halves]
    if outer:
        vectors = [Outer(x[half], weights[half], 0.0, np.eye(3)) for half in halves]
        parts = [(scores[half], own) for half, own in zip(halves, vectors, strict=True)]
    combined = rng.normal(size=(2, 3))
    for clusters, most in ((None, 57), (labels, 19)):
        own = np.arange(60) if clusters is None else clusters
        moves = np.array([beta - solved(own != k) for k in range(own.max() + 1)])
        made = variance(parts, whole, clusters, combined)
        np.testing.assert_allclose(made.covariance, moves.T @ moves, rtol=1e-8)
        squares = (moves @ combined.T) ** 2
        total = squares.sum(axis=0) ** 2
        expected = 2 * total / ((squares**2).sum(axis=0) - total / len(moves))
        np.testing.assert_allclose(made.freedom, np.minimum(expected, most), rtol=1e-8)
    plain = np.linalg.solve(whole, scores.T)
    wider = (made.covariance.diagonal() / (plain**2).sum(axis=1)).max() ** 0.5
    assert made.wider > 1
    assert wider > 1


def test_clusters_are_left_out_with_their_noise(rng):
    """Twelve of them, so that each has a twelfth of the noise; exact but for its mean."""
    x, labels = rng.normal(size=(1200, 2)), np.repeat(np.arange(12), 100)
    y = x @ [1.0, -0.5] + x[:, 0] * rng.normal(size=1200) + rng.normal(size=12)[labels]
    noisy = x + 0.8 * rng.normal(size=x.shape)

    def fitted(rows, **options):
        return nj.fit(from_arrays(noisy[rows], y[rows], noise=0.64), **options)

    left = [fitted(labels != cluster).values for cluster in range(12)]
    whole = fitted(slice(None), clusters=labels)
    expected = ((left - whole.values) ** 2).sum(axis=0)
    np.testing.assert_allclose(np.diag(whole.covariance), expected, rtol=1e-2)
