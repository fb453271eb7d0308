import jax
import jax.numpy as jnp
import numpy as np
import pytest

import noisy_jax as nj
from noisy_jax import losses
from noisy_jax.simulated.comparators import regularized

LOSSES = [
    losses.squared(),
    losses.logistic(),
    losses.exponential(),
    losses.smoothed_hinge(sharpness=4.0),
    losses.hinge(margin=0.3),
    losses.epsilon_insensitive(epsilon=0.2),
    losses.epsilon_insensitive(epsilon=0.0),
    losses.huber(width=0.3),
]


def problem(rng, kind, m=40):
    """A Gaussian Gram matrix, and targets with outliers or labels of which a tenth is flipped."""
    x = rng.normal(size=(m, 2))
    gram = np.exp(-np.sum((x[:, None] - x[None]) ** 2, axis=-1))
    clean = np.sin(2 * x[:, 0]) + x[:, 1] / 2
    if kind == "residual":
        return gram, clean + 0.1 * rng.standard_t(2, size=m)
    return gram, np.sign(clean) * np.where(rng.random(m) < 0.1, -1, 1)


def features(rng, m=60, d=3):
    x = rng.normal(size=(m, d))
    y = x @ np.array([2.0, -1.0, 0.5]) + 0.5 * rng.normal(size=m)
    return x, y, np.sign(y)


@pytest.mark.slow
@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_optimality_conditions(x64, rng, loss):
    """−λm a_i ∈ ∂ℓ(g(x_i), y_i), with g = Σ a_i k(x_i, ·): sufficient, as the problem is convex."""
    gram, y = problem(rng, loss.kind)
    for lam in (0.3, 1e-3):
        found = regularized(gram, y, loss, lam, tolerance=1e-10)
        assert found.converged
        g, slopes = np.asarray(found.predictions), -lam * y.size * found.coefficients
        np.testing.assert_allclose(g, gram @ found.coefficients, rtol=0, atol=1e-10)
        slack = 1e-4 * np.abs(y).max()
        assert np.all(loss.gradient(g - 1e-5, y) - slack <= slopes)
        assert np.all(slopes <= loss.gradient(g + 1e-5, y) + slack)
    # Other points of the same scale do not pass.
    assert np.any(np.abs(loss.gradient(0.9 * g, y) - slopes) > 10 * slack)


def test_the_gap_holds_where_the_loss_overflows(x64, rng):
    """At proximal points far out e^(−yp) is infinite, which once gave the gap 0 at g = 0."""
    x, _, labels = features(rng)
    found = regularized(x @ x.T, labels, losses.exponential(), 1e-9, max_iterations=100)
    weights = np.array([2.0, -1.0, 0.5])
    least = np.mean(np.exp(-labels * (x @ weights))) + 1e-9 / 2 * weights @ weights
    assert found.risk - found.gap <= least


@pytest.mark.parametrize("loss", [LOSSES[0], LOSSES[4], LOSSES[6]], ids=repr)
def test_no_function_is_better_by_more_than_the_gap(x64, rng, loss):
    """Honest wherever it stops: against the solution to 1e-10, and ½λ‖g − ĝ‖² ≤ gap too."""
    (gram, y), lam = problem(rng, loss.kind), 1e-3

    def risk(a):
        return np.mean(loss(gram @ a, y)) + lam / 2 * a @ gram @ a

    best = regularized(gram, y, loss, lam, tolerance=1e-10)
    gaps = []
    for steps in (1, 3, 6):
        early = regularized(gram, y, loss, lam, tolerance=1e-10, max_iterations=steps)
        assert early.iterations == steps
        a = np.asarray(early.coefficients)
        np.testing.assert_allclose(early.risk, risk(a), rtol=1e-12)
        excess = early.risk - best.risk
        away = a - best.coefficients
        assert max(excess, lam / 2 * away @ gram @ away) <= early.gap + 1e-9
        assert excess > 1e-8 or early.gap < 1e-6
        assert not early.converged
        gaps.append(float(early.gap))
    assert gaps == sorted(gaps, reverse=True)
    assert gaps[0] > 1e-3
    for _ in range(20):
        assert risk(np.asarray(best.coefficients) + 0.01 * rng.normal(size=y.size)) > best.risk


@pytest.mark.claim("NORMA-Eq2-5")
def test_instantaneous_risks_add_up(rng):
    """Σ_t (ℓ(g(x_t), y_t) + ½λ‖g‖²) = m R_reg[g]."""
    gram, y = problem(rng, "margin")
    found = regularized(gram, y, losses.hinge(), 0.1)
    instantaneous = losses.hinge()(found.predictions, y) + 0.05 * found.norm**2
    np.testing.assert_allclose(jnp.sum(instantaneous), y.size * found.risk, rtol=1e-5)
    assert found.norm <= 1 / 0.1


def test_hinge_coefficients_are_sparse_and_bounded(x64, rng):
    """0 ≤ y_i a_i ≤ 1/(λm), and a_i is zero, not small, beyond the margin."""
    gram, y = problem(rng, "margin")
    found = regularized(gram, y, losses.hinge(), 0.01)
    scaled = y * found.coefficients * 0.01 * y.size
    assert np.all((scaled >= 0) & (scaled <= 1))
    beyond = y * found.predictions > 1 + 1e-4
    assert beyond.sum() > 3
    assert np.all(scaled[beyond] == 0)


def test_float32_gram_matrices_are_solved_in_float64(rng):
    """Of a smooth kernel, whose rounding leaves negative eigenvalues."""
    x = rng.uniform(-1, 1, size=(60, 1))
    gram = nj.kernels.gaussian(length_scale=2**0.5)(x, x)
    assert np.linalg.eigvalsh(np.asarray(gram, np.float64))[0] < -1e-8
    y, loss = np.abs(x[:, 0]), losses.epsilon_insensitive(epsilon=0.01)
    found = regularized(gram, y, loss, 1e-5)
    assert found.converged
    assert found.gap < 1e-9
    assert all(leaf.dtype == jnp.float32 for leaf in found[:5])
    with jax.enable_x64(True):
        wide = regularized(np.exp(-((x - x.T) ** 2) / 4), y, loss, 1e-5)
    np.testing.assert_allclose(found.risk, wide.risk, rtol=1e-3)


def test_negative_eigenvalues_of_rounding_count_as_zero(x64, rng):
    """Left in, the risk of a function in their direction has no minimum."""
    directions = np.linalg.qr(rng.normal(size=(30, 30)))[0]
    eigenvalues = np.append(np.full(29, -3e-4), 1.0)
    y = directions[:, 0] + directions[:, -1]
    gram, clipped = ((directions * e) @ directions.T for e in (eigenvalues, eigenvalues > 0))
    found = regularized(gram, y, losses.squared(), 1e-6)
    assert found.converged
    best = np.linalg.solve(clipped + 1.5e-5 * np.eye(30), y)
    np.testing.assert_allclose(found.predictions, clipped @ best, atol=1e-4)
    np.testing.assert_allclose(found.risk, 1 / 30, rtol=1e-3)


@pytest.mark.parametrize(
    ("gram", "y", "loss"),
    [
        (np.eye(3), [1.0, -1.0, 1.0], losses.hinge(margin=0.0)),
        (np.eye(3), np.zeros(3), losses.epsilon_insensitive(epsilon=0.0)),
        (np.zeros((3, 3)), [1.0, -1.0, 1.0], losses.logistic()),
    ],
)
def test_the_minimizer_is_zero_if_zero_is_the_best(gram, y, loss):
    found = regularized(gram, y, loss, 0.1)
    assert found.converged
    np.testing.assert_array_equal([*found.predictions, found.norm], 0)
    assert found.gap < 1e-9
