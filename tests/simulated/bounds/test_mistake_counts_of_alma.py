"""The bound on ALMA's updates, against plain NumPy runs and a stream that is made to break it."""

import numpy as np
import pytest

from noisy_jax.simulated.bounds import alma
from tests.errors import raises


def updates_of(x, y, theta, c):
    """Updates `[S]` of ALMA₂ with a linear kernel, on x `[S, m, d]` of norm one and y `[S, m]`."""
    w, k = np.zeros((len(x), x.shape[2])), np.ones(len(x))
    for t in range(x.shape[1]):
        margin = y[:, t] * np.sum(w * x[:, t], axis=1)
        step = np.where(margin <= theta / np.sqrt(k), c / np.sqrt(k), 0)
        w += (step * y[:, t])[:, None] * x[:, t]
        w /= np.maximum(np.linalg.norm(w, axis=1, keepdims=True), 1)
        k += step > 0
    return k - 1


def unit(v):
    return v / np.linalg.norm(v, axis=-1, keepdims=True)


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("theta", "c"), [(0.0, 1.0), (0.0, 2**0.5), (0.7, 0.5), (8**0.5, 2**0.5), (3.0, 0.3)]
)
def test_updates_stay_below_the_bound(rng, theta, c):
    """On streams with margin γ, with and without flipped labels, for several u and γ."""
    u = unit(rng.normal(size=(60, 1, 3)))
    x = unit(rng.normal(size=(60, 1500, 3)))
    inner = np.sum(u * x, axis=2)
    x = np.where(np.abs(inner)[:, :, None] < 0.2, np.sign(inner)[:, :, None] * u, x)
    y = np.sign(np.sum(u * x, axis=2))
    y[30:] *= np.where(rng.random((30, 1500)) < 0.05, -1, 1)
    counts, tightness = updates_of(x, y, theta, c), []
    for gamma in (0.1, 0.2, 1.0):
        loss = np.maximum(gamma - y * np.sum(u * x, axis=2), 0).sum(axis=1)
        options = {"threshold": theta, "scale": c, "comparator_margin": gamma}
        bounds = [float(alma(**options, comparator_loss=each * (each > 1e-9))) for each in loss]
        tightness.append(np.max(counts / bounds))
    assert 0.05 < max(tightness) <= 1


def slow_reversal(hold, c=1.0):
    """A stream at θ = 0 that turns w from u to −u after a time in which w keeps to u."""
    w, k, seen, axes = np.zeros(3), 1, [], np.eye(3)

    def show(x):
        nonlocal w, k
        x = unit(x - 1e-9 * w)
        assert w @ x <= 0  # each example is an update
        w = w + c / np.sqrt(k) * x
        w, k = w / max(1, np.linalg.norm(w)), k + 1
        seen.append(x)

    show(axes[0])
    for _ in range(hold):
        show(axes[2] if w[2] <= 0 else -axes[2])
    while w[0] > -0.95 and len(seen) < 2 * hold + 50:
        show(unit(np.array([-w[1], w[0], 0])))
    return np.array(seen)


def test_half_of_the_radius_is_not_enough_on_data_that_are_not_separable():
    """C² + 2θC = 1, where m ≤ K/γ + R²/2 + √(R⁴/4 + R²K/γ + R²) with R = 1/(Cγ) would be half."""
    x = slow_reversal(1000)
    m, inner = len(x), np.sum(x, axis=0)
    assert updates_of(x[None], np.ones((1, m)), 0.0, 1.0)[0] == m
    loss = np.maximum(1 - x @ unit(inner), 0).sum()
    assert m > loss + 0.5 + (0.25 + loss + 1) ** 0.5
    assert m <= alma(threshold=0.0, scale=1.0, comparator_margin=1.0, comparator_loss=loss)
    # In terms of √m, which is what the proof bounds: 1 would be half, 2 is what is proved.
    assert 1.5 < np.linalg.norm(inner) / (m + 1) ** 0.5 < 2


@pytest.mark.parametrize("theta", [0.0, 0.3, 3.0, 20.0])
@pytest.mark.parametrize("c", [0.3, 2**0.5])
@pytest.mark.parametrize("gamma", [0.02, 0.2, 0.9])
def test_separable_bound_exceeds_the_smallest_progress(theta, c, gamma):
    """⟨u, w⟩ ≤ 1 grows at least by s ← (s + Cγ/√k)/√(1 + A/k)."""
    growth, s, k = c**2 + 2 * theta * c, 0.0, 0
    while s <= 1:
        k += 1
        s = (s + c * gamma / k**0.5) / (1 + growth / k) ** 0.5
    bound = alma(threshold=theta, scale=c, comparator_margin=gamma)
    assert k - 1 <= bound
    assert bound <= 6 * k + 3 * growth


@pytest.mark.parametrize("alpha", [1.0, 0.5, 0.1])
def test_separable_bound_is_gentiles_at_his_parameters(alpha):
    gamma = 0.05
    bound = alma(threshold=8**0.5 * (1 - alpha) / alpha, comparator_margin=gamma)
    gentile = 2 * (2 / alpha - 1) ** 2 / gamma**2 + 8 / alpha - 4
    np.testing.assert_allclose(bound, gentile, rtol=1e-2 if alpha == 1 else 1e-5)


def test_by_hand():
    """θ = 1, C = 2: A = 8; γ = ½: R = 8; K = 3: (4 + √(16 + 6 + 8))² − 8."""
    options = {"threshold": 1.0, "scale": 2.0, "comparator_margin": 0.5}
    np.testing.assert_allclose(alma(**options, comparator_loss=3.0), (4 + 30**0.5) ** 2 - 8, 1e-6)
    np.testing.assert_allclose(alma(**options), 5**2 + 10, rtol=1e-6)  # Gentile's is the smaller
    found = alma(threshold=0.0, scale=1.0, comparator_margin=0.5)
    np.testing.assert_allclose(found, (1 + 2**0.5) ** 2 - 1, rtol=1e-6)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"threshold": -1.0}, r"threshold must be finite and >= 0, got -1\.0"),
        ({"scale": 0.0}, r"scale must be positive and finite, got 0\.0"),
        ({"comparator_margin": 0.0}, "comparator_margin must be positive"),
        ({"comparator_loss": -1.0}, "comparator_loss must be finite and >= 0"),
    ],
)
def test_bad_arguments_raise(change, message):
    raises(message, alma, **{"threshold": 0.0, "comparator_margin": 0.1} | change)
