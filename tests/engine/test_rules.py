"""The adaptive rate √2 B/√(Σ ‖g‖²), on weights and on the engine, and its guarantee."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import noisy_jax as nj
from noisy_jax import base
from noisy_jax.base import Sample
from noisy_jax.engine.rules import rate_of
from tests.keys import key
from tests.learners.runs import unrolled

RADIUS, DIM, T = 0.8, 3, 60


def arbitrary_vectors(rng, kind):
    g = rng.normal(size=(T, DIM))
    if kind == "heavy tails":
        g = rng.standard_t(1.5, size=(T, DIM))
    if kind == "growing":
        g *= 1.3 ** np.arange(T)[:, None]
    if kind == "falling":
        g *= 0.7 ** np.arange(T)[:, None]
    if kind == "one direction":
        g = np.abs(g[:, :1]) * np.eye(DIM)[0]
    return g


def descent(gradient):
    """Projected descent along `gradient(t, w)` in NumPy: the iterates, `[T, d]`, and Σ ‖g‖²."""
    w, squares, iterates = np.zeros(DIM), 0.0, []
    for t in range(T):
        iterates.append(w)
        g = gradient(t, w)
        squares += g @ g
        w = w - 2**0.5 * RADIUS / squares**0.5 * g
        w = w * min(1, RADIUS / np.linalg.norm(w))
    return np.array(iterates), squares


KINDS = ("normal", "heavy tails", "growing", "falling", "one direction")


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.claim("EXT-AdaptiveRate")
@pytest.mark.parametrize("kind", KINDS)
def test_the_inequality_holds_for_arbitrary_vectors(x64, rng, kind):
    """Against the best u, which is opposite to the sum; iterates are those of a NumPy loop."""
    learner = nj.learners.gradient_descent(lambda w, sample: sample.x[0], copies=1, radius=RADIUS)
    run = jax.jit(base.unrolled(learner))
    ratios = []
    for _ in range(20):
        g = arbitrary_vectors(rng, kind)
        samples = Sample(jnp.asarray(g)[:, None], jnp.zeros(T))
        keys = jax.random.split(key(0), T)
        x = jnp.broadcast_to(jnp.eye(DIM)[0], (T, DIM))
        state, first_weights, _ = run(learner.init(DIM), samples, x, keys)
        iterates, squares = descent(lambda t, w, g=g: g[t])
        np.testing.assert_allclose(first_weights, iterates[:, 0], rtol=1e-9, atol=1e-12)
        regret = np.sum(g * iterates) + RADIUS * np.linalg.norm(g.sum(axis=0))
        bound = 8**0.5 * RADIUS * squares**0.5
        assert nj.bounds.adaptive_rate(state, radius=RADIUS) == pytest.approx(bound)
        ratios.append(regret / bound)
    assert 0.05 < max(ratios) < 1


@pytest.mark.claim("EXT-AdaptiveRate")
def test_the_engine_knows_the_gradient(x64, rng):
    """‖g̃ k(x̃, ·)‖² of a kernel with k(x, x) ≠ 1, projected, against explicit features."""
    kernel = nj.kernels.polynomial(degree=2)
    x, y = rng.normal(size=(T, 1)), rng.normal(size=T)
    learner = nj.learners.uncorrected_kernel(kernel, horizon=T, radius=RADIUS)
    state, predictions = unrolled(learner, x, y)
    z = np.concatenate([x**2, 2**0.5 * x, np.ones_like(x)], axis=1)  # (xz + 1)²
    iterates, squares = descent(lambda t, w: 2 * (w @ z[t] - y[t]) * z[t])
    np.testing.assert_allclose(predictions, np.sum(iterates * z, axis=1), rtol=1e-9)
    bound = 8**0.5 * RADIUS * squares**0.5
    assert nj.bounds.adaptive_rate(state, radius=RADIUS) == pytest.approx(bound)


def test_zero_gradients_change_nothing_and_overflow_is_reported():
    rate = rate_of(None, 2.0)
    eta, state = rate.at(rate.init(), 0, jnp.float32(0.0))
    assert eta == 0
    eta, state = rate.at(state, 1, jnp.float32(4.0))
    assert eta == pytest.approx(2**0.5)
    assert np.isnan(rate.at(state, 2, jnp.float32(np.inf))[0])
    assert np.isnan(rate.at(state, 2, jnp.float32(np.nan))[0])
