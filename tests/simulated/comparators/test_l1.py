"""The best predictor in an l1 ball, by its optimality conditions and by NumPy's descent."""

import numpy as np
import pytest

import noisy_jax as nj
from tests.simulated.comparators.test_linear import KINDS, problem


def frank_wolfe_gap(x, y, w, radius):
    """⟨∇, w⟩ + B‖∇‖∞ ≥ f(w) − min f, by convexity, in units of ‖y‖²."""
    gradient = 2 * x.T @ (x @ w - y)
    return (gradient @ w + radius * np.abs(gradient).max()) / (y @ y)


@pytest.mark.parametrize("kind", [*KINDS, "ties", "exact"])
@pytest.mark.parametrize("radius", [0.01, 2.0, 4.3, 100.0])
def test_the_best_in_the_l1_ball_to_1e10(x64, rng, kind, radius):
    x, y = problem(kind, rng)
    if kind == "ties":  # each feature twice, with whole numbers
        x, y = np.round(np.hstack([x, -x])), np.round(y)
    if kind == "exact":
        y = x @ np.array([1.0, -0.25, 0.75, 0.0])
    found = nj.comparators.l1_ball(nj.streams.from_arrays(x, y), radius)
    w = np.asarray(found.weights)
    assert np.abs(w).sum() <= radius * (1 + 1e-12)
    assert frank_wolfe_gap(x, y, w, radius) < 1e-10
    np.testing.assert_allclose(found.predictions, x @ w, atol=1e-12)
    np.testing.assert_allclose(found.loss, np.sum((x @ w - y) ** 2), atol=1e-12 * (y @ y))
    slope = np.abs(x.T @ (x @ w - y)).max()
    np.testing.assert_allclose(found.multiplier, slope, atol=1e-12 * (y @ y))
    other = rng.dirichlet(np.ones(w.size), 200) * rng.choice([-radius, radius], (200, w.size))
    assert found.loss <= np.sum((x @ other.T - y[:, None]) ** 2, axis=0).min()
    assert frank_wolfe_gap(x, y, other[0], radius) > 1e-6  # what is worse is seen to be


def test_targets_of_zero(rng):
    stream = nj.streams.from_arrays(rng.normal(size=(5, 2)), np.zeros(5))
    assert not np.any(nj.comparators.l1_ball(stream, 1.0).weights)
