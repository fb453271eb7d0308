"""Guarantees of NORMA against runs of it: plain NumPy loops, over many streams at once."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import noisy_jax as nj
from noisy_jax import comparators, losses
from noisy_jax.simulated.bounds import (
    Drift,
    as_printed,
    margin_errors,
    online_to_batch,
    regularized_risk,
    truncation_error,
)

STILL = Drift(norm=2.0, length=0.0, squared_length=0.0)


def kernel_run(gram, y, derivative, rates, regularization, keep=None):
    """Predictions `[m]`, norms `[m]` of f_t before round t, and the largest Σ|α|, from f_1 = 0."""
    m = y.size
    a, f, squares, largest = np.zeros(m), np.zeros(m), np.zeros(m), 0.0
    for t in range(m):
        f[t] = a[:t] @ gram[:t, t]
        squares[t] = a[:t] @ gram[:t, :t] @ a[:t]
        a[:t] *= 1 - rates[t] * regularization
        a[t] = -rates[t] * derivative(f[t], y[t])
        if keep is not None:
            a[: max(t + 1 - keep[t], 0)] = 0
        largest = max(largest, np.abs(a).sum())
    return f, squares, largest


def hinge_slope(p, y):
    return -y * (y * p <= 1)


def flipped_labels(rng, m):
    x = rng.normal(size=(m, 2))
    y = np.sign(x[:, 0] + x[:, 1] / 2) * np.where(rng.random(m) < 0.1, -1, 1)
    return np.exp(-np.sum((x[:, None] - x[None]) ** 2, axis=-1)), y


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.claim("NORMA-Eq17", "NORMA-Eq33-34", "NORMA-Thm4", "NORMA-Thm6")
@pytest.mark.parametrize(
    ("regularization", "decay", "start", "power"),
    [(1.0, 0.9, 7, 0.8), (0.1, 0.9, 26, 0.9), (0.02, 0.5, 80, 0.9)],
)
def test_theorems_4_and_6_hold(x64, rng, regularization, decay, start, power):
    """Against the minimiser ĝ, and the a-priori bounds with it; t₀ from the claims' table."""
    m, loss = 300, nj.losses.hinge()
    gram, y = flipped_labels(rng, m)
    best = nj.comparators.regularized(gram, y, loss, regularization)
    assert best.converged
    t = np.arange(1, m + 1)
    keep = np.minimum(t, np.maximum(start, np.ceil(t**power))).astype(int)
    assert keep[-1] < 0.6 * m
    size = 1 / regularization  # U = cX/λ, with c = X = 1
    assert best.norm <= size
    rate, tightness = decay / regularization, []
    given = {"horizon": m, "slope": 1.0, "regularization": regularization, "learning_rate": rate}
    for growing, kept in ((False, None), (True, keep)):
        rates = rate / np.sqrt(t)
        f, squares, largest = kernel_run(gram, y, hinge_slope, rates, regularization, kept)
        risks = np.maximum(1 - y * f, 0) + regularization / 2 * squares
        bound = regularized_risk(1.0, **given, growing_memory=growing)
        tightness.append((risks.sum() - m * best.risk) / bound.regret)
        assert largest <= size * (1 + 1e-12)
        assert squares.max() <= size**2
        assert np.abs(f).max() <= size
        # ‖ℓ'k(x_t, ·) + λf_t‖² ≤ 4c²X²
        slopes = hinge_slope(f, y)
        gradients = slopes**2 + 2 * regularization * slopes * f + regularization**2 * squares
        assert np.all(gradients <= bound.second_moment)
    assert 0.01 < min(tightness) <= max(tightness) <= 1
    assert as_printed.regularized_risk(1.0, **given, growing_memory=True).regret > bound.regret


@pytest.mark.claim("NORMA-Eq17")
def test_coefficients_stay_small_whatever_is_dropped(rng):
    """Σ|α_i| ≤ c/λ is attained where every round updates, and truncation keeps to it."""
    m, lam, limit = 200, 0.5, 2.0
    gram, y = np.ones((m, m)), np.ones(m)
    for kept in (None, rng.integers(1, 50, m)):
        for rates in (np.full(m, 0.3), 1 / np.sqrt(np.arange(1, m + 1))):
            largest = kernel_run(gram, y, lambda p, y: -y, rates, lam, kept)[2]
            assert largest <= limit * (1 + 1e-12)
            assert kept is not None or largest > 0.999 * limit


@pytest.mark.claim("NORMA-Eq33-34", "NORMA-Thm4")
def test_regularized_risk_by_hand(x64):
    """X² = 4, c = 3, λ = ½, η = 1: U = 12, a = 144(2z + 1/z) at z = ½, b = 72; m = 25."""
    given = {"horizon": 25, "slope": 3.0, "regularization": 0.5}
    corrected, printed = regularized_risk, as_printed.regularized_risk
    for bound, factor in ((corrected, 2), (printed, 2), (corrected, 6), (printed, 10)):
        options = {**given, "growing_memory": factor > 2}
        found = bound(4.0, learning_rate=1.0, **options)
        np.testing.assert_allclose(found, (1.0, 144 * (factor / 2 + 2) * 5 + 72, 144))
        best = bound(4.0, **options)
        z = factor**-0.5
        np.testing.assert_allclose(best.learning_rate, 2 * z)
        np.testing.assert_allclose(best.regret, 144 * (factor * z + 1 / z) * 5 + 36 / z)
        # Its part a√m is the smallest of all rates.
        rates = np.linspace(0.02, 1.98, 50)
        a = [bound(4.0, learning_rate=r, **options).regret - 72 / r for r in rates]
        assert best.regret - 36 / z <= min(a)
    expected = 4 * 2**0.5 * 72 * 5 + 36 * 2**0.5
    np.testing.assert_allclose(regularized_risk(4.0, **given).regret, expected)


@pytest.mark.claim("NORMA-Prop1")
def test_proposition_1_is_attained(x64):
    """All x equal, every round updates; after 399 rounds the claims' figures to 6 decimals."""
    given = {"buffer": 30, "slope": 1.0, "learning_rate": 0.3, "regularization": 0.1}
    powers = 0.97 ** np.arange(400)
    dropped = 0.3 * powers[30:399].sum()
    np.testing.assert_allclose(truncation_error(1.0, rounds=399, **given), dropped, rtol=1e-12)
    printed = as_printed.truncation_error(1.0, rounds=399, **given)
    np.testing.assert_allclose(printed, 0.3 * powers[30:].sum(), rtol=1e-12)
    closed = truncation_error(1.0, **given)
    found = [dropped, printed, closed]
    np.testing.assert_allclose(found, [4.010018, 4.010020, 4.010071], atol=1e-6)
    assert dropped < printed < closed < dropped * (1 + 1e-4)
    np.testing.assert_array_equal(truncation_error(1.0, rounds=30, **given), 0)
    np.testing.assert_allclose(truncation_error(4.0, **{**given, "slope": 3.0}), 6 * closed)


def test_proposition_1_in_float32():
    """ηλ = 1e-6, where 1 − ηλ has lost most of its digits."""
    given = {"slope": 1.0, "learning_rate": 1e-3, "regularization": 1e-3}
    found = truncation_error(1.0, buffer=10**6, **given)
    np.testing.assert_allclose(found, 1e3 * (1 - 1e-6) ** 10**6, rtol=1e-6)


def test_traced_arguments_out_of_range_give_nan_or_infinity():
    """(√(C/γ²) + √(C/γ²))² is positive for γ < 0 as well."""

    def all_of(margin, decay):
        given = {"slope": 1.0, "regularization": 1.0, "learning_rate": decay}
        by_margin = BY_MARGIN | {"margin": margin, "comparator_loss": 0.0}
        return (
            margin_errors(1.0, STILL, **by_margin).mistakes,
            regularized_risk(1.0, horizon=9, **given).regret,
            truncation_error(1.0, buffer=3, **given),
        )

    swept = jax.jit(jax.vmap(all_of))(jnp.array([0.5, 1.0, 1.5]), jnp.array([0.5, 1.0, -0.5]))
    np.testing.assert_array_equal(np.isfinite(swept), [[True, False, False]] * 3)


BY_MARGIN = {"horizon": 9, "margin": 0.5, "comparator_margin": 1.0, "comparator_loss": 1.0}


@pytest.mark.statistical
@pytest.mark.slow
def test_corollary_5_the_average_hypothesis_has_small_expected_risk(x64, rng):
    """Examples from a distribution on 20 points, so that expectations are exact; four samples."""
    m, lam, rate, samples = 200, 0.5, 1.2, 4
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
        best = comparators.regularized(*sample, losses.hinge(), lam, tolerance=1e-5)
        excess.append(risk - best.risk)
    assert 0.005 * bound < np.max(excess) <= bound


def test_corollary_5_by_hand(x64):
    """X² = 4, c = 3, λ = ½, η = 1: a = 144 · 3, b = 72; m = 25, L = 7, δ = e^(−2)."""
    given = {"horizon": 25, "slope": 3.0, "regularization": 0.5, "learning_rate": 1.0}
    found = online_to_batch(4.0, largest_risk=7.0, failure_probability=np.exp(-2.0), **given)
    np.testing.assert_allclose(found, (144 * 3 + 7 * 2) / 5 + 72 / 25)
    # Without a chance of failure in L, it is the bound of Theorem 4 over m.
    sure = online_to_batch(4.0, largest_risk=1e-12, failure_probability=0.5, **given)
    np.testing.assert_allclose(sure, regularized_risk(4.0, **given).regret / 25)
