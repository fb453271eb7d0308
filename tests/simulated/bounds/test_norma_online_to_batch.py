"""Corollary 5: the expected risk of the average hypothesis."""

import numpy as np
import pytest

from noisy_jax import comparators, losses
from noisy_jax.simulated.bounds import online_to_batch, regularized_risk


@pytest.mark.statistical
@pytest.mark.slow
def test_average_hypothesis_has_small_expected_risk(x64, rng):
    """Examples from a distribution on 20 points, so that expectations are exact; ten samples."""
    m, lam, rate, samples = 200, 0.5, 1.2, 10
    x = rng.normal(size=(20, 2))
    gram = np.exp(-np.sum((x[:, None] - x[None]) ** 2, axis=-1))
    positive = rng.uniform(0.05, 0.95, 20)  # chances of the label +1
    drawn = rng.integers(0, 20, (samples, m))
    y = np.where(rng.random((samples, m)) < positive[drawn], 1.0, -1.0)

    (w, mean), rows = np.zeros((2, samples, 20)), np.arange(samples)
    for t in range(m):
        mean += w / m
        f = np.sum(w * gram[drawn[:, t]], axis=1)
        eta = rate / np.sqrt(t + 1)
        w *= 1 - eta * lam
        w[rows, drawn[:, t]] += eta * y[:, t] * (y[:, t] * f <= 1)
    values = mean @ gram
    hinge = positive * np.maximum(1 - values, 0) + (1 - positive) * np.maximum(1 + values, 0)
    expected = hinge.mean(axis=1) + lam / 2 * np.sum(mean * values, axis=1)

    given = {"horizon": m, "slope": 1.0, "regularization": lam, "learning_rate": rate}
    bound = online_to_batch(1.0, largest_risk=5 / (2 * lam), failure_probability=0.05, **given)
    excess = []
    for points, labels, risk in zip(drawn, y, expected, strict=True):
        sample = gram[np.ix_(points, points)], labels
        best = comparators.regularized(*sample, losses.soft_margin(), lam, tolerance=1e-5)
        excess.append(risk - best.risk)
    assert 0.005 * bound < np.max(excess) <= bound


def test_by_hand(x64):
    """X² = 4, c = 3, λ = ½, η = 1: a = 144 · 3, b = 72; m = 25, L = 7, δ = e^(−2)."""
    given = {"horizon": 25, "slope": 3.0, "regularization": 0.5, "learning_rate": 1.0}
    found = online_to_batch(4.0, largest_risk=7.0, failure_probability=np.exp(-2.0), **given)
    np.testing.assert_allclose(found, (144 * 3 + 7 * 2) / 5 + 72 / 25)
    # Without a chance of failure in L, it is the bound of Theorem 4 over m.
    sure = online_to_batch(4.0, largest_risk=1e-12, failure_probability=0.5, **given)
    np.testing.assert_allclose(sure, regularized_risk(4.0, **given).regret / 25)
